// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the C library of `uintr/driver`: both ways to user interrupts are written once, for both languages.

const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

fn main() {
    // The crate says that it is of 64 bits: nobody could tell from what the C compiler says.
    if std::env::var("CARGO_CFG_TARGET_POINTER_WIDTH").is_ok_and(|width| width != "64") {
        return;
    }
    let mut build = cc::Build::new();
    build.std("gnu11").opt_level(2).warnings(true).extra_warnings(true).include(format!("{SOURCES}/include"));
    for name in ["uintr", "ipi", "message", "hardware", "signals"] {
        build.file(format!("{SOURCES}/user/{name}.c"));
    }
    for part in ["handlers", "vectors", "timer", "wait", "send", "eventfd"] {
        build.file(format!("{SOURCES}/user/signals-{part}.c"));
    }
    build.compile("uintr");
    println!("cargo:rerun-if-changed={SOURCES}/user");
    println!("cargo:rerun-if-changed={SOURCES}/include");
}
