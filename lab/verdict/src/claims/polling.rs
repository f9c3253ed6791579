// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of a maker of NVMe devices about polling in Linux 4.4: transfers one at a time,
//! synchronous and direct, woken by interrupts and polled.

use super::{Bound, Reading, Source};
use doorbell_results::configuration::Direction;
use doorbell_results::record::subject::{Noticed, Subject};
use doorbell_results::record::{Histogram, Quantity, ResultFile, Variant};

/// The part that an I/O engine plays in the claims.
pub const PARTS: [(&str, &str); 1] = [("sync", SYNCHRONOUS)];

const SYNCHRONOUS: &str = "synchronous, by interrupt";

pub static SOURCE: Source = Source {
    name: "polling",
    about: "an article, in Chinese, of an engineer of Memblaze on IO polling in Linux 4.4: fio \
        2.2.9, synchronous, direct, 4 KiB at random places of an NVMe device, woken by interrupts \
        and polled",
    more: "doorbell io on an NVMe device with poll queues",
    command: "doorbell io --device /dev/nvme1n1 --rw read,write --write-device nvme1n1",
    machine: "an NVMe device with poll queues (nvme.poll_queues=2) that may be overwritten",
    claims: claims! {
        Some(1), "a write to an NVMe device takes 20 us", Every about(20.0), write_takes;
        Some(2), "a context switch takes 5 us", Every about(5.0), switch_takes;
        Some(3), "that switch is a quarter of a write's time", Every about(25.0), share_of_switch;
        Some(4), "4 KiB random reads take 6 us less when polled for", Every about(6.0), |result| saved(result, Direction::Read);
        Some(5), "which is 7 % of a read by interrupt", Every about(7.0), |result| share_saved(result, Direction::Read);
        Some(5), "reads that are polled for have almost no jitter", Every Bound::below(0.5), |result| spread(result, Direction::Read);
        Some(6), "4 KiB random writes take 5 us less when polled for", Every about(5.0), |result| saved(result, Direction::Write);
        Some(7), "which is 20 % of a write by interrupt", Every about(20.0), |result| share_saved(result, Direction::Write);
        Some(7), "writes that are polled for are steadier", Every Bound::below(1.0), |result| spread(result, Direction::Write);
        Some(8), "what polling saves is about what a context switch takes", Every about(1.0), saved_by_switch;
    },
};

const BLOCK: u32 = 4096;

/// The article rounds to whole microseconds, and says "about".
const fn about(claimed: f64) -> Bound {
    Bound::about(claimed, claimed, 0.2)
}

/// What a claim about another machine's devices needs to be judged at all.
fn device(result: &ResultFile) -> Result<(), String> {
    if result.emulated() {
        return Err("an emulator's times are no device's".to_owned());
    }
    let mut records = result.records.iter().filter_map(|record| record.io.as_ref()?.device.as_ref());
    let Some(device) = records.next() else { return Err("no device was measured".to_owned()) };
    if !device.behind.is_empty() {
        return Err(format!("behind {} is {}", device.name, device.behind.join("; ")));
    }
    if !device.name.starts_with("nvme") {
        return Err(format!("{} is no NVMe device", device.name));
    }
    Ok(())
}

/// The synchronous way by interrupt, or the quickest way by polling, in this direction.
fn variant(result: &ResultFile, wanted: Noticed, direction: Direction) -> Option<(String, Histogram)> {
    let fits = |variant: &Variant| {
        let configuration = variant.configuration;
        configuration.pattern.transfers() == Some((direction, true))
            && configuration.size == BLOCK
            && configuration.load.is_none()
            && *variant.subject() == Subject::IoEngine { noticed: wanted, kernel_thread: false }
    };
    let variants = result.variants();
    let own = variants.iter().filter(|variant| fits(variant)).filter_map(|variant| {
        Some((variant.configuration.subject.clone(), variant.histogram(Quantity::Transfer)?))
    });
    match wanted {
        // What the article measured, and not a ring that is quicker for other reasons.
        Noticed::ByInterrupt => own.into_iter().find(|(name, _)| result.plan.plays(name, SYNCHRONOUS)),
        _ => own.min_by_key(|(_, times)| times.quantile(0.5)),
    }
}

/// Both ways in one direction: their names and means, microseconds. The article gives means.
struct Pair {
    waited: (String, Histogram),
    polled: (String, Histogram),
}

