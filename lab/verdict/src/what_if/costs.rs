// SPDX-License-Identifier: MIT OR Apache-2.0
//! What spinning, sleeping and waking cost on a machine, read from a result that measured it.

use super::Refusal;
use crate::tune::half_round_trip;
use doorbell_results::anatomy::program::{By, File, MachineCosts, Mechanism, Object, Wait, WakeCost};
use doorbell_results::configuration::{Pattern, WaitPolicy};
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{ResultFile, Variant};

/// What `result` says: of all pairs of different CPUs that on which sleeping costs least, as a spin
/// is never to cost more than the sleep that it replaces.
pub fn costs(result: &ResultFile) -> Result<MachineCosts, Refusal> {
    let variants = result.variants();
    let apart = |variant: &&Variant| {
        let cpus = variant.configuration.placement.cpus;
        variant.configuration.pattern.back_to_back() && cpus.is_some_and(|[one, other]| one != other)
    };
    let spins = |like: &Variant| {
        let same = |variant: &&Variant| {
            waits(variant, Waits::Spins) && variant.configuration.placement == like.configuration.placement
        };
        variants.iter().filter(apart).filter(same).filter_map(half_round_trip).min_by(f64::total_cmp)
    };
    let both = |sleeper: &Variant| {
        let cpus = sleeper.configuration.placement.cpus?;
        let (hand_over_ns, sleep_ns) = (spins(sleeper)?, sleeper.cpu_ns_per_wake()?);
        Some((cpus, MachineCosts { hand_over_ns, sleep_ns, wakes: Vec::new() }))
    };
    let sleepers = variants.iter().filter(apart).filter(|variant| waits(variant, Waits::Blocks));
    let cheapest =
        sleepers.filter_map(both).min_by(|(_, one), (_, other)| one.sleep_ns.total_cmp(&other.sleep_ns));
    let (pair, mut costs) = cheapest.ok_or(Refusal::NoCosts)?;
    costs.wakes = variants.iter().filter_map(|variant| wake(variant, pair)).collect();
    Ok(costs)
}

fn waits(variant: &Variant, waits: Waits) -> bool {
    variant.subject().notification().is_some_and(|notification| notification.waits == waits)
}

/// What a sleeping variant on the CPUs `pair`, or on one CPU, says of its mechanism.
fn wake(variant: &Variant, pair: [u32; 2]) -> Option<WakeCost> {
    let configuration = variant.configuration;
    let [one, other] = configuration.placement.cpus?;
    let Pattern::PingPong { gap_ns } = configuration.pattern else { return None };
    let usual = configuration.wait == WaitPolicy::Block && waits(variant, Waits::Blocks);
    (usual && (one == other || [one, other] == pair)).then_some(())?;
    Some(WakeCost {
        mechanism: configuration.subject.clone(),
        same_cpu: one == other,
        gap_ns,
        wake_ns: half_round_trip(variant)?,
        cpu_ns: variant.cpu_ns_per_wake()?,
    })
}

/// What a wake-up by `mechanism` costs on one CPU or on two, after a sleep of about `slept_ns`.
pub(super) fn price<'a>(
    costs: &'a MachineCosts,
    mechanism: &str,
    same_cpu: bool,
    slept_ns: f64,
) -> Result<&'a WakeCost, Refusal> {
    let fits = |wake: &&WakeCost| wake.mechanism == mechanism && wake.same_cpu == same_cpu;
    // Times lie apart by factors; back to back is a nanosecond here.
    let distance = |wake: &WakeCost| ((wake.gap_ns.max(1) as f64).ln() - slept_ns.max(1.0).ln()).abs();
    let nearest = |one: &&WakeCost, other: &&WakeCost| distance(one).total_cmp(&distance(other));
    let found = costs.wakes.iter().filter(fits).min_by(nearest);
    found.ok_or_else(|| Refusal::NoPrice { mechanism: mechanism.to_owned(), same_cpu })
}

/// The mechanism of `doorbell list` that wakes as an edge's does; none where the list has no such.
pub fn listed(mechanism: &Mechanism) -> Option<&'static str> {
    let Mechanism { wait, object, by } = mechanism;
    let file = match object {
        Object::File { file, .. } => Some(file),
        _ => None,
    };
    let family = match file {
        Some(File::Socket { family, .. }) => family.as_str(),
        _ => "",
    };
    Some(match (by, wait, file) {
        (By::Call, Wait::Futex, _) => "futex",
        (By::Call, Wait::Read, Some(File::Eventfd)) => "eventfd",
        (By::Call, Wait::Epoll, Some(File::Eventfd)) => "eventfd-epoll",
        (By::Call, Wait::Poll, Some(File::Eventfd)) => "eventfd-poll",
        (By::Call, Wait::Read, Some(File::Pipe)) => "pipe",
        (By::Call, Wait::Read, Some(File::Socket { .. })) if family == "unix" => "unix-stream",
        (By::Call, Wait::Read, Some(File::Socket { .. })) if family == "tcp" => "tcp",
        (By::Signal { .. }, Wait::Signal, _) => "signal-sigwaitinfo",
        _ => return None,
    })
}
