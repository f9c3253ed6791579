// SPDX-License-Identifier: MIT OR Apache-2.0
//! The warnings of a run: those that say the same are told once, with how often and of what.

use indexmap::IndexMap;

use super::axis;
use super::style::{Role, Style};
use crate::wording::counted;
use doorbell_results::record::{ResultFile, Warning};

/// Causes of one warning that the terminal tells; the report has them all.
const CAUSES_SHOWN: usize = 3;

/// Warnings of one name, effect and cure.
#[derive(Debug, Clone)]
pub struct Group<'result> {
    pub warning: &'result Warning,
    pub causes: Vec<Cause<'result>>,
}

/// One thing that was seen, and in which trials.
#[derive(Debug, Clone)]
pub struct Cause<'result> {
    /// What was seen, with values.
    pub seen: &'result str,
    /// The trials, in words; empty where it concerns the whole run.
    pub trials: Vec<String>,
}

impl Cause<'_> {
    /// The cause with where it was seen.
    pub fn sentence(&self) -> String {
        match self.trials.as_slice() {
            [] => self.seen.to_owned(),
            [trial] => format!("{trial}: {}", self.seen),
            trials => format!("{} ({})", self.seen, counted(trials.len() as u64, "trial")),
        }
    }
}

impl<'result> Group<'result> {
    /// What it was said of, in few words.
    pub fn times(&self) -> String {
        match self.causes.iter().map(|cause| cause.trials.len() as u64).sum() {
            0 => "the whole run".to_owned(),
            trials => format!("said {} of trials", counted(trials, "time")),
        }
    }

    /// Every warning of the run, then of its records.
    pub fn of(result: &'result ResultFile) -> Vec<Self> {
        let axes = axis::varying(result.plan.configurations.iter());
        let of_run = result.warnings.iter().map(|warning| (None, warning));
        let of_records = result
            .records
            .iter()
            .flat_map(|record| record.warnings.iter().map(move |warning| (Some(record), warning)));
        // A file may hold as many that differ as it likes.
        let mut groups = IndexMap::new();
        for (record, warning) in of_run.chain(of_records) {
            let trial = record.map(|record| {
                format!("{}, block {}", axis::label(&record.configuration, &axes), record.block)
            });
            let same = (&warning.name, &warning.effect, &warning.cure);
            let (_, causes) = groups.entry(same).or_insert_with(|| (warning, IndexMap::new()));
            let trials: &mut Vec<String> = causes.entry(warning.cause.as_str()).or_default();
            trials.extend(trial);
        }
        let causes = |causes: IndexMap<_, _>| {
            causes.into_iter().map(|(seen, trials)| Cause { seen, trials }).collect()
        };
        groups.into_values().map(|(warning, seen)| Self { warning, causes: causes(seen) }).collect()
    }
}

/// Every warning on the terminal.
pub fn text(result: &ResultFile, style: &Style) -> String {
    let groups = Group::of(result);
    if groups.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.paint(Role::Heading, "Warnings"));
    for group in groups {
        out.push_str(&format!("  {}\n", style.paint(Role::Warning, &style.text(&group.warning.name))));
        for cause in group.causes.iter().take(CAUSES_SHOWN) {
            out.push_str(&style.wrap(&format!("cause: {}", cause.sentence()), 4));
        }
        if group.causes.len() > CAUSES_SHOWN {
            let more = counted((group.causes.len() - CAUSES_SHOWN) as u64, "more cause");
            out.push_str(&style.wrap(&format!("cause: and {more} like these"), 4));
        }
        out.push_str(&style.wrap(&format!("effect: {}", group.warning.effect), 4));
        out.push_str(&style.wrap(&format!("cure: {}", group.warning.cure), 4));
    }
    out
}