impl Pair {
    fn of(result: &ResultFile, direction: Direction) -> Result<Self, String> {
        device(result)?;
        let waited = variant(result, Noticed::ByInterrupt, direction);
        let polled = variant(result, Noticed::ByPolling, direction);
        let name = if direction == Direction::Read { "read" } else { "write" };
        let waited =
            waited.ok_or_else(|| format!("no 4 KiB {name}s by interrupt have figures (way sync)"))?;
        let polled = polled.ok_or_else(|| {
            format!(
                "no 4 KiB {name}s were proven to be polled for; try a device with poll queues \
                (doorbell explain poll-not-proven)"
            )
        })?;
        Ok(Self { waited, polled })
    }
    fn means_us(&self) -> [f64; 2] {
        [&self.waited.1, &self.polled.1].map(|times| times.mean() / 1e6)
    }
    fn text(&self) -> String {
        let [waited, polled] = self.means_us();
        format!("{} {waited:.1} us, {} {polled:.1} us, means", self.waited.0, self.polled.0)
    }
}

fn saved(result: &ResultFile, direction: Direction) -> Result<Reading, String> {
    let pair = Pair::of(result, direction)?;
    let [waited, polled] = pair.means_us();
    Ok(Reading::one(waited - polled, format!("{:.1} us less: {}", waited - polled, pair.text())))
}

fn share_saved(result: &ResultFile, direction: Direction) -> Result<Reading, String> {
    let pair = Pair::of(result, direction)?;
    let [waited, polled] = pair.means_us();
    let share = (1.0 - polled / waited) * 100.0;
    Ok(Reading::one(share, format!("{share:.1} %: {}", pair.text())))
}

/// The polled way's spread, 99th percentile less median, as a share of the other's.
fn spread(result: &ResultFile, direction: Direction) -> Result<Reading, String> {
    let pair = Pair::of(result, direction)?;
    let spread = |times: &Histogram| times.quantile(0.99).saturating_sub(times.quantile(0.5)) as f64 / 1e6;
    let [waited, polled] = [&pair.waited.1, &pair.polled.1].map(spread);
    let text = format!(
        "99th percentile less median: {} {waited:.1} us, {} {polled:.1} us",
        pair.waited.0, pair.polled.0
    );
    Ok(Reading::one(polled / waited.max(1e-6), text))
}

/// A write by interrupt: how it was made, and its mean in microseconds.
fn write_us(result: &ResultFile) -> Result<(String, f64), String> {
    device(result)?;
    let (name, times) = variant(result, Noticed::ByInterrupt, Direction::Write)
        .ok_or("no 4 KiB writes by interrupt have figures (way sync)")?;
    Ok((name, times.mean() / 1e6))
}

fn write_takes(result: &ResultFile) -> Result<Reading, String> {
    write_us(result).map(|(name, us)| Reading::one(us, format!("{name} {us:.1} us, mean")))
}

/// The switch on one core that the run measured beside its blocks, microseconds.
fn switch_us(result: &ResultFile) -> Result<f64, String> {
    if result.emulated() {
        return Err("an emulator's times are no machine's".to_owned());
    }
    let switches = result.primitives_called("same-core-switch");
    let mut own: Vec<f64> = switches.map(|primitive| primitive.p50_ns / 1e3).collect();
    own.sort_by(f64::total_cmp);
    own.get(own.len() / 2).copied().ok_or_else(|| "the run has no primitive cost of a switch".to_owned())
}

fn switch_takes(result: &ResultFile) -> Result<Reading, String> {
    let us = switch_us(result)?;
    let text =
        format!("{us:.2} us from thread to thread on one core, the primitive cost measured beside this run");
    Ok(Reading::one(us, text))
}

fn share_of_switch(result: &ResultFile) -> Result<Reading, String> {
    device(result)?;
    let (switch, write) = (switch_us(result)?, write_us(result)?.1);
    let share = switch / write * 100.0;
    Ok(Reading::one(share, format!("{share:.0} %: a switch takes {switch:.2} us")))
}

/// The mean of what is saved of a read and of a write, in switches.
fn saved_by_switch(result: &ResultFile) -> Result<Reading, String> {
    device(result)?;
    let switch = switch_us(result)?;
    let saved = |direction| {
        Pair::of(result, direction).map(|pair| pair.means_us()).map(|[waited, polled]| waited - polled)
    };
    let mean = (saved(Direction::Read)? + saved(Direction::Write)?) / 2.0;
    let text = format!("{mean:.1} us are saved, a switch on one core takes {switch:.2} us");
    Ok(Reading::one(mean / switch, text))
}

