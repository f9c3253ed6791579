// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which verbs have a result to bring home from a guest, and where it goes.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::ArgMatches;
use doorbell_results::record::{Warning, read, warning, write};

use crate::cli::kept::state_folder;
use crate::cli::usage::Usage;

/// Where a verb in the guest leaves its result with instructions as the clock, if the user named no
/// place: always the same, for another name would be another run.
pub(super) const RESULT: &str = "/root/result.json";

/// Whether a verb can do in a guest what it is for; why not, else. Files of the host are not there,
/// and files it writes are gone with the guest, except for the result of a verb that measures.
pub(super) fn fits_a_guest(verb: &str, arguments: &ArgMatches) -> Result<(), &'static str> {
    match verb {
        "vm" => Err("would be a guest in a guest, which is not supported; give a verb that measures"),
        "doctor" | "list" => Ok(()),
        // It shows its plan and writes nothing.
        _ if asked_for_its_plan(arguments) == Some(true) => Ok(()),
        "tune" => Err(
            "would find the cost of sleeping there and write it to a file that is gone with the guest; tune \
                       the machine that the programs run on",
        ),
        // Verbs that measure are those that can show their plan.
        _ if asked_for_its_plan(arguments).is_some() => Ok(()),
        _ => Err(
            "measures nothing there, and files of this machine are not there either; run it without a guest",
        ),
    }
}

fn asked_for_its_plan(arguments: &ArgMatches) -> Option<bool> {
    arguments.try_get_one::<bool>("dry_run").ok().flatten().copied()
}

/// Where the result of a verb goes on this machine.
pub(super) enum Output {
    /// It writes none to a file.
    None,
    /// Where the user wants it; the verb knows.
    Asked(PathBuf),
    /// Where we want it; the verb has to be told where to leave it, see [`RESULT`].
    Added(PathBuf),
}

pub(super) fn output(arguments: &ArgMatches) -> anyhow::Result<Output> {
    if asked_for_its_plan(arguments) != Some(false) {
        return Ok(Output::None);
    }
    match arguments.get_one::<PathBuf>("output") {
        Some(path) if path.as_os_str() == "-" => Ok(Output::None),
        Some(path) => {
            let path = std::path::absolute(path).context("the file for the result")?;
            if !path.parent().is_some_and(Path::is_dir) {
                return Err(
                    Usage(format!("{}: there is no such folder; make it first", path.display())).into()
                );
            }
            Ok(Output::Asked(path))
        }
        None => {
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
            let path = state_folder()?.join(format!("vm-{seconds}-{}.json", std::process::id()));
            Ok(Output::Added(path))
        }
    }
}

/// Saves the result the guest brought, with what its kernel
/// complained of, which nobody in the guest knew.
pub(super) fn keep(path: &Path, content: &[u8], complaints: &[String]) -> anyhow::Result<()> {
    let mut result = read::read_bytes(content.to_vec(), "the guest's result")?;
    if !complaints.is_empty() {
        result.warnings.push(Warning {
            name: warning::GUEST_COMPLAINED.name.to_owned(),
            cause: format!("the guest's kernel said: {}", complaints.join("; ")),
            effect: "something stood still that the verb did not see: its times, and what it calls \
                lost or late, may be of that"
                .to_owned(),
            cure: "run it again on a host that is less busy; if it comes again, the emulator or \
                the kernel is at fault"
                .to_owned(),
        });
    }
    Ok(write::write(&result, path)?)
}
