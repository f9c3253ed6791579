// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the times of two results have anything in common, where one of them is an emulator's.

use doorbell_results::machine::virtualisation::{Virtualisation, Vm};
use doorbell_results::record::ResultFile;

/// Why the times of the two cannot be compared, `None` if they can: an emulator's times with those
/// of a machine, or of another emulator, another host of it, or another clock.
pub(super) fn apart(baseline: &ResultFile, candidate: &ResultFile) -> Option<String> {
    match (baseline.emulated(), candidate.emulated()) {
        (false, false) => None,
        (true, true) => {
            let [first, second] = [baseline, candidate].map(|file| &file.machine.virtualisation);
            (first.vm != second.vm).then(|| {
                format!("one was measured in {} and the other in {}", emulator(first), emulator(second))
            })
        }
        _ => Some("one was measured in an emulator and the other was not".to_owned()),
    }
}

fn emulator(virtualisation: &Virtualisation) -> String {
    let Some(Vm { accelerator, emulator, deterministic, host, .. }) = &virtualisation.vm else {
        return "an emulator that `doorbell vm` did not start".to_owned();
    };
    let clock = if *deterministic { ", instructions as the clock" } else { "" };
    let host = host.as_deref().unwrap_or("a host that is not known");
    format!("{emulator} as {accelerator}{clock} on {host}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    fn guest(change: impl FnOnce(&mut Vm)) -> ResultFile {
        let mut file = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        let mut vm = Vm {
            accelerator: "tcg".into(),
            emulator: "QEMU 10.0.13".into(),
            emulated: true,
            host: Some("A CPU, 2 CPUs".into()),
            ..Vm::default()
        };
        change(&mut vm);
        file.machine.virtualisation.emulated = vm.emulated;
        file.machine.virtualisation.vm = Some(vm);
        file
    }

    #[test]
    fn two_results_of_one_emulator_are_comparable() {
        assert_eq!(apart(&guest(|_| {}), &guest(|_| {})), None);
    }

    #[test]
    fn results_of_different_emulators_are_not_and_both_are_named() {
        type Change = fn(&mut Vm);
        let changes: [(Change, &str); 4] = [
            (|vm| vm.accelerator = "uintr".into(), "as uintr"),
            (|vm| vm.emulator = "QEMU 9.0".into(), "QEMU 9.0"),
            (|vm| vm.deterministic = true, "instructions as the clock"),
            (|vm| vm.host = Some("Another CPU, 64 CPUs".into()), "on Another CPU"),
        ];
        for (change, named) in changes {
            let reason = apart(&guest(|_| {}), &guest(change)).unwrap();
            assert!(reason.contains(named) && reason.contains("QEMU 10.0.13 as tcg on A CPU"), "{reason}");
        }
    }

    #[test]
    fn an_emulators_result_is_apart_from_a_machines() {
        let machine = guest(|vm| vm.emulated = false);
        assert!(apart(&machine, &guest(|_| {})).is_some());
    }
}
