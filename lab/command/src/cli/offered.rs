// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of which shells complete what there is. The verbs check
//! what was typed, and say more than a list could.

use clap::builder::{PossibleValue, TypedValueParser};
use doorbell_results::record::need::{NEEDS, need};
use doorbell_subjects::{fan, mechanism};
use doorbell_subjects::{gpu, operation, task, transfer};

/// A text for which completions have suggestions.
#[derive(Debug, Clone)]
pub struct Offered {
    names: fn() -> Vec<&'static str>,
    parse: fn(&str) -> Result<String, String>,
}

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        self.parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

fn any(names: fn() -> Vec<&'static str>) -> Offered {
    Offered { names, parse: |text| Ok(text.to_owned()) }
}

/// Mechanisms, and the word `all`.
pub fn mechanisms() -> Offered {
    any(|| mechanism::all().iter().map(|entry| entry.name()).chain(["all"]).collect())
}

/// Mechanisms, and ways to wait for a GPU.
pub fn gates() -> Offered {
    any(|| {
        mechanism::all()
            .iter()
            .map(|entry| entry.name())
            .chain(gpu::all().iter().map(|way| way.name))
            .collect()
    })
}

/// Ways of fanning out.
pub fn fan_outs() -> Offered {
    any(|| fan::all().iter().map(|entry| entry.name).chain(["all"]).collect())
}

/// Operations.
pub fn operations() -> Offered {
    any(|| operation::all().iter().map(|operation| operation.name).chain(["all"]).collect())
}

/// Kinds of task.
pub fn kinds() -> Offered {
    any(|| task::all().iter().map(|kind| kind.name).chain(["all"]).collect())
}

/// Ways of transferring blocks.
pub fn engines() -> Offered {
    any(|| transfer::all().iter().map(|engine| engine.name).chain(["all"]).collect())
}

/// Ways to wait for a GPU.
pub fn gpu_ways() -> Offered {
    any(|| gpu::all().iter().map(|way| way.name).chain(["all"]).collect())
}

/// Needs of a pick.
pub fn needs() -> Offered {
    Offered {
        names: || NEEDS.iter().map(|need| need.name).collect(),
        parse: |text| need(text).map(|need| need.name.to_owned()).map_err(|unknown| unknown.to_string()),
    }
}
