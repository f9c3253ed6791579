// SPDX-License-Identifier: MIT OR Apache-2.0
//! One stress for lost wake-ups over many means of waking, and a table of what was seen.

mod burst;
mod chunk;
mod configuration;
mod probe;
mod ready;
mod shared;
mod table;
mod variant;

use crate::partner::Place;
use crate::raw::{self, Raw};
use crate::rounds::rounds;
use crate::shuffle::Shuffle;
use anyhow::Context;
use chunk::Chunk;
use configuration::Configuration;
use variant::{Kind, Variant, variants};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: crate::arguments::Common,
    /// Seconds for all of it. A run that was cut goes on where it was
    /// if it is called again with the same words.
    #[arg(long, default_value_t = 60.0)]
    time: f64,
    /// Where the notifiers are.
    #[arg(long, value_delimiter = ',', default_values = ["threads", "processes"])]
    place: Vec<Place>,
    /// How many they are.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3, 8])]
    notifiers: Vec<usize>,
    /// Runs nothing: prints the table of what `--raw` holds.
    #[arg(long, requires = "raw")]
    table: bool,
    /// One part, as this program calls itself.
    #[arg(long, hide = true)]
    configuration: Option<String>,
}

/// All parts, in the order in which they run.
fn plan<'a>(arguments: &Arguments, variants: &'a [Variant]) -> Vec<(&'a Variant, Configuration)> {
    let mut configurations = Vec::new();
    for variant in variants.iter().filter(|variant| arguments.common.wants(variant.name)) {
        for &place in variant.places.iter().filter(|place| arguments.place.contains(place)) {
            for &notifiers in &arguments.notifiers {
                configurations.push((variant, place, notifiers));
            }
        }
    }
    let (often, seed) = (arguments.common.rounds_or(3), arguments.common.seed);
    let parts = (configurations.len() * often).max(1);
    let lasting_ms = (arguments.time * 1000.0 / parts as f64) as u64;
    let mut all = Vec::with_capacity(parts);
    let planned = rounds(&mut Shuffle::new(seed.into()), often, &[configurations.len()], |turn| {
        let (variant, place, notifiers): (&Variant, _, _) = configurations[turn.variant];
        let (round, name) = (turn.round, variant.name.to_owned());
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(all.len() as u32 * 16);
        all.push((variant, Configuration { round, variant: name, place, notifiers, lasting_ms, seed }));
        Ok::<_, std::convert::Infallible>(())
    });
    match planned {
        Ok(()) => all,
    }
}

fn chunks(arguments: &Arguments, variants: &[Variant]) -> anyhow::Result<Vec<Chunk>> {
    let path = arguments.common.raw.as_deref();
    let mut chunks: Vec<Chunk> = path.map_or(Ok(Vec::new()), raw::read)?;
    if arguments.table {
        return Ok(chunks);
    }
    let mut raw = Raw::new(path)?;
    for (variant, configuration) in plan(arguments, variants) {
        if chunks.iter().any(|chunk| chunk.configuration == configuration) {
            continue;
        }
        let chunk = chunk::run(variant, configuration);
        raw.line(&chunk)?;
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// False if what was planted was not found, or one of ours was not woken.
fn judge(chunks: &[Chunk]) -> bool {
    let unwoken = |chunk: &Chunk| {
        chunk.result.as_ref().map_or(0, |outcome| outcome.unwoken.len() as u64 + outcome.stalled)
    };
    let mut sound = true;
    for variant in table::variants_of(chunks) {
        let of_variant = || chunks.iter().filter(|chunk| variant.is_of(chunk));
        let count: u64 = of_variant().map(unwoken).sum();
        let failed = of_variant().any(|chunk| chunk.result.is_err());
        let wrong = match variant.kind {
            Kind::Planted => (count == 0 || failed).then_some(
                "the mistake put in was not found, or a part came to nothing: nothing follows from this run",
            ),
            Kind::Ours | Kind::ByHand => {
                (count > 0 || failed).then_some("a wait was not woken, or a part came to nothing")
            }
            Kind::Rival => None,
        };
        if let Some(wrong) = wrong {
            eprintln!("{} between {}: {wrong}", variant.name, variant.place);
            sound = false;
        }
    }
    sound
}

pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let variants = variants();
    if let Some(text) = &arguments.configuration {
        let configuration: Configuration =
            serde_json::from_str(text).with_context(|| format!("--configuration {text}"))?;
        let variant = variants
            .iter()
            .find(|variant| variant.name == configuration.variant)
            .with_context(|| format!("--configuration {text}: no such part"))?;
        chunk::serve(variant, &configuration);
    }
    let chunks = chunks(arguments, &variants)?;
    print!("{}", table::markdown(&chunks));
    Ok(judge(&chunks))
}
