// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is this machine fit to measure? One file per family of findings,
//! each a pure function of the [`Machine`].
//!
//! A finding changes nothing about the machine: the lab measures it as it was found, and says what
//! that does to the figures. Only what would make figures false is [`Severity::Unfit`].

use super::Machine;
use doorbell_results::about::About;
use doorbell_results::machine::doctor::*;

mod clocks;
mod cpus;
mod kernel;
mod others;
mod power;
mod virtualisation;

/// What a family says: everything of a [`Finding`] but its name and source.
#[derive(Debug)]
struct Verdict {
    severity: Severity,
    seen: String,
    effect: String,
    cure: String,
}

impl Verdict {
    fn ok(seen: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, seen: seen.into(), effect: String::new(), cure: String::new() }
    }

    fn bad(
        severity: Severity,
        seen: impl Into<String>,
        effect: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self { severity, seen: seen.into(), effect: effect.into(), cure: cure.into() }
    }

    fn note(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Note, seen, effect, cure)
    }

    fn warn(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Warn, seen, effect, cure)
    }

    fn unfit(seen: impl Into<String>, effect: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::bad(Severity::Unfit, seen, effect, cure)
    }
}

struct Family {
    about: About,
    source: &'static str,
    examine: fn(&Machine) -> Verdict,
}

/// Every family, in the order of the report: clocks first, for
/// without them nothing can be said. The one list to extend.
const FAMILIES: [Family; 21] = [
    clocks::CLOCK_SOURCE,
    clocks::TSC,
    clocks::SPEED,
    cpus::CPUS,
    others::LOAD,
    others::STEAL,
    others::QUOTA,
    others::SCHEDULING,
    virtualisation::VIRTUALISATION,
    power::GOVERNOR,
    power::TURBO,
    power::IDLE_STATES,
    power::DMA_LATENCY,
    cpus::SMT,
    cpus::ISOLATION,
    cpus::INTERRUPTS,
    kernel::PREEMPTION,
    kernel::MITIGATIONS,
    kernel::LIMITS,
    kernel::USER_INTERRUPTS,
    kernel::TRACING,
];

pub fn families() -> impl Iterator<Item = (About, &'static str)> {
    FAMILIES.iter().map(|family| (family.about, family.source))
}

/// Whether what stands in `/sys` is unknown rather than absent: every
/// kernel that shows it lists the present CPUs.
fn sysfs_is_hidden(machine: &Machine) -> bool {
    machine.topology.present.is_none()
}

/// What can be asked of systems that are not Linux.
const ELSEWHERE: [&str; 4] = ["tsc", "speed", "cpus", "virtualisation"];

/// One finding per family, those without fault among them.
pub fn examine(machine: &Machine) -> Vec<Finding> {
    FAMILIES
        .iter()
        .filter(|family| machine.kernel.system.is_none() || ELSEWHERE.contains(&family.about.name))
        .map(|family| {
            let Verdict { severity, seen, effect, cure } = (family.examine)(machine);
            let (name, source) = (family.about.name.to_owned(), family.source.to_owned());
            Finding { name, severity, seen, effect, cure, source }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::machine::scheduling::Scheduling;
    use doorbell_results::record::sample;

    #[test]
    fn every_finding_that_stands_beside_verdicts_is_one_that_the_doctor_has() {
        for name in BESIDE_VERDICTS {
            assert!(families().any(|(about, _)| about.name == name), "{name}");
        }
    }

    /// Under `chrt -i 0` and `nice -n 19` a run was recorded as `other`, without a warning.
    #[test]
    fn what_the_sides_inherit_that_no_plan_says_is_warned_of() {
        let mut machine = sample::machine();
        let found = |machine: &Machine| {
            examine(machine).into_iter().find(|finding| finding.name == "scheduling").unwrap()
        };
        machine.scheduling =
            Scheduling { policy: Some("idle".to_owned()), nice: Some(19), ..Scheduling::default() };
        let warned = found(&machine);
        assert_eq!((warned.severity, warned.seen.as_str()), (Severity::Warn, "policy idle, nice 19"));
        machine.scheduling = Scheduling { policy: Some("other".to_owned()), ..Scheduling::default() };
        assert_eq!(found(&machine).severity, Severity::Ok);
    }
}
