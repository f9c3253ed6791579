// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell vm`: this program in a virtual machine.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::{ArgMatches, Subcommand, ValueEnum};
use doorbell_vm::accelerator::Accelerator;
use doorbell_vm::emulator::{self, Emulator};
use doorbell_vm::hardware::{Hardware, Nvme};
use doorbell_vm::initramfs::Contents;
use doorbell_vm::order::{Order, PROGRAM, TerminalSize};
use doorbell_vm::packages::{self, Part};
use doorbell_vm::program::Program;
use doorbell_vm::run::{Guest, Observer, Report, RunError, run as boot};
use doorbell_vm::shell::shell;

use super::common::{Exit, Terminal, Usage, state_folder};
use crate::machine::root::Root;
use crate::machine::virtualisation::{self, Virtualisation, Vm};
use crate::quantity::duration;
use crate::record::write;
use crate::view::summary::counted;

/// Until a translated guest's first process runs: 5 s on two idle cores, and an emulator is often not alone.
const BOOT_EMULATED: Duration = Duration::from_secs(120);
/// Until a guest's first process runs under KVM: a second where it works. Where it does not, nothing ever comes.
const BOOT_KVM: Duration = Duration::from_secs(15);

/// The exit status of an interrupted command.
const INTERRUPTED: u8 = 130;

/// What the command in the guest may know of this terminal.
const PASSED_ON: [&str; 8] =
    ["TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LANG", "LC_ALL", "LC_CTYPE", "RUST_BACKTRACE"];

