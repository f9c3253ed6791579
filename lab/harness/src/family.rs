// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be measured comes in families: means of notification,
//! fan-outs, operations, tasks, I/O engines. The harness knows none
//! of their members; whoever starts it hands it the list of families.

use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::Record;
use doorbell_results::record::subject::{Contexts, Subject};

use crate::arena::Arena;
use crate::control::Control;
use crate::entry::Links;
use crate::fanout::fan::FanEntry;
use crate::roles::Role;
use crate::run_dir::RunDir;
use crate::site::Site;

#[expect(missing_debug_implementations, reason = "links are erased, and have nothing to show")]
pub struct OpenedSides {
    /// The part of the side that notifies first, and of the other.
    pub roles: [Role; 2],
    pub links: Box<dyn Links>,
    pub contexts: Contexts,
}

/// What a family opens its member with, in the trial's host.
#[derive(Debug)]
pub struct TrialContext<'trial> {
    pub configuration: &'trial Configuration,
    pub clock: Clock,
    pub site: &'trial Site<'trial>,
    pub arena: &'static Arena,
    pub control: &'static Control,
    pub run_dir: &'trial RunDir,
}

/// A family of what can be measured: all that is asked of a configuration because of its pattern.
pub trait Family: Sync {
    /// Whether configurations of `pattern` name its members.
    fn takes(&self, pattern: Pattern) -> bool;
    /// What the member that `configuration` names is, for its record;
    /// none if it has none of the name.
    fn subject(&self, configuration: &Configuration) -> Option<Subject>;
    /// What is lacking here for `configuration`, told before anything
    /// is started; none if it can be run.
    fn lacks(&self, configuration: &Configuration, machine: &Machine) -> Option<String>;
    /// By what number it may be done one by one with others of the same
    /// number, by one pair of sides: where it takes longer to be made
    /// ready than to be measured; none where it has a pair of its own.
    fn one_by_one(&self, configuration: &Configuration) -> Option<u32> {
        let _ = configuration;
        None
    }
    /// Bytes of message in shared memory, each way.
    fn message_bytes(&self, configuration: &Configuration) -> usize {
        configuration.size as usize
    }
    /// Bytes of shared memory beside messages and a mechanism's own words.
    fn own_bytes(&self, configuration: &Configuration) -> usize {
        let _ = configuration;
        0
    }
    /// The fan-out that `configuration` names, in a family of
    /// fan-outs; they are run by processes of their own.
    fn fan_out(&self, configuration: &Configuration) -> Option<Result<&'static FanEntry, String>> {
        let _ = configuration;
        None
    }
    /// Opens what the configuration names for two sides. An error says what refused.
    fn open(&self, trial: &TrialContext<'_>) -> Result<OpenedSides, String>;
    /// Adds to a record what follows from its own counts and this machine.
    fn derive(&self, record: &mut Record, machine: &Machine) {
        let _ = (record, machine);
    }
}

pub type Families = &'static [&'static dyn Family];

pub fn of(families: Families, pattern: Pattern) -> Option<&'static dyn Family> {
    families.iter().copied().find(|family| family.takes(pattern))
}
