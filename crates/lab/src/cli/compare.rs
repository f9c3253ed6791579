// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell compare`.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::common::{Exit, Terminal};
use super::usage::Usage;
use doorbell_report::comparison::comparison;
use doorbell_report::style::Style;
use doorbell_report::wording::EMULATED;
use doorbell_results::quantity::percent;
use doorbell_results::record::{ResultFile, read};
use doorbell_verdict::compare::{apart, compare};
use doorbell_verdict::provisional::provisional;

/// Arguments of `doorbell compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  no configuration is slower by as much as matters\n  3  at least one is\n  4  none was shown to be, and some may be, or the run is provisional\n\n\
    EXAMPLES\n  \
    doorbell ping futex --name before -o before.json\n  \
    doorbell ping futex --name after -o after.json\n  \
    doorbell compare before.json after.json")]
pub struct Args {
    /// The result file to compare with (`-` for standard input)
    baseline: PathBuf,
    /// The result files to compare
    #[arg(required = true)]
    candidates: Vec<PathBuf>,
    /// The least difference that matters
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "2.5%")]
    threshold: u32,
}

/// Runs `doorbell compare`.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let all = || std::iter::once(&args.baseline).chain(&args.candidates);
    if all().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Usage("standard input can be read only once; name the other file".to_owned()).into());
    }
    let files: Vec<ResultFile> = all().map(|path| read::read(path)).collect::<Result<_, _>>()?;
    for (file, path) in files.iter().zip(all()) {
        if let Some(reason) = apart(&files[0], file) {
            anyhow::bail!(
                "{} and {}: {reason}; their times have nothing in common: compare two results of one emulator, or take \
                 the guest's with `doorbell vm run --accel kvm`",
                args.baseline.display(),
                path.display()
            );
        }
    }
    let names: Vec<String> = files.iter().zip(all()).map(|(file, path)| name(file, path)).collect();
    let relevant = f64::from(args.threshold) / 1e6;
    let (mut regression, mut open) = (false, false);
    let mut text = String::new();
    for (candidate, name) in files.iter().zip(&names).skip(1) {
        if !text.is_empty() {
            text.push('\n');
        }
        let compared = compare(&files[0], candidate, relevant);
        if candidate.emulated() {
            text.push_str(&format!("{EMULATED}\n"));
        }
        let interfered = [&files[0], candidate].into_iter().find_map(provisional);
        if let Some(found) = interfered {
            text.push_str(&format!("{}\n", doorbell_report::answer::provisional(found)));
        }
        text.push_str(&comparison(&compared, &names[0], name, &Style::of_stdout()));
        regression |= compared.has_regression();
        open |= compared.is_open() || compared.rows.is_empty() || interfered.is_some();
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(match (regression, open) {
        (true, _) => Exit::Regression,
        (false, true) => Exit::Unfit,
        (false, false) => Exit::Done,
    })
}

/// The run's own name and where it lies.
fn name(file: &ResultFile, path: &Path) -> String {
    let path = path.display();
    file.name.as_ref().map_or_else(|| path.to_string(), |name| format!("{name} ({path})"))
}