/// Arguments of `doorbell vm`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Fetch what guests are made of, after saying what and how large; with --accel uintr build the emulator too
    Build(BuildArgs),
    /// Run this program in a guest and bring its result home
    Run(RunArgs),
    /// A shell in a guest, on this terminal
    Shell(ShellArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Who executes the guest's instructions
    #[arg(long, value_enum, default_value = "tcg", value_name = "HOW")]
    accel: Accel,
    /// Say what would be fetched and built, and stop
    #[arg(long)]
    plan: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell vm run -- doctor                                what the guest is\n  \
    doorbell vm run --accel uintr -- doctor                  a CPU with user interrupts\n  \
    doorbell vm run --cpus 4 --numa 2 -- pairs               pairs of CPUs on two nodes\n  \
    doorbell vm run --accel kvm -- ping futex -o guest.json  then: doorbell compare host.json guest.json\n\n\
    The guest is a stock Debian kernel whose only program is this one. The exit status is that of the command; 1 if the \
    guest did not get that far.")]
struct RunArgs {
    #[command(flatten)]
    hardware: HardwareArgs,
    /// The time after which the guest is stopped
    #[arg(long, value_parser = duration, default_value = "15m", value_name = "TIME")]
    timeout: Duration,
    /// Show the kernel's console on standard error
    #[arg(long)]
    console: bool,
    /// A verb of this program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "The guest powers off when the shell ends. In it, `doorbell` is this program.")]
struct ShellArgs {
    #[command(flatten)]
    hardware: HardwareArgs,
    /// Run this instead of talking, as `sh -c` does; the exit status is its own
    #[arg(short, value_name = "COMMAND")]
    command: Option<String>,
    /// The time after which a guest with -c is stopped
    #[arg(long, value_parser = duration, default_value = "15m", value_name = "TIME", requires = "command")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Guest")]
struct HardwareArgs {
    /// Who executes the guest's instructions
    #[arg(long, value_enum, default_value = "tcg", value_name = "HOW")]
    accel: Accel,
    /// CPUs
    #[arg(long, default_value_t = 4, value_name = "N")]
    cpus: u32,
    /// Memory nodes, the CPUs divided evenly among them
    #[arg(long, default_value_t = 1, value_name = "NODES")]
    numa: u32,
    /// Cores that share a socket [default: all of a node]
    #[arg(long, value_name = "N")]
    cores_per_socket: Option<u32>,
    /// Add an NVMe device that is polled or that interrupts
    #[arg(long, value_enum, value_name = "HOW")]
    nvme: Option<NvmeMode>,
    /// Let instructions be the clock: two runs do the same work in the same time, to about a per cent; slow
    #[arg(long)]
    deterministic: bool,
    /// The qemu-system-x86_64 to use
    #[arg(long, value_name = "FILE")]
    qemu: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Accel {
    /// The CPU, by the host kernel's KVM
    Kvm,
    /// QEMU's translator: every time is an emulator's
    Tcg,
    /// QEMU's translator with a CPU that has user interrupts
    Uintr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NvmeMode {
    /// With queues that are polled, one for each CPU
    Poll,
    /// With interrupts only
    Irq,
}

/// Runs `doorbell vm`.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    match args.what {
        What::Build(args) => build(&args),
        What::Run(args) => run_verb(&args, terminal),
        What::Shell(args) => run_shell(&args, terminal),
    }
}

fn build(args: &BuildArgs) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout();
    let missing = packages::missing()?;
    for wanted in &missing {
        let megabytes = wanted.bytes as f64 / 1e6;
        writeln!(out, "fetch     {} {}, {megabytes:.1} MB", wanted.package, wanted.version)?;
    }
    if missing.is_empty() {
        writeln!(out, "fetch     no package, the cache has them")?;
    }
    let uintr = args.accel == Accel::Uintr;
    if uintr {
        emulator::plan()?;
    }
    if args.plan {
        return Ok(Exit::Done);
    }
    packages::fetch(&missing)?;
    if uintr {
        emulator::build()?;
    }
    let emulator = Emulator::find(args.accel.into(), None)?;
    writeln!(out, "kernel    {}", part(Part::Kernel)?.display())?;
    writeln!(out, "emulator  {} ({})", emulator.path.display(), emulator.version)?;
    Ok(Exit::Done)
}

fn part(part: Part) -> Result<PathBuf, NotBuilt> {
    part.find().ok_or(NotBuilt)
}

/// The cache is empty.
#[derive(Debug, thiserror::Error)]
#[error("guests are not built yet: run `doorbell vm build` once; it says what it fetches (some 30 MB) first")]
struct NotBuilt;

fn run_verb(args: &RunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let words = std::iter::once("doorbell").chain(args.command.iter().map(String::as_str));
    // What the guest would only find out after booting; a request for help is answered here too.
    let matches = super::command().try_get_matches_from(words).unwrap_or_else(|error| error.exit());
    if matches.subcommand_name() == Some("vm") {
        return Err(Usage("a guest in a guest is not supported; give a verb that measures".to_owned()).into());
    }
    let (extra, target) = output(&matches)?;
    let command =
        std::iter::once(PROGRAM.to_owned()).chain(args.command.iter().cloned()).chain(extra).collect();
    let order = order(command, target.iter().cloned().collect(), false)?;
    let report = in_guest(&args.hardware, &order, args.timeout, args.console, terminal)?;
    for (path, content) in &report.files {
        keep(path, content)?;
    }
    if let Some(target) = target.filter(|_| report.status == 0 && report.files.is_empty()) {
        anyhow::bail!("the command ended well and left no result to be saved as {}", target.display());
    }
    Ok(Exit::Of(report.status))
}

fn run_shell(args: &ShellArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let shell_command = |command: &str| ["/bin/sh", "-c", command].map(str::to_owned).to_vec();
    match &args.command {
        Some(command) => {
            let order = order(shell_command(command), Vec::new(), false)?;
            Ok(Exit::Of(in_guest(&args.hardware, &order, args.timeout, false, terminal)?.status))
        }
        None => {
            let order = order(vec!["/bin/sh".to_owned()], Vec::new(), true)?;
            prepared(&args.hardware, &order, Duration::MAX, |guest| Ok(shell(guest)?))?;
            Ok(Exit::Done)
        }
    }
}

/// Where the result goes on this machine, if the verb writes one to a file, and what to add to the verb's arguments so
/// that it goes to the same path in the guest.
fn output(matches: &ArgMatches) -> anyhow::Result<(Vec<String>, Option<PathBuf>)> {
    let inner = matches.subcommand().map_or(matches, |(_, inner)| inner);
    // Verbs that measure are those that can show their plan; `report` and `export` have an output too, of another kind.
    if !matches!(inner.try_get_one::<bool>("dry_run"), Ok(Some(false))) {
        return Ok((Vec::new(), None));
    }
    match inner.get_one::<PathBuf>("output") {
        Some(path) if path.as_os_str() == "-" => Ok((Vec::new(), None)),
        Some(path) => {
            let path = std::path::absolute(path).context("the file for the result")?;
            if !path.parent().is_some_and(Path::is_dir) {
                return Err(
                    Usage(format!("{}: there is no such folder; make it first", path.display())).into()
                );
            }
            Ok((Vec::new(), Some(path)))
        }
        None => {
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
            let path = state_folder().join(format!("vm-{seconds}-{}.json", std::process::id()));
            Ok((vec!["--output".to_owned(), path.to_string_lossy().into_owned()], Some(path)))
        }
    }
}

/// Saves what the guest brought; if that fails, among the temporary files, for it may have taken an hour.
fn keep(path: &Path, content: &[u8]) -> Result<(), write::WriteError> {
    let put = |path: &Path| write::replace(path, |file| file.write_all(content));
    put(path).map_err(|cause| {
        let other = path.file_name().map(|name| std::env::temp_dir().join(name));
        let rescued = other.filter(|other| put(other).is_ok());
        write::WriteError { target: path.to_owned(), cause, rescued }
    })
}

fn order(command: Vec<String>, bring: Vec<PathBuf>, interactive: bool) -> anyhow::Result<Order> {
    let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    Ok(Order {
        command,
        environment: PASSED_ON.into_iter().filter_map(variable).collect(),
        folder: std::env::current_dir().context("the current folder")?,
        bring,
        stdout: terminal_size(std::io::stdout()),
        stderr: terminal_size(std::io::stderr()),
        interactive,
    })
}

fn terminal_size(stream: impl IsTerminal + std::os::fd::AsFd) -> Option<TerminalSize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

/// Boots a guest for `order` and shows what it says while it runs.
fn in_guest(
    args: &HardwareArgs,
    order: &Order,
    limit: Duration,
    console: bool,
    terminal: &Terminal,
) -> anyhow::Result<Report> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second signal ends this command at once, and the guest dies with it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut show = Show { quiet: terminal.quiet, console, what: String::new() };
    let report = prepared(args, order, limit, |guest| {
        let emulated =
            if guest.hardware.accelerator.emulates() { "; all times in it are an emulator's" } else { "" };
        show.what = format!("{}, {}", args.accel.name(), guest.emulator.version);
        let cpus = counted(args.cpus.into(), "CPU");
        show.note(&format!("booting a guest with {cpus} ({}){emulated}", show.what));
        match boot(guest, &interrupted, &mut show) {
            Err(interrupted @ RunError::Interrupted) => {
                show.note(&interrupted.to_string());
                Ok(Report { status: INTERRUPTED, files: Vec::new(), complaints: Vec::new() })
            }
            outcome => Ok(outcome?),
        }
    })?;
    if !report.complaints.is_empty() {
        show.note(&format!("the guest's kernel complained:\n  | {}", report.complaints.join("\n  | ")));
    }
    Ok(report)
}

/// Finds everything a guest needs and hands it on.
fn prepared<T>(
    args: &HardwareArgs,
    order: &Order,
    limit: Duration,
    go: impl FnOnce(&Guest) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let hardware = args.hardware();
    hardware.check().map_err(|error| Usage(error.to_string()))?;
    let emulator = Emulator::find(hardware.accelerator, args.qemu.as_deref())?;
    let kernel = part(Part::Kernel)?;
    let busybox = part(Part::Shell)?;
    let busybox = std::fs::read(&busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    let host = Virtualisation::read(&Root::live(), virtualisation::signature(), false);
    let vm = Vm {
        accelerator: args.accel.name().to_owned(),
        emulator: emulator.version.clone(),
        nested: host.guest,
        deterministic: args.deterministic,
    };
    let files = [(Path::new("/").join(Vm::FILE), serde_json::to_vec(&vm)?)];
    let program = Program::own()?;
    go(&Guest {
        emulator: &emulator,
        kernel: &kernel,
        hardware: &hardware,
        contents: Contents { program: &program, shell: Some(&busybox), order, files: &files },
        boot_limit: if hardware.accelerator.emulates() { BOOT_EMULATED } else { BOOT_KVM },
        limit,
    })
}

/// Shows what a guest says.
struct Show {
    quiet: bool,
    console: bool,
    what: String,
}

impl Show {
    fn note(&self, text: &str) {
        if !self.quiet {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(std::io::stderr(), "doorbell vm: {text}");
        }
    }
}

impl Observer for Show {
    fn up(&mut self, after: Duration) {
        self.note(&format!("the guest is up after {:.1} s", after.as_secs_f64()));
    }

    fn stdout(&mut self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    fn stderr(&mut self, bytes: &[u8]) {
        let _ = std::io::stderr().write_all(bytes);
    }

    fn console(&mut self, bytes: &[u8]) {
        if self.console {
            let _ = std::io::stderr().write_all(bytes);
        }
    }
}

impl HardwareArgs {
    fn hardware(&self) -> Hardware {
        Hardware {
            accelerator: self.accel.into(),
            cpus: self.cpus,
            cores_per_socket: self.cores_per_socket,
            nodes: self.numa,
            nvme: self.nvme.map(Nvme::from),
            deterministic: self.deterministic,
        }
    }
}

impl Accel {
    fn name(self) -> &'static str {
        Accelerator::from(self).name()
    }
}

impl From<Accel> for Accelerator {
    fn from(accel: Accel) -> Self {
        match accel {
            Accel::Kvm => Self::Kvm,
            Accel::Tcg => Self::Tcg,
            Accel::Uintr => Self::Uintr,
        }
    }
}

impl From<NvmeMode> for Nvme {
    fn from(mode: NvmeMode) -> Self {
        match mode {
            NvmeMode::Poll => Self::Poll,
            NvmeMode::Irq => Self::Irq,
        }
    }
}
