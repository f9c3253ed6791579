// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever bytes a result file holds, reading it and everything after the reader ends without a
//! panic and in bounded memory. Give it a seed:
//! `doorbell ping eventfd --gap 0 --count 20 --blocks 1 -o lab/fuzz/corpus/result_file/seed`.
#![no_main]

#[path = "../../command/tests/command/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
