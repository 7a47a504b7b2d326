//! The configuration folder as programs may change it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use store::editable::{Editable, FileError};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("strowger-editable-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("etc/below")).unwrap();
        fs::write(folder.join("secret"), "outside").unwrap();
        Self(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let scratch = Scratch::new("outside");
    let etc = scratch.0.join("etc");
    symlink(scratch.0.join("secret"), etc.join("link.conf")).unwrap();
    symlink(&scratch.0, etc.join("up")).unwrap();
    symlink(scratch.0.join("nothing"), etc.join("dangling.conf")).unwrap();
    symlink("below/real.conf", etc.join("inner.conf")).unwrap();
    fs::write(etc.join("below/real.conf"), "[a]\n").unwrap();
    let files = Editable::new(&etc);
    let beyond = scratch.0.join("secret").display().to_string();
    for name in [
        "",
        ".",
        "/",
        "..",
        "../secret",
        "below/../../secret",
        "./a.conf",
        "/etc/passwd",
        &beyond,
        "link.conf",
        "up/secret",
        "up/new.conf",
        "dangling.conf",
        "a\0b",
        "%2e%2e/secret",
    ] {
        assert!(files.read(name).is_err(), "{name:?}");
        assert!(files.create(name).is_err(), "{name:?}");
        assert!(files.write(name, b"x").is_err(), "{name:?}");
    }
    assert_eq!(fs::read_to_string(scratch.0.join("secret")).unwrap(), "outside");
    assert!(!scratch.0.join("nothing").exists() && !scratch.0.join("new.conf").exists());
    // A link that stays inside is followed, and stays a link.
    files.write("inner.conf", b"[b]\n").unwrap();
    assert_eq!(fs::read_to_string(etc.join("below/real.conf")).unwrap(), "[b]\n");
    assert!(fs::symlink_metadata(etc.join("inner.conf")).unwrap().is_symlink());
    let absolute = etc.join("below/real.conf").display().to_string();
    assert_eq!(files.read(&absolute), Ok(b"[b]\n".to_vec()));
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_mode() {
    let scratch = Scratch::new("whole");
    let etc = scratch.0.join("etc");
    let files = Editable::new(&etc);
    assert_eq!(files.read("new.conf"), Err(FileError::Missing));
    files.create("new.conf").unwrap();
    assert_eq!(files.create("new.conf"), Err(FileError::Exists));
    fs::set_permissions(etc.join("new.conf"), fs::Permissions::from_mode(0o600)).unwrap();
    files.write("new.conf", b"[a]\nb=1\n").unwrap();
    assert_eq!(files.read("new.conf"), Ok(b"[a]\nb=1\n".to_vec()));
    assert_eq!(fs::metadata(etc.join("new.conf")).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(&etc).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing temporary is left: {left:?}");
    assert_eq!(files.write("below", b"x"), Err(FileError::Outside), "a folder is no file");
}
