// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles what is written by hand in C.

fn main() {
    let sources = ["fence", "futex", "epoll", "line"].map(|name| format!("src/bell/by_hand/{name}.c"));
    sources.iter().for_each(|path| println!("cargo:rerun-if-changed={path}"));
    cc::Build::new().std("c11").opt_level(2).warnings_into_errors(true).files(&sources).compile("by_hand");
}
