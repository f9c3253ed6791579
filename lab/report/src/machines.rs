// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of machines, in words.

use doorbell_verdict::machines::Type;

/// A type in words, what is known of it.
pub(super) fn name(of: &Type) -> String {
    let cpus = format!("{} CPUs", of.cpus);
    let below = of.hypervisor.as_ref().map(|hypervisor| format!("under {hypervisor}"));
    let parts = [of.product.clone(), of.processor.clone(), Some(cpus), below];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
