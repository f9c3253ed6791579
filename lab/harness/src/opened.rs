// SPDX-License-Identifier: MIT OR Apache-2.0
//! A configuration that two sides are to run beside others, opened in
//! the memory that all of them share.

use std::sync::atomic::AtomicU8;

use crate::arena::Arena;
use crate::control::Control;
use crate::family::{self, Families, OpenedSides, TrialContext};
use crate::run_dir::RunDir;
use crate::site::Site;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;

pub(crate) struct Opened {
    pub(crate) control: &'static Control,
    pub(crate) payload: [&'static [AtomicU8]; 2],
    pub(crate) sides: OpenedSides,
}

pub(crate) fn open(
    clock: Clock,
    configuration: &Configuration,
    families: Families,
    arena: &'static Arena,
    site: &Site<'_>,
    run_dir: &RunDir,
) -> Result<Opened, String> {
    let family = family::of(families, configuration.pattern)
        .ok_or("nothing here runs a configuration of this pattern")?;
    let message = family.message_bytes(configuration);
    let control = Control::place(arena).map_err(|error| error.to_string())?;
    let bytes = || arena.bytes(message).map_err(|error| error.to_string());
    let payload = [bytes()?, bytes()?];
    let sides = family.open(&TrialContext { configuration, clock, site, arena, control, run_dir })?;
    Ok(Opened { control, payload, sides })
}
