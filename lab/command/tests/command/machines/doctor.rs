// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the doctor finds on other machines, and how it is printed.

use doorbell_machine::doctor::examine;
use doorbell_report::doctor::{Detail, doctor};
use doorbell_report::style::Style;
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Source;
use doorbell_results::machine::clock_quality::{ClockQuality, Skew};
use doorbell_results::machine::doctor::{Severity, worst};
use doorbell_results::machine::line_hop::LineHop;
use doorbell_results::machine::load::Load;
use doorbell_results::machine::topology::Relation;

use super::recorded::{NAMES, machine};

fn examined(name: &str) -> Machine {
    let mut machine = machine(name);
    let cpus = machine.topology.usable.clone();
    machine.load = Some(Load {
        window_ns: 200_000_000,
        cpus,
        foreign_share: Some(0.02),
        foreign_resolution: None,
        busiest: None,
        steal_share: Some(0.0),
        share_resolution: Some(0.07),
        pressure_share: Some(0.0),
        load_average: Some(0.31),
    });
    machine.clock_quality = Some(ClockQuality {
        grid_ps: 500,
        smallest_step_ps: 18_000,
        cost_ps: 19_200,
        drift_ppm: Some(0.3),
        drift_resolution_ppm: Some(0.5),
        skews: vec![Skew { cpus: [0, 1], offset_ns: 2.0, bound_ns: 61.0 }],
        ..ClockQuality::default()
    });
    machine.findings = examine(&machine);
    machine
}

#[test]
fn the_whole_report_of_each_recorded_machine() {
    let style = Style { width: 110, unicode: true, ..Style::PLAIN };
    for name in NAMES {
        insta::assert_snapshot!(format!("doctor-{name}"), doctor(&examined(name), Detail::Full, &style));
    }
}

#[test]
fn the_brief_report_has_a_line_for_each_finding_that_is_not_ok() {
    insta::assert_snapshot!(doctor(&examined("amd-ccx"), Detail::Brief, &Style::PLAIN));
}

#[test]
fn whatever_is_not_ok_has_an_effect_a_cure_and_a_source() {
    for finding in NAMES.iter().flat_map(|name| examined(name).findings) {
        assert!(!finding.source.is_empty(), "{finding:?}");
        if finding.severity != Severity::Ok {
            assert!(!finding.effect.is_empty() && !finding.cure.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_machine_is_as_severe_as_it_is() {
    use Severity::{Note, Ok, Unfit, Warn};
    fn quality(machine: &mut Machine) -> &mut ClockQuality {
        machine.clock_quality.as_mut().unwrap()
    }
    type Case = (&'static str, &'static str, Severity, fn(&mut Machine));
    let cases: [Case; 12] = [
        ("a grid of a microsecond", "tsc", Unfit, |machine| quality(machine).grid_ps = 1_000_000),
        ("counters out of step", "tsc", Warn, |machine| quality(machine).skews[0].offset_ns = -900.0),
        ("drift", "tsc", Warn, |machine| quality(machine).drift_ppm = Some(-2000.0)),
        ("little load", "load", Ok, |machine| machine.load.as_mut().unwrap().foreign_share = Some(0.1)),
        ("load", "load", Warn, |machine| machine.load.as_mut().unwrap().foreign_share = Some(0.5)),
        ("much load", "load", Unfit, |machine| machine.load.as_mut().unwrap().foreign_share = Some(1.9)),
        ("stolen time", "steal", Warn, |machine| machine.steal_share_since_boot = Some(0.011)),
        ("one CPU", "cpus", Warn, |machine| machine.topology.usable = "0".parse().unwrap()),
        ("no CPU", "cpus", Unfit, |machine| machine.topology.usable = "".parse().unwrap()),
        ("an emulator", "virtualisation", Warn, |machine| machine.virtualisation.emulated = true),
        ("steps of 16 ns", "tsc", Note, |machine| {
            (machine.clock.source, quality(machine).grid_ps) = (Source::Cntvct, 16_000);
        }),
        ("steps of 100 ns", "tsc", Warn, |machine| {
            (machine.clock.source, quality(machine).grid_ps) = (Source::Cntvct, 100_000);
        }),
    ];
    for (what, name, expected, change) in cases {
        let mut machine = examined("micro-vm");
        change(&mut machine);
        let findings = examine(&machine);
        let found = findings.iter().find(|finding| finding.name == name).unwrap().severity;
        assert_eq!(found, expected, "{what}");
        assert!(expected != Unfit || worst(&findings) == Unfit, "{what}");
    }
}

/// One per cent of one CPU just now was held against the bound of all, however many there were.
#[test]
fn time_stolen_just_now_is_held_against_all_cpus_that_were_looked_at() {
    let mut machine = examined("micro-vm");
    machine.steal_share_since_boot = Some(0.0);
    let severities = [0.03, 0.05].map(|share| {
        let load = machine.load.as_mut().unwrap();
        (load.cpus, load.steal_share, load.share_resolution) =
            ("0-3".parse().unwrap(), Some(share), Some(0.0));
        examine(&machine).into_iter().find(|finding| finding.name == "steal").unwrap().severity
    });
    assert_eq!(severities, [Severity::Note, Severity::Warn]);
}

/// A guest's two CPUs, said to be two cores, were seen 10 ns apart at times and 110 ns at others.
#[test]
fn cpus_nearer_than_two_cores_can_be_are_siblings_that_the_host_hides() {
    // One fast batch is no sibling: the fastest was once held against
    // a threshold that comes from medians.
    let smt = |name: &str, cpus, median_ns| {
        let mut machine = examined(name);
        machine.line_hops = vec![LineHop { cpus, fastest_ns: 6.0, median_ns: Some(median_ns) }];
        examine(&machine).into_iter().find(|finding| finding.name == "smt").unwrap()
    };
    let near = smt("micro-vm", [0, 1], 10.2);
    assert_eq!(near.severity, Severity::Warn);
    assert!(
        near.seen.starts_with(
            "siblings may be hidden: a median hop of 10.2 ns between CPUs 0 and 1, which claim \
             separate cores (a rule of thumb"
        ),
        "{near:?}"
    );
    assert!(near.cure.contains("pin") && near.effect.contains("one core"), "{near:?}");
    for far in [16.0, 110.0] {
        assert_eq!(smt("micro-vm", [0, 1], far).severity, Severity::Note, "{far}");
    }
    // Those that are shown as siblings hide nothing.
    let shown = examined("two-socket-smt");
    let siblings = shown.topology.pair_for(Relation::SmtSibling).unwrap();
    assert!(!smt("two-socket-smt", siblings, 7.0).seen.contains("hidden"));
}
