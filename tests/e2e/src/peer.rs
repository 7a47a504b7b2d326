//! Programs of others, and data that a plain checkout does not have.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process that goes when this goes, however its test ends: whoever reads what tests say waits for the last that can
/// still say something.
#[derive(Debug)]
pub struct Owned(pub Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Whether all of these programs are there; when not, says that the test is skipped and how to get them.
pub fn installed(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|name| !on_path(name)).collect();
    for name in &missing {
        println!("skipped: '{name}' is not installed (apt-get install {})", package_of(name));
    }
    missing.is_empty()
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn package_of(program: &str) -> &str {
    match program {
        "sipp" => "sip-tester",
        "xz" => "xz-utils",
        "linphonec" => "linphone-cli",
        "fail2ban-regex" => "fail2ban",
        other => other,
    }
}

/// The Python that has the manager client; says that the test is skipped when there is none.
pub fn python() -> Option<PathBuf> {
    python_with("panoramisk", "panoramisk")
}

/// The Python that has a module of a package; says that the test is skipped when there is none.
pub fn python_with(module: &str, package: &str) -> Option<PathBuf> {
    let python = root().join(".venv/bin/python");
    let has = Command::new(&python)
        .args(["-c", &format!("import {module}")])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has {
        println!("skipped: {package} from PyPI is not installed (make .venv/bin/python)");
    }
    has.then_some(python)
}

/// Node and the folder of modules that has a package; says that the test is skipped when there is none.
pub fn node_with(package: &str) -> Option<(&'static str, PathBuf)> {
    let modules = root().join(".node/node_modules");
    let has = on_path("node") && modules.join(package).is_dir();
    if !has {
        println!("skipped: {package} from npm is not installed (make .node/node_modules)");
    }
    has.then_some(("node", modules))
}

/// Top of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder or archive of the hostile input that lies beside a developer's checkout; says that it is absent when it is.
pub fn bad_input(name: &str) -> Option<PathBuf> {
    let path = root().join("../shared/bad-input").join(name);
    let there = path.exists();
    if !there {
        println!("skipped: {} is absent", path.display());
    }
    there.then_some(path)
}

/// Unpacks an archive into a folder; false, and said, when that cannot be done here.
pub fn unpack(archive: &Path, folder: &Path) -> bool {
    if !installed(&["tar", "xz"]) {
        return false;
    }
    std::fs::create_dir_all(folder).expect("a folder to unpack into");
    let status = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(folder).status();
    status.is_ok_and(|status| status.success())
}
