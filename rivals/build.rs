// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles what is written by hand in C, and the shim of the rival
//! in C++ if its headers are installed.

use std::path::Path;

fn main() {
    let sources = ["fence", "futex", "epoll", "line"].map(|name| format!("src/bell/by_hand/{name}.c"));
    let shim = "src/channels/variant/boost.cpp";
    let header = Path::new("/usr/include/boost/interprocess/ipc/message_queue.hpp");
    for path in sources.iter().map(String::as_str).chain([shim, &header.display().to_string()]) {
        println!("cargo:rerun-if-changed={path}");
    }
    cc::Build::new().std("c11").opt_level(2).warnings_into_errors(true).files(&sources).compile("by_hand");
    println!("cargo:rustc-check-cfg=cfg(boost)");
    if header.exists() {
        cc::Build::new().cpp(true).std("c++17").opt_level(3).file(shim).compile("boost_queue");
        println!("cargo:rustc-cfg=boost");
    }
}
