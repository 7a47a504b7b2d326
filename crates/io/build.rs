//! Compiles the BPF programs with `clang` where there is one. Without it the crate works, through ordinary sockets.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "bpf/media.bpf.c";

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rustc-check-cfg=cfg(bpf)");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    match compile() {
        Ok(()) => println!("cargo:rustc-cfg=bpf"),
        Err(why) => println!(
            "cargo:warning=built without BPF programs, media goes through one socket a leg: {why}; install clang"
        ),
    }
}

fn compile() -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let target = match env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => "bpfeb",
        _ => "bpfel",
    };
    let object = PathBuf::from(env::var("OUT_DIR").map_err(|e| e.to_string())?).join("media.bpf.o");
    // -fno-strict-aliasing: packets are read and written in words of any width.
    // -mcpu=v3: what every kernel with sk_lookup understands, but for atomic exchanges, which only one program has. -g: the maps are described in the debugging data.
    let output = Command::new(&clang)
        .args([
            "-target",
            target,
            "-mcpu=v3",
            "-O2",
            "-fno-strict-aliasing",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-c",
            SOURCE,
            "-o",
        ])
        .arg(&object)
        .output()
        .map_err(|error| format!("{clang}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("clang failed").to_owned())
}
