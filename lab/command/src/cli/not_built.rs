// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands for a verb that is left out of the build for a quick first answer.

use std::ffi::OsString;

use super::common::Exit;

/// Whatever is said to the verb.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

impl Args {
    /// Names the command that builds a program with `verb`.
    pub fn refused(&self, verb: &str) -> anyhow::Result<Exit> {
        Err(anyhow::Error::msg(not_built(verb)))
    }
}

/// Says that this program was built without `what`, and which commands build one that has it.
pub fn not_built(what: &str) -> String {
    format!(
        "{what} is not in this program, which was built with what a first answer needs; `make \
         install` installs all of it, as `cargo install --path lab/command --all-features` does, \
         and `cargo run --release --all-features -- ...` runs all of it here"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_that_is_not_built_names_the_command_that_builds_it() {
        let said = Args { _words: Vec::new() }.refused("doorbell vm").unwrap_err().to_string();
        assert!(said.starts_with("doorbell vm is not in this program"), "{said}");
        assert!(said.contains("cargo run --release --all-features --"), "{said}");
    }
}
