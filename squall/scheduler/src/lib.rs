// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel and every process agree on: where the shared scheduler lies, what its pool looks
//! like, and how a process talks to the kernel.
//!
//! | to find | look in |
//! |---|---|
//! | tasks, their queues, one space's part of the pool | [`pool`] |
//! | how tasks of two spaces wake each other | [`mailbox`] |
//! | the image's entry points, and where everything is mapped | [`image`] |
//! | the system calls | [`call`] |
//! | the queue of the document that this kernel checks | [`rotating`] |
#![no_std]

pub mod call;
pub mod image;
pub mod mailbox;
pub mod pool;
pub mod rotating;
