// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell vm`: this program in a virtual machine.

mod result;
mod shown;

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, FromArgMatches, Subcommand, ValueEnum};
use doorbell_vm::accelerator::Accelerator;
use doorbell_vm::architecture::{self, Architecture};
use doorbell_vm::carry::{Carried, carried};
use doorbell_vm::cross;
use doorbell_vm::driver;
use doorbell_vm::emulator::{self, Emulator};
use doorbell_vm::hardware::{Hardware, Nvme};
use doorbell_vm::initramfs::Contents;
use doorbell_vm::kernel::{self, Kernel};
use doorbell_vm::order::{Order, PROGRAM, TerminalSize};
use doorbell_vm::packages::{self, Part};
use doorbell_vm::program::Program;
use doorbell_vm::run::{Guest, Report, RunError, Stop, USUAL_BYTES, run as boot};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::common::{Exit, Terminal};
use super::out::{Out, aside};
use super::sides::one_of;
use super::usage::{Usage, refuse};
use doorbell_machine::root::Root;
use doorbell_machine::virtualisation;
use doorbell_report::wording::counted;
use doorbell_results::machine::virtualisation::Vm;
use doorbell_results::quantity::duration;
use result::{Output, RESULT, fits_a_guest, keep, output};
use shown::{GuestTerminal, Show, say};

/// How long a translated kernel may be silent while it boots: a line
/// comes every few milliseconds on two idle cores, the longest pause is
/// the unpacking of the archive, and an emulator is often not alone.
const SILENCE_EMULATED: Duration = Duration::from_secs(120);
/// Likewise under KVM, where a whole boot takes a second if it works.
/// Where it does not, nothing ever comes.
const SILENCE_KVM: Duration = Duration::from_secs(15);

/// How long a verb that was told to stop may take to end its trial and to save what it has.
const GRACE: Duration = Duration::from_secs(60);

/// The longest shell for a guest, bytes: a static one has two million.
const LONGEST_SHELL: u64 = 64 << 20;

/// The exit status of an interrupted command.
const INTERRUPTED: u8 = 130;

