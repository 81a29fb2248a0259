//! Links the release binary statically if the C library is installed as an archive. Agents start `hookbus hook` once
//! per event, and without the dynamic loader and its 17,000 relocations it starts in half the time. Without `libc.a`
//! (not every distribution ships it) the binary is linked dynamically as usual.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The libraries that the standard library links against, with their static versions.
const STATIC_LIBRARIES: [(&str, &str); 3] =
    [("gcc_s", "libgcc_eh.a"), ("m", "libm.a"), ("c", "libc.a")];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var_os(name).is_some_and(|found| found == value);
    let linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    let native = env::var_os("HOST") == env::var_os("TARGET");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    if linux && native && is("PROFILE", "release") && redirect_to_archives(&out).is_some() {
        println!("cargo::rustc-link-arg-bins=-static");
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-L{}", out.display());
    }
}

/// Cargo cannot set `crt-static` for one binary, and for the whole build it breaks procedural macros. So we write
/// linker scripts with the names that rustc passes to the linker; each names the archive.
fn redirect_to_archives(out: &Path) -> Option<()> {
    for (name, archive) in STATIC_LIBRARIES {
        let script = format!("INPUT ( {} )\n", find(archive)?.display());
        for extension in ["so", "a"] {
            fs::write(out.join(format!("lib{name}.{extension}")), &script).ok()?;
        }
    }
    Some(())
}

/// The path of a library; the C compiler prints the bare name of one that it cannot find.
fn find(library: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={library}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}
