// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU: its model, its microcode, the features that waking and
//! timing depend on, its mitigations.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The CPU as the kernel describes it; hybrid machines are described by their first CPU.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Processor {
    /// Who made it: `GenuineIntel`, `AuthenticAMD`, on ARM the implementer's number.
    pub vendor: Option<String>,
    /// Its name, where it has one.
    pub model_name: Option<String>,
    /// Family, model and stepping as x86 numbers them; on ARM architecture, part and revision.
    pub model: Option<String>,
    /// Revision of its microcode.
    pub microcode: Option<String>,
    /// Those of its features that concern waking and timing, by the kernel's names.
    pub flags: Vec<String>,
    /// Whether the CPU itself says that it has user interrupts (CPUID leaf 7, EDX bit 5), whatever
    /// the kernel makes of them; missing where it was not asked.
    pub user_interrupts: Option<bool>,
    /// What the kernel does about each vulnerability of CPUs: `Not
    /// affected`, `Vulnerable …`, `Mitigation: …`.
    pub mitigations: BTreeMap<String, String>,
}

impl Processor {
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }
}
