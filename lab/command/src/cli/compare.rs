// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell compare`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::common::{Exit, Terminal};
use super::kept;
use super::out;
use super::usage::refuse;
use super::verdict::Form;
use doorbell_report::comparison::{comparison, verdict};
use doorbell_report::style::Style;
use doorbell_report::verdict_format::FORMATS;
use doorbell_results::quantity::{percent, span};
use doorbell_results::record::{ResultFile, read};
use doorbell_verdict::compare::{Comparison, compare};

mod live;

/// Arguments of `doorbell compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  no configuration is slower by as much as matters\n  3  at least one is\n  4  inconclusive: none was shown to be, and some may be;\n     or the run is provisional\n\n\
    EXAMPLES\n  \
    doorbell ping futex --name before -o before.json\n  \
    doorbell ping futex --name after -o after.json\n  \
    doorbell compare before.json after.json\n  \
    doorbell compare main after.json --json                      main was kept by --save-baseline main\n  \
    doorbell compare --live ./old/doorbell ./new/doorbell -- ping futex eventfd --gap 0\n  \
    doorbell compare --live 'sysctl -qw kernel.sched_autogroup_enabled=0; doorbell' \\\n                             \
    'sysctl -qw kernel.sched_autogroup_enabled=1; doorbell' -- ping futex --gap 0")]
pub struct Args {
    /// What to compare with: a file, a baseline kept by --save-baseline, or `-` for standard input;
    /// with --live a command of the shell that ends in the program
    baseline: PathBuf,
    /// The results to compare, likewise; with --live one such command
    #[arg(required = true)]
    candidates: Vec<PathBuf>,
    /// Measure instead: both commands are run with the arguments after `--` and take turns in
    /// slices of a few milliseconds, until every difference is decided
    #[arg(long, requires = "measured")]
    live: bool,
    /// How long --live may take
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "20s", requires = "live")]
    within: Duration,
    /// What both measure, with --live
    #[arg(last = true, value_name = "VERB AND ARGUMENTS", requires = "live")]
    measured: Vec<String>,
    /// The least difference that matters
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "2.5%")]
    threshold: u32,
    /// Print the verdicts as JSON; the same as --format json
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    form: Form,
}

/// Runs `doorbell compare`.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    if args.live {
        return live::run(&args, terminal);
    }
    let all = || std::iter::once(&args.baseline).chain(&args.candidates);
    if all().filter(|path| path.as_os_str() == "-").count() > 1 {
        return refuse("standard input can be read only once; name the other file");
    }
    let read = |path: &PathBuf| -> anyhow::Result<ResultFile> { Ok(read::read(&kept::find(path)?)?) };
    let files: Vec<ResultFile> = all().map(read).collect::<Result<_, _>>()?;
    let json = FORMATS.into_iter().find(|(name, _)| args.json && *name == "json").map(|(_, write)| write);
    let writer = json.or(args.form.writer());
    let relevant = f64::from(args.threshold) / 1e6;
    let mut compared = Vec::new();
    for (file, path) in files.iter().zip(all()).skip(1) {
        let one = compare(&files[0], file, relevant);
        if let Some(why) = one.refused {
            anyhow::bail!("{} and {}: {why}", args.baseline.display(), path.display());
        }
        compared.push((one, name(file, path)));
    }
    let baseline = name(&files[0], &args.baseline);
    let judged = verdict(&compared);
    let style = Style::of_stdout();
    let shown = |(one, name): &(Comparison, String)| comparison(one, &baseline, name, &style);
    out::say(&match writer {
        Some(write) => write(&format!("doorbell compare with {baseline}"), &judged),
        None => compared.iter().map(shown).collect::<Vec<_>>().join("\n"),
    });
    Ok(Exit::from(judged.status))
}

/// The run's own name and where it lies.
fn name(file: &ResultFile, path: &Path) -> String {
    let path = path.display();
    file.name.as_ref().map_or_else(|| path.to_string(), |name| format!("{name} ({path})"))
}
