// SPDX-License-Identifier: MIT OR Apache-2.0
//! Primitive costs in a process of their own.

use std::io::{self, Write};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, getpid};
use serde::{Deserialize, Serialize};

use super::{cache_line_hop, calls, same_core_switch, two_core_wake};
use crate::fork::die_with_parent;
use crate::launch::{complained, own_program};
use doorbell_machine::pinned::on;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::result::{Primitive, Primitives};

/// The hidden verb under which this program measures primitive costs.
pub const PRIMITIVES_VERB: &str = "primitive-costs-host";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Order {
    clock: Clock,
    cpus: [u32; 2],
    parent: i32,
}

/// Measures the primitive costs of the first of `cpus`, and those that take two CPUs between both,
/// unless both are the same; takes some 60 ms. `block` is the block that follows.
pub fn measure(clock: Clock, cpus: [u32; 2], block: u32) -> io::Result<Primitives> {
    let at_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let output = own_program()
        .arg(PRIMITIVES_VERB)
        .arg(serde_json::to_string(&Order { clock, cpus, parent: getpid().as_raw_nonzero().get() })?)
        .stdin(Stdio::null())
        .output()?;
    let primitives = serde_json::from_slice(&output.stdout).map_err(|_| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!(
            "the primitive costs could not be measured ({}): {}",
            output.status,
            complained(&complaint)
        ))
    })?;
    Ok(Primitives { block, at_unix_ns, primitives })
}

/// The whole life of a process that measures primitive costs.
pub fn main() -> io::Result<()> {
    // Its own process group: Ctrl-C at a terminal is for the command,
    // which lets this short measurement end.
    rustix::process::setpgid(None, None)?;
    let order = std::env::args_os().nth(2).and_then(|order| order.into_string().ok());
    let order = order.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let Order { clock, cpus, parent } = serde_json::from_slice(order.as_bytes())?;
    if !Pid::from_raw(parent).is_some_and(die_with_parent) {
        return Ok(());
    }
    let primitives = all(clock, cpus)?;
    #[expect(clippy::disallowed_methods, reason = "the command reads it, and not a person")]
    let mut out = io::stdout();
    out.write_all(&serde_json::to_vec(&primitives)?)
}

fn all(clock: Clock, cpus: [u32; 2]) -> io::Result<Vec<Primitive>> {
    let [first, second] = cpus;
    let mut primitives = on(first, || calls::all(clock))?;
    primitives.push(same_core_switch::measure(clock, first)?);
    if first != second {
        primitives.push(cache_line_hop::measure(clock, cpus)?);
        primitives.push(two_core_wake::measure(clock, cpus)?);
    }
    // A primitive cost that could not be counted is none: not one of zero nanoseconds.
    primitives.retain(|primitive| primitive.count > 0);
    Ok(primitives)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::primitives::PRIMITIVES;

    #[test]
    fn every_primitive_of_one_cpu_is_measured_and_those_of_two_where_there_are_two() {
        let usable: Vec<u32> = doorbell_machine::topology::read(&doorbell_machine::root::Root::live(), None)
            .usable
            .iter()
            .collect();
        let clock = doorbell_machine::clock::calibrate(Duration::from_millis(5));
        let cpus = [usable[0], usable[usable.len() - 1]];
        let primitives = all(clock, cpus).unwrap();
        let names: Vec<&str> = primitives.iter().map(|primitive| primitive.name.as_str()).collect();
        let one_cpu = ["clock", "system-call", "wake-nobody", "same-core-switch"];
        assert!(names.iter().all(|name| PRIMITIVES.iter().any(|about| about.name == *name)));
        assert_eq!(names[..4], one_cpu);
        assert_eq!(
            names[4..],
            if usable.len() > 1 { vec!["cache-line-hop", "two-core-wake"] } else { vec![] }
        );
        for primitive in &primitives {
            assert!(
                primitive.count > 0 && primitive.min_ns > 0.0 && primitive.p50_ns >= primitive.min_ns,
                "{primitive:?}"
            );
        }
    }

    #[test]
    fn a_cpu_that_cannot_be_had_is_an_error_that_names_it() {
        assert!(all(Clock::MONOTONIC, [8191, 8191]).unwrap_err().to_string().contains("8191"));
    }
}
