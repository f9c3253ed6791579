// SPDX-License-Identifier: MIT OR Apache-2.0
//! One message to many receivers. See [`Publisher`].

mod error;
mod log;
mod published;
mod publisher;
mod subscriber;

pub use error::JoinError;
pub use published::{Published, PublishedBatch};
pub use publisher::{Draft, Ended, Publisher, WhenSlow};
pub use subscriber::Subscriber;
