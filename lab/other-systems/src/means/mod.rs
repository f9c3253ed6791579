// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means by which one thread wakes another. One file for each system,
//! one entry in its list for each means.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use doorbell_results::nearest::{self, Unknown};
use doorbell_results::record::subject::{Carries, Notification, Notifiers, Waits};

mod pipe;
#[cfg_attr(windows, path = "windows.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
#[cfg_attr(not(any(windows, target_os = "macos")), path = "no_other.rs")]
mod system;

/// One object between one thread that notifies and one that waits.
pub(crate) trait Means: Send + Sync {
    /// Wakes the waiter, now or when it waits next.
    fn post(&self) -> io::Result<()>;
    /// Waits for a post, and takes it. `false`: the time ran out.
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool>;
}

/// A kind of such objects.
#[derive(Debug)]
pub(crate) struct Kind {
    /// As results call it.
    pub(crate) name: &'static str,
    /// In one line.
    pub(crate) what: &'static str,
    /// Whether two posts before the waiter looks are one.
    pub(crate) coalesces: bool,
    /// Whether its wait takes a time-out.
    pub(crate) timed: bool,
    /// What comes with a post.
    pub(crate) carries: Carries,
    /// Makes one.
    pub(crate) open: fn() -> io::Result<Arc<dyn Means>>,
}

/// What most have.
const USUAL: Kind = Kind {
    name: "",
    what: "",
    coalesces: false,
    timed: true,
    carries: Carries::Nothing,
    open: || Err(io::ErrorKind::Unsupported.into()),
};

impl Kind {
    pub(crate) fn notification(&self) -> Notification {
        Notification {
            waits: Waits::Blocks,
            coalesces: self.coalesces,
            drops: false,
            descriptor: false,
            timed: self.timed,
            notifiers: Notifiers::One,
            carries: self.carries,
            processes: false,
            threads: true,
        }
    }
}

/// Every kind that this system has.
pub(crate) fn all() -> impl Iterator<Item = &'static Kind> + Clone {
    system::ALL.iter().chain([&pipe::PIPE])
}

/// The kind called `name`, or the nearest name if there is none.
pub(crate) fn find(name: &str) -> Result<&'static Kind, Unknown> {
    nearest::find("means", all(), |kind| kind.name, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Says of each what became of it: `ci/everywhere` makes a table of that.
    #[test]
    fn every_means_keeps_its_promises() {
        for kind in all() {
            let means = (kind.open)().unwrap();
            if kind.timed {
                assert!(!means.wait(Some(Duration::ZERO)).unwrap(), "{}: nothing was posted", kind.name);
                assert!(!means.wait(Some(Duration::from_millis(3))).unwrap(), "{}: nothing came", kind.name);
            }
            // A post before the wait is kept, and two are two unless they coalesce.
            means.post().unwrap();
            means.post().unwrap();
            assert!(means.wait(None).unwrap(), "{}", kind.name);
            if kind.timed {
                let second = means.wait(Some(Duration::ZERO)).unwrap();
                assert_eq!(second, !kind.coalesces, "{}: two posts", kind.name);
            } else if !kind.coalesces {
                assert!(means.wait(None).unwrap(), "{}", kind.name);
            }
            // One thread answers the other a thousand times: a lost post would stop both.
            let back = (kind.open)().unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        assert!(means.wait(None).unwrap(), "{}", kind.name);
                        back.post().unwrap();
                    }
                });
                for _ in 0..1000 {
                    means.post().unwrap();
                    assert!(back.wait(None).unwrap(), "{}", kind.name);
                }
            });
            println!("mechanism {}: checked", kind.name);
        }
    }

    #[test]
    fn every_name_finds_its_kind_and_a_misspelt_one_is_told_the_nearest() {
        for kind in all() {
            assert_eq!(find(kind.name).unwrap().what, kind.what);
            assert!(!kind.what.is_empty());
        }
        assert_eq!(find("pipee").unwrap_err().nearest, Some("pipe"));
    }
}
