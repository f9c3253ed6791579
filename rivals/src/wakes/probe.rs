// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiting side, and the one question of it all: did a wait end
//! by its time-out although something was there?
//!
//! Every wait has a limit far beyond what a wake takes. One that reaches it while notifications
//! were pending, whose calls had all returned long before, was not woken for them. What follows is
//! looked into step by step, and written down: do further waits end, which take nothing in between?
//! Does a further notification end one? Is what was pending found by hand?

use crate::clock::{nanoseconds_per_tick, ticks};
use crate::wakes::ready::Ready;
use crate::wakes::shared::{Mail, Shared};
use crate::wakes::variant::{Heard, Waiter};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// No wake takes so long, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(1);
/// For so long no call may have returned before the end of a wait
/// that counts: a wake may be under way.
const QUIET: Duration = Duration::from_millis(500);
const FURTHER: [Duration; 3] = [Duration::from_millis(300); 3];
/// For so long the first notifier may take to give what it was asked for.
const PATIENCE: Duration = Duration::from_secs(30);
/// A call that does not return for so long while nothing happens will not.
const STALLED: Duration = Duration::from_secs(3);

/// What ended it after a wait was not woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The wait itself found something when its time was up.
    LastLook,
    /// A further wait, without a further notification.
    FurtherWait,
    /// A wait after a further notification.
    FurtherNotification,
    /// Nothing: it was taken by hand.
    ByHand,
    /// Nothing, and by hand nothing was found either.
    NotFound,
}

/// One wait that ended without a wake although something was pending.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// Since the beginning.
    pub at_ms: u64,
    pub seen: u64,
    /// Notifications whose calls had returned, and that had not been seen.
    pub pending: u64,
    /// How long the wait was, and for how long before its end no call had returned.
    pub waited_ms: u64,
    pub quiet_ms: u64,
    /// For how much of it the waiter was ready to run and did not get
    /// a processor. `None` if the kernel does not say.
    pub ready_ms: Option<u64>,
    /// Whether each further wait ended by a wake.
    pub further_waits: Vec<bool>,
    /// Whether the wait after each further notification ended by a wake.
    pub further_notifications: Vec<bool>,
    pub found_by_hand: u64,
    pub ending: Ending,
}

/// What came of one configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub sent: u64,
    pub seen: u64,
    pub waits: u64,
    /// Waits that ended by a wake with nothing behind it.
    pub for_nothing: u64,
    /// Waits that were as long as one that is not woken, but for most of which the waiter was ready
    /// to run: it was woken, and got no processor.
    pub starved: u64,
    /// Notifications whose call did not return although there was room.
    pub stalled: u64,
    pub unwoken: Vec<Evidence>,
}

impl Outcome {
    /// Was everything seen, and has every notifier stopped?
    pub fn is_over(&self) -> bool {
        self.seen >= self.sent && self.stalled == 0
    }
}

/// For how long nothing was sent.
struct Silence {
    published: u64,
    since: Instant,
}

impl Silence {
    fn lasts(&mut self, shared: &Shared) -> bool {
        let published = shared.published.load(Acquire);
        if published != self.published {
            *self = Self { published, since: Instant::now() };
        }
        self.since.elapsed() >= STALLED
    }
}

struct Probe<'a> {
    shared: &'a Shared,
    mail: Mail<'a>,
    ready: Ready,
    outcome: Outcome,
    began: Instant,
}

/// Waits for `notifiers` notifiers, whom it tells to stop after `lasting` or after `most` unwoken
/// waits, until all they sent was seen.
pub fn probe(
    waiter: &mut dyn Waiter,
    shared: &Shared,
    notifiers: u64,
    lasting: Duration,
    most: usize,
) -> Outcome {
    let mut probe = Probe {
        shared,
        mail: Mail::new(shared),
        ready: Ready::new(),
        outcome: Outcome::default(),
        began: Instant::now(),
    };
    let mut silence = Silence { published: 0, since: Instant::now() };
    loop {
        if probe.began.elapsed() >= lasting || probe.outcome.unwoken.len() >= most {
            shared.stop.store(1, Relaxed);
        }
        let all_seen = || probe.outcome.seen >= shared.published.load(Acquire);
        if shared.stop.load(Relaxed) == 1 && all_seen() {
            if shared.stopped.load(Acquire) == notifiers {
                break;
            }
            // A last burst may be about to begin, or its notifier to stop.
            std::thread::yield_now();
        } else if probe.wait(waiter) {
            continue;
        }
        if probe.outcome.unwoken.last().is_some_and(|last| last.ending == Ending::NotFound) {
            break;
        }
        let under_way = shared.published.load(Acquire) - shared.completed.load(Acquire);
        if silence.lasts(shared) && under_way > 0 && probe.pending() == 0 {
            probe.outcome.stalled = under_way;
            break;
        }
    }
    probe.outcome.sent = shared.published.load(Acquire);
    probe.outcome
}

