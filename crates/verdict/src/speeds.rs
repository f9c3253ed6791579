// SPDX-License-Identifier: MIT OR Apache-2.0
//! At which speeds a run was measured.

use doorbell_results::machine::speed::Speed;
use doorbell_results::record::warning::TWO_SPEEDS;
use doorbell_results::record::{Histogram, Record, Series, Warning};

/// How fast the machine was while `records` were taken, by the fixed piece of work beside each slice of the reference; none where too few
/// trials had one.
pub fn speed(records: &[Record]) -> Option<Speed> {
    let works: Vec<&Series> = records.iter().filter_map(|record| record.work.as_ref()).collect();
    let mut whole = Histogram::new();
    for work in &works {
        whole.add_counters(&work.counters().ok()?);
    }
    let medians: Vec<f64> = works.iter().map(|work| work.p50_ns).collect();
    Speed::of(&whole, &medians)
}

/// What a run says once of a host that runs at two speeds; none of one that does not, or that was not seen to.
pub fn two_speeds(records: &[Record]) -> Option<Warning> {
    let speed = speed(records)?;
    speed.slow?;
    Some(Warning {
        name: TWO_SPEEDS.name.to_owned(),
        cause: speed.title(),
        effect: format!(
            "what has no reference inside its trials (what spins, sleeps long or carries a message) differs by up to {:.1} % between two runs for that \
             alone",
            speed.fit_for() * 100.0
        ),
        cure:
            "compare within one run; on a machine of its own, or with the frequency fixed, there is one speed"
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn a_run_on_a_host_of_two_speeds_says_so_once_and_one_that_saw_nothing_says_nothing() {
        let mut result = sample::result(&[sample::configuration("futex")], 40, |_, _| 16_000.0);
        assert_eq!(two_speeds(&result.records), None);
        let mut random = fastrand::Rng::with_seed(2);
        for record in &mut result.records {
            let speed = if record.block % 4 == 0 { 1.35 } else { 1.0 };
            let mut work = Histogram::new();
            (0..50).for_each(|_| work.record((200_000.0 * speed * (1.0 + 0.02 * random.f64())) as u64));
            record.work = Some(Series::from(&work));
        }
        let warning = two_speeds(&result.records).unwrap();
        assert_eq!(warning.cause, "this host runs at two speeds, 1.00 and 1.35, the slower 25 % of the time");
    }
}
