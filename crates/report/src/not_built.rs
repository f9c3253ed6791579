// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of a part that is left out of the build for a quick first answer.

/// Says that this program was built without `what`, and which commands build one that has it.
pub fn not_built(what: &str) -> String {
    format!(
        "{what} is not in this program, which was built with what a first answer needs; `make install` installs all of \
         it, as `cargo install --path crates/lab --all-features` does, and `cargo run --release --all-features -- ...` \
         runs all of it here"
    )
}
