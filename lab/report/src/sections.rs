// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections that there are.

use super::section::Section;
use doorbell_results::plan::Plan;

/// Every section. The one list to extend.
static ALL: [&dyn Section; 13] = [
    &super::survey::Survey,
    &super::switch::Operations,
    &super::fanout::FanOuts,
    &super::tasks::Tasks,
    &super::io::Transfers,
    &super::gpu::Gpus,
    &super::net::Messages,
    &super::idle::Sleeps,
    &super::matrices::Matrices,
    &super::anatomy::Stages,
    &super::why::SlowWakes,
    &super::program::WakeGraph,
    &super::quantities::Quantities,
];

/// The sections of `plan` that this build has; without any, a table for each quantity.
pub fn of(plan: &Plan) -> Vec<&'static dyn Section> {
    let named = |name: &String| ALL.into_iter().find(|section| section.name() == name);
    let sections: Vec<_> = plan.sections.iter().filter_map(named).collect();
    if sections.is_empty() { vec![&super::quantities::Quantities] } else { sections }
}
