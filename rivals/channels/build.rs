// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the shim of the C++ rival, if its headers are installed.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=src/arm/boost.cpp");
    println!("cargo:rustc-check-cfg=cfg(boost)");
    let header = Path::new("/usr/include/boost/interprocess/ipc/message_queue.hpp");
    println!("cargo:rerun-if-changed={}", header.display());
    if header.exists() {
        cc::Build::new().cpp(true).std("c++17").opt_level(3).file("src/arm/boost.cpp").compile("boost_queue");
        println!("cargo:rustc-cfg=boost");
    }
}