/// What keeps guests from being started from a folder: they mount file systems of their own there.
const OCCUPIED: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

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
    /// Fetch what guests are made of, after saying what and how
    /// large; with --accel uintr build the emulator too
    Build(BuildArgs),
    /// Run this program in a guest and bring its result home
    Run(RunArgs),
    /// A shell in a guest, on this terminal
    Shell(ShellArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Who executes the guest's instructions
    #[arg(long, value_parser = accelerator(), default_value = "tcg", value_name = "HOW")]
    accel: Accelerator,
    /// The guests' architecture; for another than this machine's, this program is built for it too
    #[arg(long, value_parser = an_architecture(), default_value = Architecture::own().name, value_name = "NAME")]
    arch: &'static Architecture,
    /// The kernel that guests run [default: 6.1, of ARM and RISC-V 6.12]
    #[arg(long, value_parser = a_kernel(), value_name = "VERSION")]
    kernel: Option<&'static Kernel>,
    /// Fetch the kernel's headers too, which modules for the guest are built with, and the compiler
    /// they need if Debian 12 has none that new; says where `make -C` finds them
    #[arg(long)]
    headers: bool,
    /// Build the driver for user interrupts too, which `vm run
    /// --driver` loads; fetches the headers for it
    #[arg(long)]
    driver: bool,
    /// Say what would be fetched and built, and stop
    #[arg(long)]
    plan: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell vm run -- doctor                                what the guest is\n  \
    doorbell vm run --accel uintr -- doctor                  a CPU with user interrupts\n  \
    doorbell vm run --cpus 4 --numa 2 -- pairs               pairs of CPUs on two nodes\n  \
    doorbell vm run --kernel 7.3-rt -- ping futex            Debian's newest kernel, preemptible\n  \
    doorbell vm run --arch aarch64 -- list                   what there is on ARM\n  \
    doorbell vm run --accel kvm -- ping futex -o guest.json  then: doorbell compare host.json guest.json\n\n\
    The guest is a stock Debian kernel whose only program is this one. The exit status is that of the command; 1 if the \
    guest did not get that far. Ctrl-C, or the end of its time, stops the verb as Ctrl-C does without a guest: what was \
    measured is kept. A second Ctrl-C ends the guest at once.")]
struct RunArgs {
    #[command(flatten)]
    hardware: HardwareArgs,
    /// What runs on the machine: Linux, or Squall, this project's
    /// kernel for RISC-V, which knows the verb `tasks`
    #[arg(long, value_enum, default_value = "linux", value_name = "SYSTEM")]
    guest: System,
    /// Everything that the book's chapter on Squall shows: all its kinds of task, a study's
    /// experiments, and the tasks of Linux on the same emulated machine, in one result
    #[arg(long)]
    chapter: bool,
    /// Squall's kernel, as squall/build prints it [default: what
    /// squall/build makes in the source tree that you stand in]
    #[arg(long, value_name = "FILE")]
    squall: Option<PathBuf>,
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
#[command(after_help = "The guest powers off when the shell ends; Ctrl-] ends it at once. In it, \
        `doorbell` is this program. Files in it are gone with it.")]
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

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Guest")]
struct HardwareArgs {
    /// Who executes the guest's instructions
    #[arg(long, value_parser = accelerator(), default_value = "tcg", value_name = "HOW")]
    accel: Accelerator,
    /// Its architecture
    #[arg(long, value_parser = an_architecture(), default_value = Architecture::own().name, value_name = "NAME")]
    arch: &'static Architecture,
    /// This program, built for the guest's architecture as one static file [default: this very
    /// program, or what `vm build` built]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The kernel [default: 6.1, of ARM and RISC-V 6.12]
    #[arg(long, value_parser = a_kernel(), value_name = "VERSION")]
    kernel: Option<&'static Kernel>,
    /// Boot this image of a kernel instead, one of the user's own making
    #[arg(long, value_name = "FILE")]
    kernel_image: Option<PathBuf>,
    /// A parameter for the kernel, as pti=on; may be repeated
    #[arg(long, value_name = "WORD")]
    kernel_parameter: Vec<String>,
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
    #[arg(long, value_parser = nvme(), value_name = "HOW")]
    nvme: Option<Nvme>,
    /// Let instructions be the clock: two runs of the same command line are the same run; slow
    #[arg(long)]
    deterministic: bool,
    /// Take this file or folder along, to the same path in the guest; may be repeated
    #[arg(long, value_name = "PATH")]
    carry: Vec<PathBuf>,
    /// Load the driver of uintr/driver, which gives the CPU's user
    /// interrupts to threads; the verb uintr has it anyway
    #[arg(long)]
    driver: bool,
    /// The qemu-system-ARCH to use
    #[arg(long, value_name = "FILE")]
    qemu: Option<PathBuf>,
}

/// Who executes the guest's instructions.
fn accelerator() -> impl TypedValueParser<Value = Accelerator> {
    one_of(&[
        ("kvm", "The CPU, by the host kernel's KVM", Accelerator::Kvm),
        ("tcg", "QEMU's translator: every time is an emulator's", Accelerator::Tcg),
        ("uintr", "QEMU's translator with a CPU that has user interrupts", Accelerator::Uintr),
    ])
}

/// How an NVMe device tells that it is done.
fn nvme() -> impl TypedValueParser<Value = Nvme> {
    one_of(&[
        ("poll", "With queues that are polled, one for each CPU", Nvme::Poll),
        ("irq", "With interrupts only", Nvme::Irq),
    ])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum System {
    /// Debian's kernel, with this program in it
    Linux,
    /// The kernel in squall/, on an emulated RISC-V hart whose clock is its instructions
    Squall,
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
    let mut out = Out::new();
    let arch = args.arch;
    let kernel = args.kernel.unwrap_or_else(|| Kernel::usual(arch));
    let headers = args.headers || args.driver;
    if headers && *arch != architecture::ALL[0] {
        return refuse(format!("--headers: modules are built for {} alone", architecture::ALL[0]));
    }
    kernel.check(arch).map_err(Usage::of)?;
    let errand = packages::errand(kernel, arch, headers, waiting)?;
    for wanted in &errand.missing {
        let megabytes = wanted.bytes as f64 / 1e6;
        writeln!(out, "fetch     {} {}, {megabytes:.1} MB", wanted.package, wanted.version)?;
    }
    if errand.missing.is_empty() {
        writeln!(out, "fetch     no package, the cache has them")?;
    }
    let uintr = args.accel == Accelerator::Uintr;
    if uintr {
        emulator::plan()?;
    }
    if args.plan {
        return Ok(Exit::Done);
    }
    errand.run()?;
    if uintr {
        emulator::build()?;
    }
    let emulator = Emulator::find(arch, args.accel, None)?;
    writeln!(out, "kernel    {}", file_of(Part::Kernel(kernel, arch), kernel, arch)?.display())?;
    if headers {
        writeln!(out, "headers   {}", file_of(Part::Headers(kernel), kernel, arch)?.display())?;
    }
    if !arch.is_own() {
        cross::build(arch)?;
        writeln!(out, "program   {}", cross::built(arch)?.display())?;
    }
    writeln!(out, "emulator  {} ({})", emulator.path.display(), emulator.version)?;
    if args.driver {
        writeln!(out, "driver    {}", driver::build(kernel)?.display())?;
    }
    Ok(Exit::Done)
}

fn waiting() {
    aside!("doorbell vm: another build is at work; waiting for it to end");
}

fn file_of(part: Part, kernel: &'static Kernel, arch: &'static Architecture) -> Result<PathBuf, NotBuilt> {
    part.find().ok_or(NotBuilt { kernel, arch })
}

/// The names of the architectures.
fn an_architecture() -> impl TypedValueParser<Value = &'static Architecture> {
    let names = architecture::ALL.iter().map(|architecture| architecture.name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<&'static Architecture>())
}

/// The names of the kernels.
fn a_kernel() -> impl TypedValueParser<Value = &'static Kernel> {
    let names = kernel::ALL.iter().map(|kernel| kernel.name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<&'static Kernel>())
}

/// The cache does not have a kernel.
#[derive(Debug, thiserror::Error)]
#[error(
    "guests with kernel {kernel} are not built yet: run `doorbell vm build{} --kernel {kernel}` \
     once; it says what it fetches (some 30 MB) first", of(.arch)
)]
struct NotBuilt {
    kernel: &'static Kernel,
    arch: &'static Architecture,
}

/// The option that names an architecture, where it has to be named.
fn of(arch: &Architecture) -> String {
    if arch.is_own() { String::new() } else { format!(" --arch {arch}") }
}

fn run_verb(args: &RunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let words = std::iter::once("doorbell").chain(args.command.iter().map(String::as_str));
    // What the guest would only find out after booting; a request for help is answered here too.
    let matches = super::command().try_get_matches_from(words).unwrap_or_else(|error| error.exit());
    let (verb, inner) = matches.subcommand().unwrap_or(("survey", &matches));
    if args.guest == System::Squall {
        return run_squall(verb, inner, args, terminal);
    }
    if args.chapter {
        return refuse("--chapter is Squall's; add --guest squall");
    }
    fits_a_guest(verb, inner).map_err(|reason| Usage(format!("{verb} in a guest {reason}")))?;
    let mut command = vec![PROGRAM.to_owned()];
    command.extend(args.command.iter().cloned());
    let output = output(inner)?;
    let mut moved = false;
    let (target, there) = match &output {
        Output::None => (None, None),
        Output::Asked(target) => (Some(target), Some(target.clone())),
        Output::Added(target) => {
            moved = args.hardware.deterministic;
            let there = if moved { PathBuf::from(RESULT) } else { target.clone() };
            // Behind the verb: what follows it may end in a `--` of its own.
            let verb = command.iter().position(|word| word == verb).unwrap_or(0);
            let path = there.to_string_lossy().into_owned();
            command.splice(verb + 1..verb + 1, ["--output".to_owned(), path]);
            (Some(target), Some(there))
        }
    };
    let hardware = HardwareArgs { driver: args.hardware.wants_driver(verb), ..args.hardware.clone() };
    let order = order(command, there.into_iter().collect(), false)?;
    let report = in_guest(&hardware, &order, args.timeout, args.console, terminal)?;
    let saved = target.filter(|_| !report.files.is_empty());
    if let (Some(target), Some((_, content))) = (saved, report.files.first()) {
        keep(target, content, &report.complaints)?;
    }
    in_time(&report, args.timeout, saved)?;
    if let Some(target) = target.filter(|_| report.status == 0 && saved.is_none()) {
        anyhow::bail!("the command ended well and left no result to be saved as {}", target.display());
    }
    if let Some(target) = saved.filter(|_| moved && !terminal.quiet) {
        say(&format!("here, the result is saved as {}", target.display()));
    }
    Ok(Exit::Of(report.status))
}

/// Squall measures, and the result is made here of what it says.
fn run_squall(verb: &str, inner: &ArgMatches, args: &RunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let "tasks" = verb else {
        return refuse(format!("Squall runs the verb tasks, and not {verb}"));
    };
    let tasks = super::tasks::Args::from_arg_matches(inner)?;
    let tell = |what: &str| {
        if !terminal.quiet {
            aside!("doorbell: {what}");
        }
    };
    let machine = super::common::machine_here();
    let kernel = args.squall.as_deref();
    let result = super::squall::run(inner, args.chapter, kernel, machine, args.timeout, tell)?;
    tasks.run.delivery.deliver(&result, terminal)
}

/// That the guest's command was not stopped because its time was up.
fn in_time(report: &Report, limit: Duration, kept: Option<&PathBuf>) -> anyhow::Result<()> {
    if report.stopped != Some(Stop::TimedOut) {
        return Ok(());
    }
    let kept = kept.map(|path| format!("; what it had measured is in {}", path.display()));
    anyhow::bail!(
        "the guest's command did not end within {} s and was stopped; --timeout gives it more{}",
        limit.as_secs(),
        kept.unwrap_or_default()
    )
}

fn run_shell(args: &ShellArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let shell_command = |command: &str| ["/bin/sh", "-c", command].map(str::to_owned).to_vec();
    match &args.command {
        Some(command) => {
            let order = order(shell_command(command), Vec::new(), false)?;
            let report = in_guest(&args.hardware, &order, args.timeout, false, terminal)?;
            in_time(&report, args.timeout, None)?;
            Ok(Exit::Of(report.status))
        }
        None => {
            let (stdin, stdout) = (std::io::stdin(), rustix::stdio::stdout());
            if !stdin.is_terminal() || !stdout.is_terminal() {
                let message = "a shell talks with a terminal, and this is none; give its commands with -c";
                return refuse(message);
            }
            let order = order(vec!["/bin/sh".to_owned()], Vec::new(), true)?;
            let stop = Arc::new(AtomicBool::new(false));
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                signal_hook::flag::register(signal, Arc::clone(&stop))?;
            }
            let mut guest_terminal = GuestTerminal { quiet: terminal.quiet, raw: None };
            let report = prepared(&args.hardware, &order, Duration::MAX, |guest| {
                let guest = Guest { keys: Some(stdin.as_fd()), ..*guest };
                guest_terminal.note("booting a guest; Ctrl-] ends it");
                let outcome = boot(&guest, &stop, &mut guest_terminal);
                // Messages are for a terminal that is the user's again.
                guest_terminal.raw = None;
                Ok(outcome?)
            });
            match report {
                Err(error) if matches!(error.downcast_ref(), Some(RunError::Interrupted)) => {
                    guest_terminal.note(&error.to_string());
                    Ok(Exit::Interrupted)
                }
                report => Ok(Exit::Of(report?.status)),
            }
        }
    }
}

