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
    /// The image that has doorbell, as lab/command/package/container makes it
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

/// A folder in the claim: relative, and none above it; `$` would be expanded.
fn folder(text: &str) -> Result<&str, Usage> {
    let inside = !text.starts_with('/') && text.split('/').all(|part| !part.is_empty() && part != "..");
    if !inside || text.contains('$') {
        return Err(Usage(format!(
            "--results {text}: a folder in the claim is wanted, as in results or fleet/monday"
        )));
    }
    Ok(text)
}

/// One pod a node, none of which takes the place of another; a verdict that
/// fails its node is a result, and its pod's failure ends no other. No shell is
/// needed in the image. Each job has a folder of its own, where no older result
/// can stand for a node that gave none; each pod has a file of its own, since
/// one that was waiting for a free node may come to one that has been measured.
pub fn plan(args: &Args) -> Result<String, Usage> {
    let Args { nodes, image, claim, order } = args;
    let results = folder(&order.results)?;
    let mut words: Vec<String> = order.words()?.into_iter().map(|word| word.replace('$', "$$")).collect();
    let file = format!("{MOUNTED}/$(NODE).$(JOB_COMPLETION_INDEX).json");
    words.extend(["--quiet", "--name", "$(NODE)", "--output", &file].map(str::to_owned));
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let labels = json!({"app.kubernetes.io/name": "doorbell"});
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": format!("doorbell-{}-", order.verb()), "labels": labels},
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
                        "command": words,
                        "env": [field("NODE", "spec.nodeName"), field("JOB", "metadata.labels['job-name']")],
                        "volumeMounts": [{"name": "results", "mountPath": MOUNTED, "subPathExpr": format!("{results}/$(JOB)")}],
                    }],
                    "volumes": [{"name": "results", "persistentVolumeClaim": {"claimName": claim}}],
                },
            },
        },
    });
    Ok(format!("{job:#}\n"))
}
