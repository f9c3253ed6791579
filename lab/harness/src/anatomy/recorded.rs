// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wakes recorded on a machine of two CPUs: the pages of the kernel's buffers as they were read,
//! the layouts that its `format` files told, and the stamps of both sides.

use serde::Deserialize;

use super::collect::Join;
use super::cut::Stamps;
use crate::trace::event::{Decoder, KINDS};
use crate::trace::instance::Harvest;
use crate::trace::ring;
use doorbell_results::anatomy::Anatomy;
use doorbell_results::event::Event;
use doorbell_results::machine::clock::{Clock, Source};

/// What was recorded beside the buffers.
#[derive(Debug, Deserialize)]
pub(super) struct Recorded {
    pub(super) tasks: [i32; 2],
    pub(super) wakes: Vec<Stamps>,
}

pub(super) fn recorded() -> Recorded {
    serde_json::from_str(include_str!("../trace/fixture/wakes.json")).unwrap()
}

/// The clock of the machine on which it was recorded: 2 GHz.
pub(super) const CLOCK: Clock = Clock { source: Source::Tsc, ps_per_tick_q32: 500 << 32 };

/// The layouts of the machine on which it was recorded.
const FORMATS: [(&str, &str); 11] = [
    ("sys_enter", include_str!("../trace/fixture/raw_syscalls/sys_enter")),
    ("sys_exit", include_str!("../trace/fixture/raw_syscalls/sys_exit")),
    ("sched_waking", include_str!("../trace/fixture/sched/sched_waking")),
    ("sched_wakeup", include_str!("../trace/fixture/sched/sched_wakeup")),
    ("sched_switch", include_str!("../trace/fixture/sched/sched_switch")),
    ("sched_migrate_task", include_str!("../trace/fixture/sched/sched_migrate_task")),
    ("sched_wake_idle_without_ipi", include_str!("../trace/fixture/sched/sched_wake_idle_without_ipi")),
    ("ipi_send_cpu", include_str!("../trace/fixture/ipi/ipi_send_cpu")),
    ("reschedule_entry", include_str!("../trace/fixture/irq_vectors/reschedule_entry")),
    ("call_function_single_entry", include_str!("../trace/fixture/irq_vectors/call_function_single_entry")),
    ("cpu_idle", include_str!("../trace/fixture/power/cpu_idle")),
];

/// The recorded events as a kernel without the events `lacking` would have told them.
pub(super) fn events(lacking: &[&str]) -> Vec<Event> {
    let mut decoder = Decoder::default();
    for (name, format) in FORMATS.iter().filter(|(name, _)| !lacking.contains(name)) {
        let kind = KINDS.iter().find(|kind| kind.name == *name).unwrap();
        decoder.add(kind, format).unwrap();
    }
    let mut events = Vec::new();
    let buffers: [&[u8]; 2] =
        [include_bytes!("../trace/fixture/cpu0.raw"), include_bytes!("../trace/fixture/cpu1.raw")];
    for (cpu, pages) in (0..).zip(buffers) {
        for page in pages.chunks(4096) {
            ring::read(page, |time, record| events.extend(decoder.event(cpu, time, record))).unwrap();
        }
    }
    events.sort_by_key(|event| event.at);
    events
}

/// The recorded wakes as a kernel without the events `lacking` would have had them cut.
pub(super) fn anatomy(lacking: &[&str]) -> Anatomy {
    let Recorded { tasks, wakes } = recorded();
    let harvest = Harvest { events: events(lacking), lost: 0, whole_from: 0 };
    Join { clock: CLOCK, tasks }.collect(&wakes, &harvest, Vec::new())
}

/// Whoever shows anatomies is tested with these, and reaches nothing that makes them.
#[test]
fn the_samples_of_the_results_are_what_these_wakes_leave() {
    for (name, lacking) in
        [("whole", &[][..]), ("no-switches", &["sched_switch"]), ("no-interrupts", &["ipi_send_cpu"])]
    {
        let path = format!("{}/../results/src/anatomy/sample/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let made = anatomy(lacking);
        if std::env::var_os("DOORBELL_WRITE_FIXTURES").is_some() {
            std::fs::write(&path, serde_json::to_string(&made).unwrap() + "\n").unwrap();
        }
        let kept: Anatomy = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert!(
            kept == made,
            "{path} is another anatomy; after a change that is meant, run this with DOORBELL_WRITE_FIXTURES=1"
        );
    }
}
