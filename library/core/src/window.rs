// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a waiter should spin before it goes to sleep, learned from its own waits.
//!
//! # Summary
//!
//! A sleep costs a **price** whatever the wait: two system calls, two context switches, the
//! notifier's wake. It also costs a **delay**: what was waited for is there, and the waiter is not
//! running yet. Spinning costs what it takes. For a known distribution of waits the best window is
//! the one with the least expected cost
//!
//! ```text
//! cost(w) = sum over waits t:  t if t <= w,  w + price + delay otherwise
//! ```
//!
//! [`Window`] keeps a decaying histogram of recent waits and chooses that `w` among 0, price/8,
//! price/4, price/2 and price. Beyond the price it never pays in processor time: a waiter that
//! spins at most as long as a sleep costs has spent at most twice the best choice, made with the
//! wait known beforehand (the ski-rental bound; Karlin et al., "Competitive randomized algorithms
//! for nonuniform problems", SODA 1990). KVM's halt polling
//! (`Documentation/virt/kvm/halt-polling.rst`) grows and shrinks one number for the same purpose;
//! the histogram also gets a mixture of short and long waits right.
//!
//! # Details
//!
//! **The delay** is held to be worth three quarters of the price. Without it a wait of nearly the
//! price would cost as much spun as slept, and the waiter would sleep although spinning answers at
//! once for the same processor time. With it the window spends at most 7/4 of what the thriftiest
//! window spends: its cost is not above that one's, whose sleeps, each of them paid with the price,
//! are all that the delay can weigh against. And where spinning the price ends four waits of seven,
//! it spins at least long enough that those four are not slept.
//!
//! **Ties** go to the wider window: it costs nothing while every wait hits, and a wait somewhat
//! longer than usual hits too.
//!
//! **A sleep's length** is the wait itself and the time the waiter needed to get running again (the
//! **latency**), which is taken off; but a wait that was spun for in vain was longer than the
//! window, whatever is left. Two waiters that wake each other and both sleep see each other's
//! latency as a long wait and would never find out that spinning pays. So now and then a waiter
//! **probes**: it spins regardless, and goes on doing so as long as it hits, for as many waits as the
//! other side's histogram needs to turn around. A probe that changed nothing makes the next one
//! rarer, from one in 16 waits to one in 1024. A device does not wait back ([`Window::of_device`]):
//! its probes are no longer than the price, for beyond that one that hits would only have spent
//! more than a sleep.
//!
//! **Learning** waits until the next wait begins: when one has ended, its caller is in a hurry.

/// What sleeping costs on this machine, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepCost {
    /// From the notifier's call to the sleeper's first instruction.
    pub latency: u32,
    /// The processor time both sides spend on one sleep and one wake.
    pub price: u32,
}

/// Bins end at price/8, price/4, price/2 and price, which are the windows there are: a narrower one
/// saves nothing, for the cost of a miss is the window. The last bin is open.
const BINS: usize = 5;
const NARROWEST_SHIFT: u32 = 3;
/// One wait's weight; with a decay of 1/8 a wait counts for half after five more.
const WEIGHT: u32 = 1 << 12;
const DECAY: u32 = 8;
/// Waits after which what was before them no longer counts: (7/8)³² = 1 %.
const FORGOTTEN: u32 = 32;
const FIRST_PROBE: u32 = 16;
/// Hits in a row after which a probe ends. Old waits have then
/// decayed to (7/8)¹⁶ = 12 %, here and at the peer.
const PROBE_LENGTH: u32 = 16;
const RAREST_PROBE: u32 = 1024;

/// The waits of one bin, older ones counting less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    /// How many, in units of 1/[`WEIGHT`].
    waits: u32,
    /// The sum of their lengths, in the same units of a nanosecond.
    length: u64,
}

/// How a wait ended that is not in the histogram yet.
#[derive(Clone, Copy, Debug)]
enum Ended {
    Hit(u32),
    Slept(u32),
}

/// The controller of one waiter. See the [module](self).
#[derive(Clone, Debug)]
pub struct Window {
    cost: SleepCost,
    /// How long a probe spins.
    probe: u32,
    bins: [Bin; BINS],
    chosen: u32,
    probe_every: u32,
    until_probe: u32,
    /// Waits left in the probe under way; 0 between probes.
    probe_left: u32,
    /// Waits that ended at once and are not in the histogram yet. They are older than `last`.
    at_once: u32,
    last: Option<Ended>,
}