fn order(command: Vec<String>, bring: Vec<PathBuf>, interactive: bool) -> anyhow::Result<Order> {
    let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    let folder = std::env::current_dir().context("the current folder")?;
    if folder.to_str().is_none() || OCCUPIED.iter().any(|occupied| folder.starts_with(occupied)) {
        let message = format!("a guest cannot have the folder {}; start it from another", folder.display());
        return refuse(message);
    }
    Ok(Order {
        command,
        environment: PASSED_ON.into_iter().filter_map(variable).collect(),
        folder,
        bring,
        stdout: terminal_size(rustix::stdio::stdout()),
        stderr: terminal_size(rustix::stdio::stderr()),
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
    for signal in [SIGINT, SIGTERM] {
        // The second signal ends this command at once, and the guest dies with it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut show =
        Show { quiet: terminal.quiet, console, told: false, interrupted: Arc::clone(&interrupted) };
    let report = prepared(args, order, limit, |guest| {
        let emulated =
            if guest.hardware.accelerator.emulates() { "; all times in it are an emulator's" } else { "" };
        let cpus = counted(args.cpus.into(), "CPU");
        show.note(&format!(
            "booting a guest with {cpus} ({}, {}){emulated}",
            args.accel.name(),
            guest.emulator.version
        ));
        match boot(guest, &interrupted, &mut show) {
            Err(interrupted @ RunError::Interrupted) => {
                show.note(&interrupted.to_string());
                let status = INTERRUPTED;
                Ok(Report { status, files: Vec::new(), complaints: Vec::new(), stopped: None })
            }
            outcome => Ok(outcome?),
        }
    })?;
    if !report.complaints.is_empty() {
        // Not for those alone who want to see progress: the result is in doubt.
        say(&format!("the guest's kernel complained:\n  | {}", report.complaints.join("\n  | ")));
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
    hardware.check().map_err(Usage::of)?;
    let (kernel, arch) = (args.kernel(), args.arch);
    kernel.check(arch).map_err(Usage::of)?;
    let emulator = Emulator::find(arch, hardware.accelerator, args.qemu.as_deref())?;
    if args.nvme.is_some() && args.kernel_image.is_none() && !kernel.has_nvme(arch) {
        let message = format!(
            "--nvme: kernel {kernel} has its driver as a module, which guests do not load; take another"
        );
        return refuse(message);
    }
    let image = match &args.kernel_image {
        Some(image) => image.clone(),
        None => file_of(Part::Kernel(kernel, arch), kernel, arch)?,
    };
    let busybox = file_of(Part::Shell(arch), kernel, arch)?;
    let busybox = doorbell_files::bytes(&busybox, LONGEST_SHELL)
        .with_context(|| format!("cannot read {}", busybox.display()))?;
    let host = doorbell_machine::virtualisation::read(
        &Root::live(),
        virtualisation::signature(),
        false,
        virtualisation::runs_translated(),
    );
    let vm = Vm {
        accelerator: args.accel.name().to_owned(),
        emulator: emulator.version.clone(),
        nested: host.guest,
        emulated: hardware.accelerator.emulates() || host.emulated,
        host: Some(host_name()),
        deterministic: args.deterministic,
    };
    let mut paths: Vec<PathBuf> =
        args.carry.iter().map(std::path::absolute).collect::<Result<_, _>>().context("--carry")?;
    if let Some(path) = paths.iter().find(|path| OCCUPIED.iter().any(|occupied| path.starts_with(occupied))) {
        let message = format!("--carry {}: a guest has its own there", path.display());
        return refuse(message);
    }
    let loading = match args.driver.then(|| args.driver()).transpose()? {
        None => None,
        Some(module) => {
            let order = Order { command: loads(&module, &order.command), ..order.clone() };
            paths.push(module);
            Some(order)
        }
    };
    let order = loading.as_ref().unwrap_or(order);
    let mut files = carried(&paths, arch)?;
    let told =
        Carried { path: Path::new("/").join(Vm::FILE), content: serde_json::to_vec(&vm)?, executable: false };
    files.push(told);
    let program = match &args.program {
        Some(file) => Program::read(file, arch)?,
        None if arch.is_own() => Program::own()?,
        None => Program::read(&cross::built(arch)?, arch)?,
    };
    go(&Guest {
        emulator: &emulator,
        kernel: &image,
        hardware: &hardware,
        contents: Contents { program: &program, shell: Some(&busybox), order, files: &files },
        boot_limit: if hardware.accelerator.emulates() { SILENCE_EMULATED } else { SILENCE_KVM },
        limit,
        most_bytes: USUAL_BYTES,
        grace: GRACE,
        keys: None,
    })
}

/// What the emulator runs on: the times of two are comparable only on one.
fn host_name() -> String {
    let root = Root::live();
    let model = doorbell_machine::processor::read(&root, None)
        .model_name
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {}", counted(cpus as u64, "CPU"))
}

/// `command`, after the driver is loaded. Its reasons to refuse are in the kernel's log.
fn loads(module: &Path, command: &[String]) -> Vec<String> {
    let script = "insmod \"$0\" || { dmesg | grep uintr: >&2; exit 1; }; exec \"$@\"";
    let words = ["/bin/sh", "-c", script].map(str::to_owned);
    words.into_iter().chain([module.to_string_lossy().into_owned()]).chain(command.iter().cloned()).collect()
}

impl HardwareArgs {
    /// Whether the guest is to have the driver for `verb`.
    fn wants_driver(&self, verb: &str) -> bool {
        self.driver || (verb == "uintr" && self.accel == Accelerator::Uintr)
    }

    /// The kernel asked for, or the usual one.
    fn kernel(&self) -> &'static Kernel {
        self.kernel.unwrap_or_else(|| Kernel::usual(self.arch))
    }

    /// The driver's file.
    fn driver(&self) -> anyhow::Result<PathBuf> {
        if self.accel != Accelerator::Uintr {
            return refuse("--driver: only --accel uintr has a CPU with user interrupts");
        }
        if self.kernel_image.is_some() {
            let message = "--driver: the driver is built for Debian's kernels; --carry one of \
                yours for an image of yours";
            return refuse(message);
        }
        Ok(driver::built(self.kernel())?)
    }

    fn hardware(&self) -> Hardware {
        Hardware {
            architecture: self.arch,
            accelerator: self.accel,
            cpus: self.cpus,
            cores_per_socket: self.cores_per_socket,
            nodes: self.numa,
            nvme: self.nvme,
            deterministic: self.deterministic,
            parameters: self.kernel_parameter.clone(),
        }
    }
}
