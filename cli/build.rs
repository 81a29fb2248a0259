//! Links the release binary statically where the machine can do that, because the front door is
//! started anew for every event: without a dynamic loader and its 17,000 relocations it starts
//! in half the time. Where `libc.a` is missing (not every distribution ships it) the binary is
//! linked as usual, and only that time is lost.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What the standard library links against, and its static twin.
const TWINS: [(&str, &str); 3] = [("gcc_s", "libgcc_eh.a"), ("m", "libm.a"), ("c", "libc.a")];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var_os(name).is_some_and(|found| found == value);
    let linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    let native = env::var_os("HOST") == env::var_os("TARGET");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    if linux && native && is("PROFILE", "release") && point_to_twins(&out).is_some() {
        println!("cargo::rustc-link-arg-bins=-static");
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-L{}", out.display());
    }
}

/// Cargo has no way to say `crt-static` for one binary (for the whole build it breaks the
/// procedural macros), so the names that rustc asks the linker for are made to lead to archives.
fn point_to_twins(out: &Path) -> Option<()> {
    for (name, archive) in TWINS {
        let script = format!("INPUT ( {} )\n", find(archive)?.display());
        for ending in ["so", "a"] {
            fs::write(out.join(format!("lib{name}.{ending}")), &script).ok()?;
        }
    }
    Some(())
}

/// Where the C compiler finds this library; what it does not find it prints as it was asked for.
fn find(library: &str) -> Option<PathBuf> {
    let answer = Command::new("cc").arg(format!("-print-file-name={library}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}
