// SPDX-License-Identifier: MIT OR Apache-2.0
//! An Indexed Job for Kubernetes.

use serde_json::json;

use super::super::usage::Usage;
use super::order::Order;

/// Arguments of `doorbell fleet plan kubernetes`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    /// The image that has doorbell and a shell
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// The PersistentVolumeClaim for the results; many nodes write to it
    #[arg(long, value_name = "NAME")]
    claim: String,
    #[command(flatten)]
    order: Order,
}

/// Where the claim is mounted.
const MOUNTED: &str = "/results";

/// One pod a node, none of which takes the place of another; a verdict that fails its node is a result and does not end the job.
pub fn plan(args: &Args) -> Result<String, Usage> {
    let Args { nodes, image, claim, order } = args;
    let line = order.on_a_node("\"$NODE\"", &format!("\"{MOUNTED}/$NODE.json\""))?;
    let script = format!("{line}; status=$?; case $status in 3 | 4) exit 0 ;; esac; exit $status");
    let labels = json!({"app.kubernetes.io/name": "doorbell"});
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("doorbell-{}", order.verb()), "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": nodes,
            "parallelism": nodes,
            "backoffLimitPerIndex": 0,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                        "labelSelector": {"matchLabels": labels},
                        "topologyKey": "kubernetes.io/hostname",
                    }]}},
                    "containers": [{
                        "name": "doorbell",
                        "image": image,
                        "command": ["sh", "-c", script],
                        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                        "volumeMounts": [{"name": "results", "mountPath": MOUNTED, "subPath": order.results}],
                    }],
                    "volumes": [{"name": "results", "persistentVolumeClaim": {"claimName": claim}}],
                },
            },
        },
    });
    Ok(format!("{job:#}\n"))
}
