// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a waiter should spin before it goes to sleep, learned from its own waits.
//!
//! # Summary
//!
//! A sleep costs a **price** whatever the wait: two system calls, two context switches, the notifier's wake.
//! Spinning costs what it takes. For a known distribution of waits the best window is the one with the least
//! expected cost
//!
//! ```text
//! cost(w) = sum over waits t:  t if t <= w,  w + price otherwise
//! ```
//!
//! [`Window`] keeps a decaying histogram of recent waits and chooses that `w` among 0, price/8, price/4,
//! price/2 and price. Beyond the price it never pays: a waiter that spins at most as long as a sleep costs has
//! spent at most twice the best choice, made with the wait known beforehand (the ski-rental bound; Karlin et al.,
//! "Competitive randomized algorithms for nonuniform problems", SODA 1990). KVM's halt polling
//! (`Documentation/virt/kvm/halt-polling.rst`) grows and shrinks one number for the same purpose; the histogram
//! also gets a mixture of short and long waits right.
//!
//! # Details
//!
//! A wait that ended in a sleep lasted for the wait itself plus the time the waiter needed to get running again
//! (the **latency**), which is taken off. Two waiters that wake each other and both sleep see each other's
//! latency as a long wait and would never find out that spinning pays. So now and then a waiter **probes**: it
//! spins regardless, and goes on doing so as long as it hits, for as many waits as the other side's histogram
//! needs to turn around. A probe that changed nothing makes the next one rarer, from one in 16 waits to one in
//! 1024.

/// What sleeping costs on this machine, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepCost {
    /// From the notifier's call to the sleeper's first instruction.
    pub latency: u32,
    /// The processor time both sides spend on one sleep and one wake.
    pub price: u32,
}

/// Upper ends of the histogram's bins, as shifts of the price: price/64 … price. The last bin is open.
const BINS: usize = 8;
const FINEST_SHIFT: u32 = 6;
/// Windows narrower than price/8 save nothing: the cost of a miss is the window.
const NARROWEST_BIN: usize = 3;
/// One wait's weight; with a decay of 1/8 a wait counts for half after five more.
const WEIGHT: u32 = 1 << 12;
const DECAY_SHIFT: u32 = 3;
/// Waits after which what was before them no longer counts: (7/8)³² = 1 %.
const FORGOTTEN: u32 = 32;
const FIRST_PROBE: u32 = 16;
/// Hits in a row after which a probe ends. Old waits have then decayed to (7/8)¹⁶ = 12 %, here and at the peer.
const PROBE_LENGTH: u32 = 16;
const RAREST_PROBE: u32 = 1024;

/// The controller of one waiter. See the [module](self).
#[derive(Clone, Debug)]
pub struct Window {
    cost: SleepCost,
    bins: [u32; BINS],
    chosen: u32,
    probe_every: u32,
    until_probe: u32,
    /// Waits left in the probe under way; 0 between probes.
    probe_left: u32,
    /// Waits that ended at once and are not in the histogram yet.
    at_once: u32,
}

impl Window {
    /// A controller that has seen nothing yet: its first wait spins for the full price.
    pub fn new(cost: SleepCost) -> Self {
        Self {
            cost,
            bins: [0; BINS],
            chosen: cost.price,
            probe_every: FIRST_PROBE,
            until_probe: FIRST_PROBE,
            probe_left: 0,
            at_once: 0,
        }
    }

    /// How many nanoseconds to spin in the wait that begins now.
    pub fn plan(&mut self) -> u32 {
        if self.probe_left == 0 {
            if self.chosen > 0 {
                return self.chosen;
            }
            self.until_probe = self.until_probe.saturating_sub(1);
            if self.until_probe > 0 {
                return 0;
            }
            self.probe_left = PROBE_LENGTH;
        }
        // Long enough to see a peer answer that has to be woken first.
        self.cost.price.max(self.cost.latency.saturating_mul(2))
    }

    /// The wait ended before it was worth reading a clock. As [`spun_and_hit`](Self::spun_and_hit) of 0, but costs an
    /// addition: such hits can only speak for the window they were made in.
    #[inline]
    pub fn hit_at_once(&mut self) {
        if self.probe_left == 0 {
            self.at_once = self.at_once.saturating_add(1);
        } else {
            self.spun_and_hit(0);
        }
    }

    /// The wait ended after `nanoseconds`, while spinning.
    pub fn spun_and_hit(&mut self, nanoseconds: u32) {
        self.learn(nanoseconds);
        if self.probe_left > 0 {
            self.probe_left = self.probe_left.saturating_sub(1);
            if self.chosen > 0 {
                self.end_probe(FIRST_PROBE);
            } else if self.probe_left == 0 {
                self.end_probe(self.probe_every.saturating_mul(2));
            }
        }
    }

    /// The wait ended after `nanoseconds` in all, in a sleep.
    pub fn slept(&mut self, nanoseconds: u32) {
        self.learn(nanoseconds.saturating_sub(self.cost.latency));
        if self.probe_left > 0 {
            self.end_probe(self.probe_every.saturating_mul(2));
        }
    }

    fn end_probe(&mut self, next: u32) {
        self.probe_left = 0;
        self.probe_every = next.min(RAREST_PROBE);
        self.until_probe = self.probe_every;
    }

    /// The window that plain waits (no probes) get now, in nanoseconds.
    pub fn chosen(&self) -> u32 {
        self.chosen
    }

    fn bound(&self, bin: usize) -> u32 {
        // bin < BINS - 1 = FINEST_SHIFT + 1 wherever this is called.
        let bin = u32::try_from(bin).unwrap_or(FINEST_SHIFT);
        self.cost.price >> FINEST_SHIFT.saturating_sub(bin)
    }