impl Probe<'_> {
    fn pending(&self) -> u64 {
        // A number may be seen before the call that tells of it returns.
        self.shared.completed.load(Acquire).saturating_sub(self.outcome.seen)
    }

    fn see(&mut self, count: u64) {
        self.outcome.seen += count;
        self.shared.seen.store(self.outcome.seen, Release);
    }

    /// False if it ended by its time-out.
    fn wait(&mut self, waiter: &mut dyn Waiter) -> bool {
        let before = Instant::now();
        self.ready.note(before);
        let heard = waiter.wait(LIMIT, &self.mail);
        self.outcome.waits += 1;
        let waited = before.elapsed();
        let in_time = matches!(heard, Heard::Woken(_)) && waited < LIMIT;
        if in_time {
            if let Heard::Woken(count) = heard {
                self.outcome.for_nothing += u64::from(count == 0);
                self.see(count);
            }
            return true;
        }
        let quiet = ticks().saturating_sub(self.shared.last.load(Relaxed)) as f64 * nanoseconds_per_tick();
        let pending = self.pending();
        let ready = self.ready.since_noted();
        // Notified late and then without a processor, it was no longer asleep for all of the quiet. What a
        // hypervisor takes is in no account of the kernel's.
        let quiet_for = QUIET.as_nanos() as f64;
        let starved = ready.is_some_and(|ready| quiet - (ready.as_nanos() as f64) < quiet_for);
        if pending == 0 || quiet < quiet_for || starved {
            self.outcome.starved += u64::from(starved && pending > 0);
            if let Heard::Woken(count) = heard {
                self.see(count);
            }
            return false;
        }
        let mut evidence = Evidence {
            at_ms: self.began.elapsed().as_millis() as u64,
            seen: self.outcome.seen,
            pending,
            waited_ms: waited.as_millis() as u64,
            quiet_ms: (quiet / 1e6) as u64,
            ready_ms: ready.map(|ready| ready.as_millis() as u64),
            further_waits: Vec::new(),
            further_notifications: Vec::new(),
            found_by_hand: 0,
            ending: Ending::LastLook,
        };
        match heard {
            Heard::Woken(count) => self.see(count),
            Heard::TimedOut => self.look_into(waiter, &mut evidence),
        }
        self.outcome.unwoken.push(evidence);
        false
    }

    fn look_into(&mut self, waiter: &mut dyn Waiter, evidence: &mut Evidence) {
        for limit in FURTHER {
            let woken = self.again(waiter, limit);
            evidence.further_waits.push(woken);
            if woken {
                evidence.ending = Ending::FurtherWait;
                return;
            }
        }
        for limit in FURTHER {
            self.ask();
            let woken = self.again(waiter, limit);
            evidence.further_notifications.push(woken);
            if woken {
                evidence.ending = Ending::FurtherNotification;
                return;
            }
        }
        evidence.found_by_hand = waiter.sweep(&self.mail);
        self.see(evidence.found_by_hand);
        evidence.ending = if evidence.found_by_hand > 0 { Ending::ByHand } else { Ending::NotFound };
    }

    fn again(&mut self, waiter: &mut dyn Waiter, limit: Duration) -> bool {
        let Heard::Woken(count) = waiter.again(limit, &self.mail) else { return false };
        self.see(count);
        true
    }

    /// Has the first notifier notify once more.
    fn ask(&self) {
        let asked = self.shared.asked.fetch_add(1, Release) + 1;
        let until = Instant::now() + PATIENCE;
        while self.shared.given.load(Acquire) < asked && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
