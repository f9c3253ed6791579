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
use doorbell_report::wording::foreign;
use doorbell_results::quantity::{percent, span};
use doorbell_results::record::verdict::{Finding, Status, Verdict};
use doorbell_results::record::{ResultFile, read};
use doorbell_verdict::compare::{apart, compare, unlike};
use doorbell_verdict::provisional::{Provisional, provisional};

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
    for (file, path) in files.iter().zip(all()) {
        if let Some(reason) = apart(&files[0], file) {
            anyhow::bail!(
                "{} and {}: {reason}; their times have nothing in common: compare two results of \
                 one emulator, or take the guest's with `doorbell vm run --accel kvm`",
                args.baseline.display(),
                path.display()
            );
        }
        if let Some(reason) = unlike(&files[0], file) {
            anyhow::bail!(
                "{} and {}: {reason}, and such times are not compared: measure both alike (a run \
                 sets policy, nice value and timer slack back itself, where this user may), or one \
                 beside the other with --live",
                args.baseline.display(),
                path.display()
            );
        }
    }
    let names: Vec<String> = files.iter().zip(all()).map(|(file, path)| name(file, path)).collect();
    let relevant = f64::from(args.threshold) / 1e6;
    let mut text = String::new();
    let mut verdicts = Vec::new();
    for (candidate, name) in files.iter().zip(&names).skip(1) {
        if !text.is_empty() {
            text.push('\n');
        }
        let compared = compare(&files[0], candidate, relevant);
        let interfered = [&files[0], candidate].into_iter().find_map(provisional);
        let style = Style::of_stdout();
        let doubts = doubts([&files[0], candidate], interfered);
        let mut judged = verdict(&compared, interfered.is_some());
        if judged.status == Status::Passed && !doubts.is_empty() {
            judged.status = Status::Inconclusive;
        }
        judged.reason =
            doubts.iter().map(String::as_str).chain([&*judged.reason]).collect::<Vec<_>>().join(" ");
        verdicts.push(judged);
        text.extend(doubts.iter().map(|doubt| style.wrap(doubt, 0)));
        text.push_str(&comparison(&compared, &names[0], name, &style));
    }
    let whole = one(verdicts, &names[1..]);
    if let Some(write) = writer {
        text = write(&format!("doorbell compare with {}", names[0]), &whole);
    }
    out::say(&text);
    Ok(Exit::from(whole.status))
}

/// What is said before a comparison of a baseline and a candidate.
fn doubts(files: [&ResultFile; 2], interfered: Option<Provisional>) -> Vec<String> {
    let cut = [("baseline", files[0]), ("candidate", files[1])].into_iter().filter(|(_, file)| file.partial);
    let cut = cut.map(|(which, _)| {
        format!("Partial: the {which} was interrupted; it is compared as far as it was measured.")
    });
    let interfered = interfered.map(doorbell_report::answer::provisional);
    foreign(files[1]).into_iter().chain(cut).chain(interfered).collect()
}

/// The verdicts on several candidates as one, in which each finding names its candidate.
fn one(verdicts: Vec<Verdict>, names: &[String]) -> Verdict {
    let several = verdicts.len() > 1;
    let mut whole =
        Verdict { status: Status::Passed, reason: String::new(), provisional: false, findings: Vec::new() };
    for (verdict, name) in verdicts.into_iter().zip(names) {
        whole.status = match (whole.status, verdict.status) {
            (Status::Failed, _) | (_, Status::Failed) => Status::Failed,
            (Status::Inconclusive, _) | (_, Status::Inconclusive) => Status::Inconclusive,
            _ => Status::Passed,
        };
        whole.provisional |= verdict.provisional;
        let of = |text: String| if several { format!("{name}: {text}") } else { text };
        let separator = if whole.reason.is_empty() { "" } else { " " };
        whole.reason.push_str(&format!("{separator}{}", of(verdict.reason)));
        let findings = verdict.findings.into_iter();
        whole
            .findings
            .extend(findings.map(|found| Finding { configuration: of(found.configuration), ..found }));
    }
    whole
}

/// The run's own name and where it lies.
fn name(file: &ResultFile, path: &Path) -> String {
    let path = path.display();
    file.name.as_ref().map_or_else(|| path.to_string(), |name| format!("{name} ({path})"))
}
