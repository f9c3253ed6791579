// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of notification of systems that are not Linux. Adding one is adding a file below `windows` or `macos`, and one line in `all`
//! there.

use doorbell_harness::watched_word;
use doorbell_results::nearest::{self, Unknown};

// What a mechanism is made of, so that its file needs one `use super::{…}`.
pub use doorbell_harness::entry::{Entry, Links};
pub use doorbell_harness::mechanism::{
    Explanation, Fault, Link, Mechanism, Notifier, Unavailable, Waiter, Woken,
};
pub use doorbell_harness::site::{Host, OpenError, Site, Word};
pub use doorbell_results::record::subject::{Carries, Contexts, Notification, Notifiers, Waits};

#[path = "../mechanism/family.rs"]
mod family;
#[path = "../mechanism/null.rs"]
pub mod null;
#[path = "../mechanism/spin.rs"]
pub mod spin;
#[cfg_attr(target_os = "macos", path = "macos/mod.rs")]
#[cfg_attr(windows, path = "windows/mod.rs")]
pub mod system;

pub use family::Mechanisms;
pub use system::all;

/// What is measured where nothing is named.
pub const USUAL: &str = if cfg!(windows) { "wait-on-address" } else { "sync-wait-on-address" };

/// Those that are measured where all are asked for.
pub fn usual() -> impl Iterator<Item = &'static dyn Entry> + Clone {
    all().iter().copied()
}

/// The mechanism called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static dyn Entry, Unknown> {
    nearest::find("mechanism", all().iter().copied(), |entry| entry.name(), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_harness::arena::Arena;
    use doorbell_harness::run_dir::RunDir;

    /// Says of each what became of it: `ci/everywhere` makes a table of that.
    #[test]
    fn every_mechanism_keeps_its_promises() {
        let arena = Arena::map(1 << 20).unwrap();
        let run_dir = RunDir::create().unwrap();
        let site = Site::new(Contexts::Threads, arena, &run_dir);
        for entry in all().iter().filter(|entry| entry.notification().waits != Waits::Nothing) {
            assert_eq!(entry.available(&Host::default()), Ok(()), "{}", entry.name());
            entry.rehearse(&site);
            println!("mechanism {}: checked", entry.name());
        }
    }

    #[test]
    fn names_are_told_apart_and_every_explanation_is_complete() {
        let names: Vec<&str> = all().iter().map(|entry| entry.name()).collect();
        for (index, entry) in all().iter().enumerate() {
            assert!(!names[..index].contains(&entry.name()), "{} twice", entry.name());
            assert_eq!(find(entry.name()).map(Entry::name), Ok(entry.name()));
            let text = entry.explanation();
            for part in [text.summary, text.how, text.kernel, text.limits] {
                assert!(!part.trim().is_empty(), "{}", entry.name());
            }
            assert!(text.sources.iter().any(|source| !source.is_empty()), "{}", entry.name());
        }
    }
}