impl Window {
    /// A controller that has seen nothing yet: its first wait spins for the full price.
    pub fn new(cost: SleepCost) -> Self {
        // Long enough to see a peer answer that has to be woken first.
        Self::probing(cost, cost.price.max(cost.latency.saturating_mul(2)))
    }

    /// The same for one who waits for a device: that never waits for him.
    pub fn of_device(cost: SleepCost) -> Self {
        Self::probing(cost, cost.price)
    }

    fn probing(cost: SleepCost, probe: u32) -> Self {
        Self {
            cost,
            probe,
            bins: [Bin::default(); BINS],
            chosen: cost.price,
            probe_every: FIRST_PROBE,
            until_probe: FIRST_PROBE,
            probe_left: 0,
            at_once: 0,
            last: None,
        }
    }

    /// How many nanoseconds to spin in the wait that begins now.
    pub fn plan(&mut self) -> u32 {
        match self.last.take() {
            None => {}
            Some(Ended::Hit(nanoseconds)) => self.learn_hit(nanoseconds),
            Some(Ended::Slept(nanoseconds)) => {
                self.learn(nanoseconds);
                if self.probe_left > 0 {
                    self.end_probe(self.probe_every.saturating_mul(2));
                }
            }
        }
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
        self.probe
    }

    /// The wait ended before it was worth reading a clock. As [`spun_and_hit`](Self::spun_and_hit)
    /// of 0, but costs one addition: it is counted when the next wait that was timed is.
    #[inline]
    pub fn hit_at_once(&mut self) {
        if self.probe_left == 0 {
            self.at_once = self.at_once.saturating_add(1);
        } else {
            self.spun_and_hit(0);
        }
    }

    /// The wait ended after `nanoseconds`, while spinning.
    #[inline]
    pub fn spun_and_hit(&mut self, nanoseconds: u32) {
        self.last = Some(Ended::Hit(nanoseconds));
    }

    /// The wait ended after `nanoseconds` in all, in a sleep, before
    /// which `spun` nanoseconds were spun in vain.
    #[inline]
    pub fn slept(&mut self, nanoseconds: u32, spun: u32) {
        let least = if spun > 0 { spun.saturating_add(1) } else { 0 };
        self.last = Some(Ended::Slept(nanoseconds.saturating_sub(self.cost.latency).max(least)));
    }

    fn learn_hit(&mut self, nanoseconds: u32) {
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

    fn end_probe(&mut self, next: u32) {
        self.probe_left = 0;
        self.probe_every = next.min(RAREST_PROBE);
        self.until_probe = self.probe_every;
    }

    fn bound(&self, bin: usize) -> u32 {
        // bin < BINS - 1 = NARROWEST_SHIFT + 1 wherever this is called.
        let bin = u32::try_from(bin).unwrap_or(NARROWEST_SHIFT);
        self.cost.price >> NARROWEST_SHIFT.saturating_sub(bin)
    }

    fn learn(&mut self, wait: u32) {
        for _ in 0..self.at_once.min(FORGOTTEN) {
            self.count(0);
        }
        self.at_once = 0;
        self.count(wait);
        self.chosen = self.cheapest();
    }

    fn count(&mut self, wait: u32) {
        for bin in &mut self.bins {
            // Rounded up, so that the last unit goes too.
            bin.waits = bin.waits.saturating_sub(bin.waits.div_ceil(DECAY));
            bin.length = bin.length.saturating_sub(bin.length.div_ceil(DECAY.into()));
        }
        let last = BINS.saturating_sub(1);
        let bin = (0..last).find(|&bin| wait <= self.bound(bin)).unwrap_or(last);
        let bin = &mut self.bins[bin];
        bin.waits = bin.waits.saturating_add(WEIGHT);
        bin.length = bin.length.saturating_add(u64::from(WEIGHT).saturating_mul(wait.into()));
    }

    fn cheapest(&self) -> u32 {
        let price = u64::from(self.cost.price);
        let sleep = price.saturating_add(price.saturating_mul(3) >> 2);
        let mut missed: u64 = self.bins.iter().map(|bin| u64::from(bin.waits)).sum();
        // Window 0: every wait is a sleep.
        let mut best = (missed.saturating_mul(sleep), 0);
        let mut hits: u64 = 0;
        for (number, bin) in self.bins[..BINS.saturating_sub(1)].iter().enumerate() {
            hits = hits.saturating_add(bin.length);
            missed = missed.saturating_sub(bin.waits.into());
            let miss = sleep.saturating_add(self.bound(number).into());
            let cost = hits.saturating_add(missed.saturating_mul(miss));
            if cost <= best.0 {
                best = (cost, self.bound(number));
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

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
                window.slept(wait + window.cost.latency, planned);
            }
        }
        (spun, sleeps)
    }

    /// Waits about `length` long, up to a tenth more or less.
    fn about(length: u32, count: u32) -> impl Iterator<Item = u32> {
        let mut seed = 0x9e37_79b9_u32;
        (0..count).map(move |_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            length / 10 * 9 + (seed >> 8) % (length / 5 + 1)
        })
    }

