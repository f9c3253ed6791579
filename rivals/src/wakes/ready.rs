// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long this thread was ready to run and did not get a processor, as the kernel counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// A wait that is looked into lasts far longer: it begins after the last note, or little before.
const BETWEEN: Duration = Duration::from_millis(50);

pub struct Ready {
    /// `None` if the kernel does not count it.
    file: Option<File>,
    noted: Option<Duration>,
    at: Instant,
}

impl Ready {
    /// Of the calling thread.
    pub fn new() -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let mut ready = Self { file, noted: None, at: Instant::now() };
        ready.noted = ready.read();
        ready
    }

    /// Remembers how long it was so far, unless that was done a
    /// moment ago: reading costs as much as some waits.
    pub fn note(&mut self, now: Instant) {
        if now.duration_since(self.at) >= BETWEEN {
            (self.noted, self.at) = (self.read(), now);
        }
    }

    /// How long it was since then.
    pub fn since_noted(&self) -> Option<Duration> {
        Some(self.read()?.saturating_sub(self.noted?))
    }

    /// The second of the three numbers, in nanoseconds.
    fn read(&self) -> Option<Duration> {
        let mut bytes = [0; 128];
        let length = self.file.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_is_not_ready_all_the_while() {
        let ready = Ready::new();
        if ready.file.is_none() {
            eprintln!("not tried: this kernel has no schedstat");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
        // However busy the machine is, it slept for so long.
        let (was_ready, lasted) = (ready.since_noted().unwrap(), ready.at.elapsed());
        assert!(was_ready <= lasted - Duration::from_millis(100), "{was_ready:?} of {lasted:?}");
    }
}
