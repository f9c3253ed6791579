// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the shared library the name that programs linked with it
//! look for. The number grows when the interface breaks.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdoorbell.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