    /// What one policy had of the waits after it has learned.
    struct Had {
        median_latency: u32,
        busy: u64,
    }

    /// What a notification takes to reach a spinner.
    const SEEN: u32 = 250;

    impl Had {
        fn of(mut latencies: Vec<u32>, busy: u64) -> Self {
            latencies.sort_unstable();
            Self { median_latency: latencies[latencies.len() / 2], busy }
        }

        /// Spins for `window`, always.
        fn by_spinning(waits: &[u32], window: u32, wake: u32) -> Self {
            let latencies = waits.iter().map(|&wait| if wait <= window { SEEN } else { wake }).collect();
            let busy = waits.iter().map(|&wait| if wait <= window { wait } else { window + COST.price });
            Self::of(latencies, busy.map(u64::from).sum())
        }

        /// As `window` says. A sleeper runs again `wake` after it was rung for.
        fn by_learning(window: &mut Window, waits: &[u32], wake: u32) -> Self {
            let (mut latencies, mut busy) = (Vec::new(), 0);
            for &wait in waits {
                let planned = window.plan();
                if wait <= planned {
                    latencies.push(SEEN);
                    busy += u64::from(wait);
                    window.spun_and_hit(wait);
                } else {
                    latencies.push(wake);
                    busy += u64::from(planned + COST.price);
                    window.slept(wait + wake, planned);
                }
            }
            Self::of(latencies, busy)
        }
    }

    /// A wait between half the price and the price cost as much spun as slept, and was slept. A tie
    /// in processor time, and twenty times the latency.
    #[test]
    fn at_every_gap_it_answers_as_early_as_the_better_of_spinning_and_sleeping_for_at_most_twice_the_cpu() {
        // In tenths of the price. Near the price itself the better policy is a matter of chance.
        for gap in [1, 2, 4, 5, 6, 7, 8, 12, 15, 20, 30, 100, 1000] {
            // A wake may take less or more than it did when it was measured.
            for wake in [COST.latency / 10 * 7, COST.latency, COST.latency / 10 * 12, COST.latency * 4] {
                for taught_to_sleep in [false, true] {
                    let mut window = Window::new(COST);
                    if taught_to_sleep {
                        play(&mut window, [1_000_000; 100]);
                    }
                    let waits: Vec<u32> = about(COST.price / 10 * gap, 4000).collect();
                    Had::by_learning(&mut window, &waits, wake);
                    let adaptive = Had::by_learning(&mut window, &waits, wake);
                    let sleep = Had::by_spinning(&waits, 0, wake);
                    let spin = Had::by_spinning(&waits, COST.price, wake);
                    let forever: u64 = waits.iter().map(|&wait| u64::from(wait)).sum();
                    let best = sleep.median_latency.min(spin.median_latency);
                    let case = std::format!("gap {gap}, wake {wake}, taught to sleep: {taught_to_sleep}");
                    assert!(adaptive.median_latency * 10 <= best * 11, "{case}: {}", adaptive.median_latency);
                    let least = sleep.busy.min(spin.busy).min(forever);
                    assert!(adaptive.busy <= 2 * least, "{case}: {} ns against {least}", adaptive.busy);
                }
            }
        }
    }

