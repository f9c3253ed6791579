// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the study of semaphores says of idle machines.

use super::{Bound, Reading, Source};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Quantity, ResultFile};

pub static SOURCE: Source = Source {
    name: "idling",
    about: "a study, in Chinese, of semaphores as notification in place of sockets, which found \
        its idle machine slower at times than the same under full load",
    more: "--load idle,full",
    command: "doorbell idle --load idle,full",
    machine: "a machine of its own, no guest, whose idle states are not switched off",
    claims: claims! {
        None, "Linux: some scenarios are quicker under full load than on the idle machine", Any Bound::below(1.0), under_load;
    },
};

/// Each mechanism, gap and placement under a load, as a multiple of its own mean without.
fn under_load(result: &ResultFile) -> Result<Reading, String> {
    let variants = result.variants();
    let mean = |configuration: &Configuration| {
        let variant = variants.iter().find(|variant| variant.configuration == configuration)?;
        Some(variant.histogram(Quantity::Wake)?.mean())
    };
    let ratio = |configuration: &Configuration| {
        let idle = Configuration { load: None, ..configuration.clone() };
        Some(mean(configuration)? / mean(&idle)?)
    };
    let loaded =
        variants.iter().filter(|variant| variant.configuration.load.is_some() && !variant.is_harness());
    let ratios: Vec<f64> = loaded.filter_map(|variant| ratio(variant.configuration)).collect();
    let best = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Reading {
        seen: format!("under load at best {best:.2} times the idle mean"),
        figures: ratios.into_iter().map(|ratio| (format!("{ratio:.2} times"), Some(ratio))).collect(),
        missing: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Decision::{CannotTell, Confirmed, Contradicted};
    use super::super::judge;
    use super::*;
    use doorbell_results::configuration::Load;
    use doorbell_results::record::sample;

    /// A run of sleeps with the mean of each configuration.
    fn of(idle_ns: Option<f64>, loaded_ns: f64) -> ResultFile {
        let load = Some(Load { kind: "sqrt".to_owned(), workers: 4, pinned: false });
        let configuration = sample::configuration("futex");
        let configurations = [configuration.clone(), Configuration { load, ..configuration }];
        let configurations = &configurations[usize::from(idle_ns.is_none())..];
        let mut result = sample::result(configurations, 6, |configuration, _| {
            if configuration.load.is_some() { loaded_ns } else { idle_ns.unwrap_or(0.0) }
        });
        result.plan.claims = Some(SOURCE.name.to_owned());
        result
    }

    #[test]
    fn load_helps_where_a_loaded_mean_is_clearly_lower() {
        let decision = |result: &ResultFile| judge(result)[0].decision;
        assert_eq!(decision(&of(Some(40_000.0), 10_000.0)), Confirmed);
        assert_eq!(decision(&of(Some(10_000.0), 40_000.0)), Contradicted);
        assert_eq!(decision(&of(Some(10_000.0), 9_900.0)), Contradicted, "within chance");
        assert_eq!(decision(&of(None, 10_000.0)), CannotTell);
    }
}
