// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checked-in header says what the code does.

use std::path::Path;

#[test]
fn the_header_is_the_one_the_code_makes() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new().with_crate(here).with_config(config).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = here.join("include/doorbell.h");
    if std::env::var_os("DOORBELL_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == checked_in,
        "include/doorbell.h is not what the code makes; write it anew with\n  \
         DOORBELL_WRITE_HEADER=1 cargo test --package doorbell-ffi --test header\nand look at the difference"
    );
}