#[cfg(test)]
mod tests {
    use super::super::Decision::{CannotTell, Confirmed, Contradicted};
    use super::super::tests::decided as decision;
    use super::*;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::machine::block::BlockDevice;
    use doorbell_results::record::io::Io;
    use doorbell_results::record::{Outcome, Series, sample};

    /// A run on an NVMe device; `low_us` is where the times of a way begin.
    fn run(low_us: fn(&str, Direction) -> f64) -> ResultFile {
        let mut configurations = Vec::new();
        for subject in ["sync", "uring-iopoll"] {
            for direction in [Direction::Read, Direction::Write] {
                let pattern = Pattern::Io { direction, direct: true };
                configurations.push(Configuration { pattern, size: BLOCK, ..sample::configuration(subject) });
            }
        }
        let mut result = sample::result(&configurations, 2, |_, _| 1000.0);
        result.plan.claims = Some(SOURCE.name.to_owned());
        result.plan.parts = PARTS.map(|(subject, part)| (subject.to_owned(), part.to_owned())).into();
        result.machine.virtualisation = Default::default();
        let device = BlockDevice { name: "nvme0n1".into(), polls: Some(true), ..BlockDevice::default() };
        for record in &mut result.records {
            let Pattern::Io { direction, .. } = record.configuration.pattern else { unreachable!() };
            let times = sample::histogram(low_us(&record.configuration.subject, direction) * 1000.0, 1000);
            record.series = [(Quantity::Transfer, Series::from(&times))].into();
            record.io = Some(Io { device: Some(device.clone()), ..Io::default() });
        }
        result
    }

    /// The article's own figures. The mean of the samples is 1.4 times where they begin.
    fn article(subject: &str, direction: Direction) -> f64 {
        let mean = match (subject, direction) {
            ("sync", Direction::Read) => 86.0,
            (_, Direction::Read) => 80.0,
            ("sync", Direction::Write) => 25.0,
            (_, Direction::Write) => 20.0,
        };
        mean / 1.4
    }

    #[test]
    fn the_articles_own_figures_confirm_what_it_saves() {
        let result = run(article);
        for says in ["reads take 6 us less", "7 % of a read", "writes take 5 us less", "20 % of a write"] {
            assert_eq!(decision(&result, says).0, Confirmed, "{says}: {}", decision(&result, says).1);
        }
        assert_eq!(decision(&result, "switch takes 5 us").0, Contradicted, "the primitive cost is 2.77 us");
        assert_eq!(decision(&result, "about what a context switch").0, Contradicted);
        assert_eq!(decision(&result, "almost no jitter").0, Contradicted, "both have the same shape");
    }

    #[test]
    fn a_device_on_which_polling_saves_nothing_contradicts_it() {
        let result = run(|_, _| 50.0);
        for says in ["reads take 6 us less", "7 % of a read", "writes take 5 us less", "20 % of a write"] {
            assert_eq!(decision(&result, says).0, Contradicted, "{says}");
        }
        assert_eq!(decision(&result, "are steadier").0, CannotTell, "neither is");
    }

    #[test]
    fn what_was_not_proven_to_be_polled_and_what_is_no_nvme_device_decide_nothing() {
        let mut unproven = run(article);
        for record in unproven.records.iter_mut().filter(|record| record.configuration.subject != "sync") {
            record.outcome = Outcome::Implausible { violations: Vec::new() };
        }
        let (ruled, evidence) = decision(&unproven, "reads take 6 us less");
        assert_eq!(ruled, CannotTell);
        assert!(evidence.contains("proven to be polled"), "{evidence}");
        let mut virtual_disk = run(article);
        for record in &mut virtual_disk.records {
            record.io.as_mut().unwrap().device.as_mut().unwrap().name = "vda".into();
        }
        let (ruled, evidence) = decision(&virtual_disk, "reads take 6 us less");
        assert_eq!((ruled, evidence.as_str()), (CannotTell, "vda is no NVMe device"));
        assert_eq!(decision(&virtual_disk, "switch takes 5 us").0, Contradicted, "a switch needs no device");
    }
}
