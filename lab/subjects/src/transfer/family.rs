// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O engines as the harness takes them.

use doorbell_harness::family::{Family, OpenedSides, TrialContext};
use doorbell_harness::role::Role;
use doorbell_machine::root::Root;
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::machine::block::BlockDevice;
use doorbell_results::record::Record;
use doorbell_results::record::io::CURE;
use doorbell_results::record::subject::{Noticed, Subject};

use super::{Drive, figures, find, target};

/// Why nothing can be polled for on `device`, whose driver would
/// refuse it or wait for an interrupt all the same.
fn no_queue(device: &BlockDevice) -> Option<String> {
    (device.polls == Some(false))
        .then(|| format!("{} has no queue to poll (queue/io_poll is 0). {CURE}", device.name))
}

#[derive(Debug)]
pub struct Transfers;

impl Family for Transfers {
    fn takes(&self, pattern: Pattern) -> bool {
        matches!(pattern, Pattern::Io { .. })
    }

    fn subject(&self, configuration: &Configuration) -> Option<Subject> {
        Some(find(&configuration.subject).ok()?.subject())
    }

    fn lacks(&self, configuration: &Configuration, machine: &Machine) -> Option<String> {
        let engine = match find(&configuration.subject) {
            Ok(engine) => engine,
            Err(unknown) => return Some(unknown.to_string()),
        };
        if let Err(lack) = (engine.available)() {
            return Some(lack.reason);
        }
        if engine.noticed == Noticed::ByPolling
            && let Some(device) =
                configuration.target.as_ref().and_then(|target| target::device(target, &Root::live()))
            && let Some(lack) = no_queue(&device)
        {
            return Some(lack);
        }
        let one_cpu = match configuration.placement.cpus {
            Some([first, second]) => first == second,
            None => machine.topology.usable.len() < 2,
        };
        (engine.kernel_thread && one_cpu).then(|| {
            format!("{} needs two CPUs: one for the waiter, one for the kernel's thread", engine.name)
        })
    }

    /// Transfers have a buffer of their own and no messages.
    fn message_bytes(&self, _: &Configuration) -> usize {
        0
    }

    fn open(&self, trial: &TrialContext<'_>) -> Result<OpenedSides, String> {
        let configuration = trial.configuration;
        let Pattern::Io { direction, direct } = configuration.pattern else {
            return Err("this is no transfer".to_owned());
        };
        let engine = find(&configuration.subject).map_err(|error| error.to_string())?;
        let target =
            configuration.target.as_ref().ok_or("the configuration names nothing to transfer to or from")?;
        let target = target::open(target, direction, direct, configuration.size, trial.run_dir.path());
        let target = target.map_err(|error| error.to_string())?;
        Ok(OpenedSides {
            roles: [Role::Initiate, Role::Respond],
            links: Box::new(Drive { engine, target }),
            contexts: configuration.contexts,
        })
    }

    fn derive(&self, record: &mut Record, _: &Machine) {
        figures::derive(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk without queues to poll refused what was polled for, and
    /// the whole run ended as if a trial had died.
    #[test]
    fn a_disk_without_queues_to_poll_lacks_them_and_one_that_does_not_tell_is_asked() {
        let device = |polls| BlockDevice { name: "vda".to_owned(), polls, ..BlockDevice::default() };
        assert!(no_queue(&device(Some(false))).unwrap().starts_with("vda has no queue to poll"));
        assert_eq!(no_queue(&device(Some(true))), None);
        assert_eq!(no_queue(&device(None)), None);
    }
}
