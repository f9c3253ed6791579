// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `doorbell`.

fn main() -> std::process::ExitCode {
    doorbell_lab::cli::main()
}
