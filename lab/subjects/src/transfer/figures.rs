// SPDX-License-Identifier: MIT OR Apache-2.0
//! What follows from the counts of transfers: interrupts and CPU time by transfer, and the rate
//! from which on polling costs less.

use doorbell_results::configuration::Pattern;
use doorbell_results::figure::transfer::{BREAK_EVEN, CPU, INTERRUPTS, THREAD_CPU};
use doorbell_results::record::io::Io;
use doorbell_results::record::subject::Noticed;
use doorbell_results::record::{Figure, Record, SideCounters, Warning, warning};
/// Adds to a record of transfers what follows from its counts; leaves every other record as it is.
pub(crate) fn derive(record: &mut Record) {
    let (Pattern::Io { .. }, Some(counted)) = (record.configuration.pattern, record.io.clone()) else {
        return;
    };
    // The side that leaves at once has counted nothing.
    record.sides.retain(|side| side.window_ns > 0);
    let window_ns = record.sides.first().map_or(0, |side| side.window_ns);
    if counted.kernel_thread_ns > 0 {
        record.sides.push(SideCounters {
            side: "kernel thread".to_owned(),
            system_ns: counted.kernel_thread_ns,
            window_ns,
            ..SideCounters::default()
        });
    }
    let transfers = record.tally.seen as f64;
    if transfers == 0.0 {
        return;
    }
    let spent = record.sides.iter().map(|side| side.user_ns + side.system_ns).sum::<u64>() as f64;
    let mut figure = |name: &str, value: f64, unit: &str, formula: String| {
        let [name, unit] = [name, unit].map(str::to_owned);
        record.figures.push(Figure { name, value, unit, formula });
    };
    figure(CPU, spent / transfers, "ns", format!("{spent} ns of all threads / {transfers} transfers"));
    if counted.kernel_thread_ns > 0 {
        let ns = counted.kernel_thread_ns;
        figure(THREAD_CPU, ns as f64 / transfers, "ns", format!("{ns} ns / {transfers} transfers"));
    }
    if let Some(own) = counted.own_interrupts(record.tally.seen) {
        let all = counted.interrupts.unwrap_or(0);
        let formula = format!("{own} / {transfers} transfers ({all} counted, the rest may be others')");
        figure(INTERRUPTS, own as f64 / transfers, "count", formula);
    }
    let by_interrupt = record.subject.noticed() == Some(Noticed::ByInterrupt);
    if by_interrupt && counted.kernel_thread_ns == 0 && spent > 0.0 {
        let rate = 1e9 * transfers / spent;
        let formula = "a second of CPU / CPU per transfer: at this rate waiting for interrupts \
            takes a whole CPU, as polling always does";
        figure(BREAK_EVEN, rate, "1/s", formula.to_owned());
    }
    record.warnings.extend(masked(record, &counted));
}

/// What stands between the transfers and a medium.
fn masked(record: &Record, counted: &Io) -> Option<Warning> {
    let device = counted.device.as_ref().filter(|_| !record.subject.is_harness())?;
    (!device.behind.is_empty()).then(|| Warning {
        name: warning::BEHIND_THE_DEVICE.name.to_owned(),
        cause: format!("behind {} is {}", device.name, device.behind.join("; ")),
        effect: "times are those of everything behind it; the cost of an interrupt beside polling \
            is this machine's"
            .to_owned(),
        cure: "for a medium's own time measure where the device is the hardware's (PCI \
            pass-through, or the host)"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Direction;
    use doorbell_results::machine::block::BlockDevice;
    use doorbell_results::record::sample;

    #[test]
    fn counts_become_figures_and_a_kernels_thread_is_a_side_of_its_own() {
        let mut record = sample::record(sample::configuration("sync"), 0, 40_000.0);
        record.configuration.pattern = Pattern::Io { direction: Direction::Read, direct: true };
        record = sample::renamed(record);
        record.figures.clear();
        record.sides.truncate(1);
        (record.sides[0].user_ns, record.sides[0].system_ns) = (0, 5_000_000);
        let device = BlockDevice {
            name: "vda".into(),
            interrupts: Some([12].into()),
            behind: vec!["a virtual disk".into()],
            ..BlockDevice::default()
        };
        record.io = Some(Io {
            device: Some(device),
            interrupts: Some(1010),
            device_operations: Some(1000),
            other_operations: Some(10),
            ..Io::default()
        });
        let figure = |record: &Record, name: &str| {
            record.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
        };
        let mut polled = record.clone();
        derive(&mut record);
        assert_eq!(figure(&record, CPU), Some(5000.0));
        assert_eq!(figure(&record, INTERRUPTS), Some(1.0));
        assert_eq!(figure(&record, BREAK_EVEN), Some(200_000.0));
        assert_eq!(record.warnings[0].name, "behind-the-device");

        polled.configuration.subject = "uring-sqpoll".into();
        polled = sample::renamed(polled);
        polled.io.as_mut().unwrap().kernel_thread_ns = 90_000_000;
        derive(&mut polled);
        assert_eq!(figure(&polled, CPU), Some(95_000.0));
        assert_eq!(polled.sides[1].system_ns, 90_000_000);
        assert_eq!(figure(&polled, BREAK_EVEN), None, "its thread polls already");
    }
}
