// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles what is written by hand.

fn main() {
    let sources = ["fence", "futex", "epoll", "line"].map(|name| format!("src/by_hand/{name}.c"));
    for source in &sources {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new().std("c11").opt_level(2).warnings_into_errors(true).files(&sources).compile("by_hand");
}
