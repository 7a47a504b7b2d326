//! Looking for shared libraries and the functions in them.

use libloading::Library;

/// Loads the first of several names of a library, for the rest of the program's life.
pub fn open(names: &[&str]) -> Option<&'static Library> {
    names.iter().find_map(|name| {
        // SAFETY: loading runs the library's initialisers. The names are those of codec libraries, searched for in the
        // system's own folders only (no name has a slash); libspeex and libcodec2 have no initialisers with effects.
        let library = unsafe { Library::new(*name) }.ok()?;
        Some(&*Box::leak(Box::new(library)))
    })
}

/// Declares a struct of a library's functions and `load`, which finds them all or none.
macro_rules! functions {
    ($(#[$doc:meta])* $api:ident { $($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        $(#[$doc])*
        struct $api {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }
        impl $api {
            fn load(names: &[&str]) -> Option<Self> {
                let library = crate::library::open(names)?;
                Some(Self {
                    $($name: {
                        // SAFETY: the signature is that of the function in the library's public header, which this
                        // version of its ABI (the number in its name) keeps.
                        let symbol = unsafe { library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>($symbol) };
                        *symbol.ok()?
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;