    /// Three waits of ten are long: in processor time alone sleeping
    /// is cheaper, and seven of ten are answered late.
    #[test]
    fn what_usually_comes_within_the_price_is_spun_for() {
        let mut window = Window::new(COST);
        let waits: Vec<u32> = about(COST.price / 10 * 9, 4000)
            .enumerate()
            .map(|(number, wait)| if number * 7 % 10 < 3 { 10 * wait } else { wait })
            .collect();
        Had::by_learning(&mut window, &waits, COST.latency);
        let adaptive = Had::by_learning(&mut window, &waits, COST.latency);
        assert_eq!(adaptive.median_latency, SEEN);
        assert!(adaptive.busy <= 2 * Had::by_spinning(&waits, 0, COST.latency).busy);
    }

    #[test]
    fn a_wait_that_was_spun_for_in_vain_was_longer_than_the_window_however_short_its_sleep_seems() {
        let mut window = Window::new(COST);
        for _ in 0..10 {
            let planned = window.plan();
            window.slept(COST.latency + 100, planned);
            if planned == 0 {
                return;
            }
        }
        panic!("it spins on");
    }

    /// As long as every wait hits, a wide window costs nothing.
    #[test]
    fn a_wait_somewhat_longer_than_all_before_is_not_slept() {
        let mut window = Window::new(COST);
        let (_, sleeps) = play(&mut window, [900; 1000].into_iter().chain([COST.price / 4 * 3]));
        assert_eq!(sleeps, 0);
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

    /// What a sleep cost after a GPU (book/gpu.md): a probe of twice the latency ended after
    /// kernels of 100 µs, and went on for sixteen.
    #[test]
    fn behind_a_device_a_probe_spends_no_more_than_a_sleep() {
        const GPU: SleepCost = SleepCost { latency: 61_000, price: 24_000 };
        let spent = |mut window: Window, kernel: u32| {
            let (spun, sleeps) = play(&mut window, core::iter::repeat_n(kernel, 2000));
            (spun + sleeps * u64::from(GPU.price)) as f64 / (2000 * u64::from(GPU.price)) as f64
        };
        for kernel in [30_000, 60_000, 100_000, 120_000, 1_000_000] {
            let device = spent(Window::of_device(GPU), kernel);
            assert!(device < 1.02, "{device} times what sleeping costs behind {kernel} ns");
        }
        assert!(spent(Window::new(GPU), 100_000) > 1.1, "a peer is probed for longer");
        let short = spent(Window::of_device(GPU), 12_000);
        assert!(short < 0.51, "{short}: what ends within the price is spun for");
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
                window.slept(50_000, 0);
                window.plan();
            }
            assert_eq!(counted.bins, deferred.bins);
            assert_eq!(counted.chosen, deferred.chosen);
        }
    }

    #[test]
    fn spinning_resumes_when_waits_become_short_again() {
        let mut window = Window::new(COST);
        play(&mut window, [1_000_000; 500]);
        assert_eq!(window.chosen, 0);
        let (_, sleeps) = play(&mut window, [100; 100]);
        assert!(sleeps < 16, "slept {sleeps} of 100 short waits");
    }

    /// Two sides that answer each other at once, and each sleeps:
    /// each sees the other's latency as its wait.
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
                    sides[me].slept(peer_latency + COST.latency, planned);
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

        /// The same for short and long waits in any order.
        #[test]
        fn spending_on_a_mixture_stays_within_twice_the_best_fixed_window(
            lengths in (0_u32..8_000, 8_001_u32..80_000), order in proptest::collection::vec(0_u32..100, 3000), short: u32
        ) {
            let price = u64::from(COST.price);
            let waits = || order.iter().map(|&at| if at < short % 100 { lengths.0 } else { lengths.1 });
            let (spun, sleeps) = play(&mut Window::new(COST), waits());
            let best = [0, 1000, 2000, 4000, 8000].map(|window| {
                waits().map(|wait| if wait <= window { wait.into() } else { u64::from(window) + price }).sum::<u64>()
            });
            let best = best.into_iter().min().unwrap_or(0);
            prop_assert!(spun + sleeps * price <= 2 * best + 40 * price, "{} + {} against {}", spun, sleeps * price, best);
        }
    }
}
