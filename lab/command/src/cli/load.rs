// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--load`: how a load is written on the command line.

use doorbell_harness::load;
use doorbell_results::configuration::Load;
use doorbell_results::quantity::refused;

/// One condition of load, before the machine is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Idle,
    /// A kind, its workers if they were given, and whether they are pinned.
    Busy {
        kind: &'static str,
        /// Workers; none gives as many as a full load has.
        workers: Option<u32>,
        pinned: bool,
    },
}

/// Most workers: more than any machine has CPUs.
const MOST: u32 = 10_000;

/// A load: `idle`, `full`, or `KIND[:WORKERS][:pinned]`.
pub fn load(text: &str) -> Result<Asked, String> {
    if text == "idle" {
        return Ok(Asked::Idle);
    }
    let mut parts = text.split(':');
    let kind = match parts.next() {
        Some("full") | None => "sqrt",
        Some(name) => load::find(name).map_err(|unknown| unknown.to_string())?.name,
    };
    let (mut workers, mut pinned) = (None, false);
    for part in parts {
        match part.parse::<u32>() {
            _ if part == "pinned" && !pinned => pinned = true,
            Ok(count @ 1..=MOST) if workers.is_none() && !pinned => workers = Some(count),
            _ => {
                return Err(refused(
                    format_args!("'{part}' is neither a number of workers (1 to {MOST}) nor 'pinned'"),
                    &[format!("{kind}:4:pinned")],
                ));
            }
        }
    }
    Ok(Asked::Busy { kind, workers, pinned })
}

impl Asked {
    /// The load on a machine of which `cpus` CPUs may be used.
    pub fn on(&self, cpus: usize) -> Option<Load> {
        match self {
            Self::Idle => None,
            Self::Busy { kind, workers, pinned } => Some(Load {
                kind: (*kind).to_owned(),
                workers: workers.unwrap_or_else(|| load::full(cpus)),
                pinned: *pinned,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read_with_workers_and_pinning_in_that_order() {
        let busy = |kind, workers, pinned| Ok(Asked::Busy { kind, workers, pinned });
        assert_eq!(load("idle"), Ok(Asked::Idle));
        assert_eq!(load("full"), busy("sqrt", None, false));
        assert_eq!(load("full:20"), busy("sqrt", Some(20), false));
        assert_eq!(load("churn:3:pinned"), busy("churn", Some(3), true));
        assert_eq!(load("memory:pinned"), busy("memory", None, true));
        for wrong in ["", "sqr", "sqrt:0", "sqrt:x", "sqrt:1:2", "sqrt:pinned:2", "idle:3", "sqrt:10001"] {
            assert!(load(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_full_load_has_more_workers_than_cpus() {
        assert_eq!(load("full").unwrap().on(12).unwrap().workers, 20);
        assert_eq!(load("idle").unwrap().on(12), None);
    }
}
