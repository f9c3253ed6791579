// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sentence, and whether it leaves open what it is about: what other programs are told follows
//! from that, never from the words.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    pub text: String,
    pub open: bool,
}
