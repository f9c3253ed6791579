// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run says about the cost of sleeping, and which of its
//! figures the library is to assume.

use crate::statistics::median;
use doorbell_results::configuration::Placement;
use doorbell_results::record::{Quantity, ResultFile, Variant};

/// The part of the mechanism whose sleep the library's adaptive waiter falls back on.
pub const SLEEPS: &str = "sleeps";

/// The part of the mechanism whose waiter spins.
pub const SPINS: &str = "spins";

/// What was found on each placement, nearest first, and the one that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// One for each placement on which sleeping was measured.
    pub placements: Vec<Placed>,
    /// Which of them the library is to assume; none if none was measured on chosen CPUs.
    pub chosen: Option<usize>,
}

/// What sleeping costs on one placement, nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub placement: Placement,
    /// From the notifier's call to the sleeper's own: half a round trip in which both sides slept.
    pub latency_ns: f64,
    /// The processor time of both sides for one sleep and one wake.
    pub price_ns: f64,
    /// From the notifier's store to the spinner's answer: half a
    /// round trip; none where spinning makes no sense.
    pub hit_ns: Option<f64>,
    /// Trials of sleeping that met interference, to their last try.
    pub interfered: usize,
    pub trials: usize,
}

/// The figures of `result`.
///
/// The library takes one price for all placements, as the most it spins. On a shared core it does
/// not spin at all, so what counts is the least price between two cores: with it no spin anywhere
/// costs more than the sleep it replaces.
pub fn tune(result: &ResultFile) -> Tuned {
    let variants = result.variants();
    let round_trips = |part: &'static str| {
        variants.iter().filter(move |variant| {
            let configuration = variant.configuration;
            result.plan.plays(&configuration.subject, part) && configuration.pattern.back_to_back()
        })
    };
    let placements: Vec<Placed> = round_trips(SLEEPS)
        .filter_map(|variant| {
            let spun = round_trips(SPINS)
                .find(|spun| spun.configuration.placement == variant.configuration.placement);
            Some(Placed {
                placement: variant.configuration.placement.clone(),
                latency_ns: half_round_trip(variant)?,
                price_ns: variant.cpu_ns_per_wake()?,
                hit_ns: spun.and_then(half_round_trip),
                interfered: variant.usable().filter(|record| record.had_interference()).count(),
                trials: variant.usable().count(),
            })
        })
        .collect();
    let between_two = |placed: &Placed| placed.placement.cpus.is_some_and(|[a, b]| a != b);
    let on_one = |placed: &Placed| placed.placement.cpus.is_some_and(|[a, b]| a == b);
    let chosen = cheapest(&placements, between_two).or_else(|| cheapest(&placements, on_one));
    Tuned { placements, chosen }
}

/// The median of half a round trip, nanoseconds.
pub(crate) fn half_round_trip(variant: &Variant<'_>) -> Option<f64> {
    Some(median(&variant.medians_ns(Quantity::RoundTrip))? / 2.0)
}

fn cheapest(placements: &[Placed], which: impl Fn(&Placed) -> bool) -> Option<usize> {
    (0..placements.len())
        .filter(|&index| which(&placements[index]))
        .min_by(|&a, &b| placements[a].price_ns.total_cmp(&placements[b].price_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Configuration;
    use doorbell_results::record::{Outcome, sample};

    fn on(subject: &str, relation: &str, cpus: [u32; 2]) -> Configuration {
        let placement = Placement { relation: relation.to_owned(), cpus: Some(cpus) };
        Configuration { placement, ..sample::configuration(subject) }
    }

    fn result(configurations: &[(Configuration, f64)]) -> ResultFile {
        let plain: Vec<Configuration> = configurations.iter().map(|(one, _)| one.clone()).collect();
        let low_ns = |wanted: &Configuration| configurations.iter().find(|(one, _)| one == wanted).unwrap().1;
        let mut result = sample::result(&plain, 3, |configuration, _| low_ns(configuration));
        result.plan.parts =
            [("naps", SLEEPS), ("turns", SPINS)].map(|(name, part)| (name.into(), part.into())).into();
        result
    }

    #[test]
    fn the_cheapest_sleep_between_two_cores_counts_and_is_half_a_round_trip() {
        let tuned = tune(&result(&[
            (on("naps", "same-core", [0, 0]), 2000.0),
            (on("naps", "other-node", [0, 9]), 12000.0),
            (on("naps", "same-l3", [0, 1]), 8000.0),
            (on("turns", "same-l3", [0, 1]), 300.0),
        ]));
        let relations: Vec<&str> =
            tuned.placements.iter().map(|placed| placed.placement.relation.as_str()).collect();
        assert_eq!(relations, ["same-core", "other-node", "same-l3"]);
        let chosen = &tuned.placements[tuned.chosen.unwrap()];
        assert_eq!(chosen.placement.relation, "same-l3");
        assert!((4000.0..6000.0).contains(&chosen.latency_ns), "{chosen:?}");
        // The sample's sides take 13/30 of their windows each, and a
        // window is two round trips of the shortest.
        let spent = 2.0 * (0.1 + 1.0 / 3.0) * 2.0 * 8000.0 / 2.0;
        assert!((chosen.price_ns - spent).abs() < 2.0, "{chosen:?} against {spent}");
        assert!(chosen.hit_ns.is_some_and(|hit| (150.0..250.0).contains(&hit)), "{chosen:?}");
        assert_eq!(tuned.placements[0].hit_ns, None);
    }

    #[test]
    fn with_one_core_its_cost_is_assumed() {
        let tuned = tune(&result(&[(on("naps", "same-core", [0, 0]), 2000.0)]));
        assert_eq!(tuned.chosen, Some(0));
    }

    #[test]
    fn trials_that_failed_do_not_count() {
        let mut result = result(&[(on("naps", "same-l3", [0, 1]), 8000.0)]);
        for record in &mut result.records {
            record.outcome = Outcome::Failed { cause: "killed".to_owned() };
        }
        assert_eq!(tune(&result), Tuned { placements: Vec::new(), chosen: None });
    }
}