    fn learn(&mut self, wait: u32) {
        for _ in 0..self.at_once.min(FORGOTTEN) {
            self.count(0);
        }
        self.at_once = 0;
        let last = BINS.saturating_sub(1);
        self.count((0..last).find(|&bin| wait <= self.bound(bin)).unwrap_or(last));
        self.chosen = self.cheapest();
    }

    fn count(&mut self, bin: usize) {
        for weight in &mut self.bins {
            *weight = weight.saturating_sub(*weight >> DECAY_SHIFT);
        }
        self.bins[bin] = self.bins[bin].saturating_add(WEIGHT);
    }

    fn cheapest(&self) -> u32 {
        let price = u64::from(self.cost.price);
        let mut total: u64 = self.bins.iter().map(|&weight| u64::from(weight)).sum();
        // Window 0: every wait is a sleep.
        let mut best = (total.saturating_mul(price), 0);
        let mut spent_in_hits: u64 = 0;
        for bin in 0..BINS.saturating_sub(1) {
            let bound = u64::from(self.bound(bin));
            let weight = u64::from(self.bins[bin]);
            // A wait in a bin is taken to last as long as the bin's upper end.
            spent_in_hits = spent_in_hits.saturating_add(weight.saturating_mul(bound));
            total = total.saturating_sub(weight);
            if bin < NARROWEST_BIN {
                continue;
            }
            let missed = total.saturating_mul(bound.saturating_add(price));
            let cost = spent_in_hits.saturating_add(missed);
            if cost < best.0 {
                best = (cost, self.bound(bin));
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COST: SleepCost = SleepCost { latency: 9_000, price: 8_000 };

    /// Plays waits of the given lengths and returns (nanoseconds spun, sleeps).
    fn play(window: &mut Window, waits: impl IntoIterator<Item = u32>) -> (u64, u64) {
        let (mut spun, mut sleeps) = (0_u64, 0_u64);
        for wait in waits {
            let planned = window.plan();
            if wait <= planned {
                spun += u64::from(wait);
                window.spun_and_hit(wait);
            } else {
                spun += u64::from(planned);
                sleeps += 1;
                window.slept(wait + COST.latency);
            }
        }
        (spun, sleeps)
    }

    #[test]
    fn short_waits_are_spun_and_never_slept() {
        let mut window = Window::new(COST);
        assert_eq!(play(&mut window, [100; 1000]), (100 * 1000, 0));
    }

    #[test]
    fn long_waits_are_slept_and_hardly_spun() {
        let mut window = Window::new(COST);
        let (spun, sleeps) = play(&mut window, [100_000; 2000]);
        assert_eq!(sleeps, 2000);
        assert!(spun < 2000 * u64::from(COST.price) / 50, "spun {spun} ns in vain");
    }

    #[test]
    fn hits_at_once_weigh_as_much_as_hits_of_no_length() {
        let (mut counted, mut deferred) = (Window::new(COST), Window::new(COST));
        for round in 0..200_u32 {
            for _ in 0..round % 7 {
                counted.plan();
                counted.spun_and_hit(0);
                deferred.plan();
                deferred.hit_at_once();
            }
            for window in [&mut counted, &mut deferred] {
                window.plan();
                window.slept(50_000);
            }
            assert_eq!(counted.bins, deferred.bins);
            assert_eq!(counted.chosen(), deferred.chosen());
        }
    }

    #[test]
    fn spinning_resumes_when_waits_become_short_again() {
        let mut window = Window::new(COST);
        play(&mut window, [1_000_000; 500]);
        assert_eq!(window.chosen(), 0);
        let (_, sleeps) = play(&mut window, [100; 100]);
        assert!(sleeps < 16, "slept {sleeps} of 100 short waits");
    }

    /// Two sides that answer each other at once, and each sleeps: each sees the other's latency as its wait.
    #[test]
    fn two_sleepers_find_out_that_spinning_pays() {
        let mut sides = [Window::new(COST), Window::new(COST)];
        for side in &mut sides {
            play(side, [1_000_000; 200]);
        }
        let mut slept = [true, true];
        for _ in 0..4000 {
            for me in 0..2 {
                let peer_latency = if slept[1 - me] { COST.latency } else { 100 };
                let planned = sides[me].plan();
                slept[me] = peer_latency > planned;
                if slept[me] {
                    sides[me].slept(peer_latency + COST.latency);
                } else {
                    sides[me].spun_and_hit(peer_latency);
                }
            }
        }
        assert_eq!(slept, [false, false]);
    }

    proptest! {
        /// The bound the module promises, for any sequence: waits of one length for a while, then another.
        #[test]
        fn spending_stays_within_twice_the_best_fixed_window(
            lengths in proptest::collection::vec(0_u32..40_000, 1..6), rounds in 200_usize..400
        ) {
            let price = u64::from(COST.price);
            let waits = || lengths.iter().flat_map(|&wait| core::iter::repeat_n(wait, rounds));
            let (spun, sleeps) = play(&mut Window::new(COST), waits());
            let spent = spun + sleeps * price;
            let always_sleep = waits().count() as u64 * price;
            let always_spin: u64 = waits().map(u64::from).sum();
            let spin_the_price: u64 = waits()
                .map(|wait| if u64::from(wait) <= price { u64::from(wait) } else { 2 * price })
                .sum();
            let best = always_sleep.min(always_spin).min(spin_the_price);
            // Plus what it costs to notice each change of the length.
            let learning = lengths.len() as u64 * 40 * price;
            prop_assert!(spent <= 2 * best + learning, "spent {} against {}", spent, best);
        }
    }
}
