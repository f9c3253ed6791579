// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's hardware, as arguments of QEMU and parameters of the kernel.

use crate::accelerator::Accelerator;
use crate::architecture::{self, Architecture};
use crate::counter;
use crate::emulator::Emulator;
use crate::guest::VERB;
use crate::order::PROGRAM;

/// CPUs a guest may have: QEMU's `pc` machine numbers 255 in its APICs.
const MOST_CPUS: u32 = 255;

/// Memory, MiB: a program of some 50 MB in the archive and once more
/// unpacked, and room for a hundred processes.
const MEMORY_MIB: u32 = 1024;

/// What a node needs at least: the kernel's own share of a node, and programs that are bound to it.
const LEAST_NODE_MIB: u32 = 128;

const MOST_NODES: u32 = MEMORY_MIB / LEAST_NODE_MIB;

/// Distance of two nodes, where 10 is a node's own (ACPI, System
/// Locality Information Table): that of two sockets.
const FAR: u32 = 21;

/// Nanoseconds of virtual time for each instruction, as a power of
/// two, where instructions are the clock: near to what the translator
/// needs for one, so that a trial of a second lasts about a second.
const INSTRUCTION_SHIFT: u32 = 3;

/// The system calls that a guest which broke out of the emulator has
/// no use of: qemu(1), `-sandbox`.
pub(crate) const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// How an NVMe device answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nvme {
    /// It has queues without interrupts, one for each CPU, beside the usual ones.
    Poll,
    /// It has queues with interrupts only.
    Irq,
}

/// The guest's hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// Its processors' architecture.
    pub architecture: &'static Architecture,
    /// Who executes its instructions.
    pub accelerator: Accelerator,
    /// CPUs.
    pub cpus: u32,
    /// Cores that share a socket; all of a node where none is given.
    pub cores_per_socket: Option<u32>,
    /// Memory nodes.
    pub nodes: u32,
    /// An NVMe device of 64 MiB in the host's memory.
    pub nvme: Option<Nvme>,
    /// Whether instructions are the clock, so that time does not depend on what else the host does.
    pub deterministic: bool,
    /// Parameters for the kernel beside those that every guest's gets, behind which they come.
    pub parameters: Vec<String>,
}

/// Hardware that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HardwareError {
    /// Too few or too many CPUs.
    #[error("a guest has 1 to {MOST_CPUS} CPUs, not {0}")]
    Cpus(u32),
    /// Nodes of different sizes.
    #[error("{cpus} CPUs do not lie evenly on {nodes} nodes; give a number that {nodes} divides")]
    Nodes {
        /// CPUs.
        cpus: u32,
        /// Nodes.
        nodes: u32,
    },
    /// Nodes that are too small.
    #[error("{0} nodes would have less than {LEAST_NODE_MIB} MiB each; give {MOST_NODES} at most")]
    ManyNodes(u32),
    /// Sockets that do not fit.
    #[error(
        "sockets of {cores} cores do not fill a node of {on_node} CPUs; give a number that divides {on_node}"
    )]
    Sockets {
        /// Cores of a socket.
        cores: u32,
        /// CPUs of a node.
        on_node: u32,
    },
    /// No single parameter of a kernel.
    #[error(
        "'{0}' is no parameter of a kernel: give one word, as pti=on, without quotation marks, and \
         not --, behind which the first process's begin"
    )]
    Parameter(String),
    /// User interrupts without the processor.
    #[error("--accel uintr is of x86_64 alone, not of {0}: use --accel tcg")]
    NoUserInterrupts(&'static Architecture),
    /// Another processor's instructions.
    #[error("--accel kvm runs guests on this CPU, which is not of {0}: use --accel tcg")]
    ForeignKvm(&'static Architecture),
    /// Instructions are counted only by the translator.
    #[error("--deterministic counts instructions, which only the translator can: use --accel tcg or uintr")]
    NotCountable,
}

/// The descriptors behind a serial port: pipes, both QEMU's ends.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// Where the guest's bytes go.
    pub out: i32,
    /// Where bytes for the guest come from.
    pub input: i32,
}

/// The descriptors of this process that QEMU inherits.
#[derive(Debug, Clone)]
pub struct Wires {
    /// The kernel's image.
    pub kernel: i32,
    /// The folders of the firmware.
    pub firmware: Vec<i32>,
    /// The archive.
    pub initramfs: i32,
    /// The second serial port.
    pub channel: Port,
    /// The first serial port.
    pub console: Port,
    /// The memory behind the NVMe device.
    pub disk: Option<i32>,
}

impl Hardware {
    /// Whether it can be built.
    pub fn check(&self) -> Result<(), HardwareError> {
        let &Self { architecture, cpus, nodes, .. } = self;
        if self.accelerator == Accelerator::Uintr && !architecture.is_x86() {
            return Err(HardwareError::NoUserInterrupts(architecture));
        }
        if self.accelerator == Accelerator::Kvm && !architecture.is_own() {
            return Err(HardwareError::ForeignKvm(architecture));
        }
        if !(1..=MOST_CPUS).contains(&cpus) {
            return Err(HardwareError::Cpus(cpus));
        }
        if nodes == 0 || cpus % nodes != 0 {
            return Err(HardwareError::Nodes { cpus, nodes });
        }
        if nodes > MOST_NODES {
            return Err(HardwareError::ManyNodes(nodes));
        }
        let on_node = cpus / nodes;
        // The kernel's scheduler takes a socket on two nodes for a broken table and says so.
        if let Some(cores) = self.cores_per_socket.filter(|&cores| cores == 0 || on_node % cores != 0) {
            return Err(HardwareError::Sockets { cores, on_node });
        }
        if self.deterministic && !self.accelerator.emulates() {
            return Err(HardwareError::NotCountable);
        }
        let no_parameter = |word: &&String| {
            word.is_empty() || *word == "--" || word.contains(|c: char| c == '"' || !c.is_ascii_graphic())
        };
        match self.parameters.iter().find(no_parameter) {
            Some(word) => Err(HardwareError::Parameter(word.clone())),
            None => Ok(()),
        }
    }

    /// QEMU's arguments for hardware that was checked.
    pub fn arguments(&self, emulator: &Emulator, wires: &Wires) -> Vec<String> {
        let on_node = self.cpus / self.nodes;
        let cores = self.cores_per_socket.unwrap_or(on_node);
        let mut words: Vec<String> = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        add("-machine", self.architecture.machine.into());
        add("-accel", self.acceleration().into());
        add("-cpu", self.cpu(emulator).into());
        add("-smp", format!("cpus={},sockets={},cores={cores},threads=1", self.cpus, self.cpus / cores));
        let size = MEMORY_MIB / self.nodes;
        // The nodes' memory has to add up to the machine's.
        add("-m", format!("{}M", size * self.nodes));
        for node in 0..self.nodes {
            add("-object", format!("memory-backend-ram,id=m{node},size={size}M"));
            let (first, last) = (node * on_node, (node + 1) * on_node - 1);
            add("-numa", format!("node,nodeid={node},memdev=m{node},cpus={first}-{last}"));
        }
        for (from, to) in (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to))) {
            if from != to {
                add("-numa", format!("dist,src={from},dst={to},val={FAR}"));
            }
        }
        for (name, Port { out, input }) in [("console", wires.console), ("channel", wires.channel)] {
            let port = if emulator.input_paths {
                format!("file,id={name},path=/proc/self/fd/{out},input-path=/proc/self/fd/{input}")
            } else {
                format!("socket,id={name},fd={out}")
            };
            add("-chardev", port);
            if name == "channel" && self.architecture.channel == architecture::Port::Virtio {
                add("-device", "virtio-serial-pci".into());
                add("-device", format!("virtserialport,chardev={name}"));
            } else {
                add("-serial", format!("chardev:{name}"));
            }
        }
        if let Some(disk) = wires.disk {
            let file = format!("file.driver=file,file.filename=/proc/self/fd/{disk},file.locking=off");
            add("-blockdev", format!("driver=raw,node-name=disk,{file}"));
            add("-device", "nvme,serial=doorbell,drive=disk".into());
        }
        if self.deterministic {
            add("-icount", format!("shift={INSTRUCTION_SHIFT},sleep=off"));
            add("-seed", "1".into());
            add("-rtc", "base=2026-01-01T00:00:00,clock=vm".into());
        }
        for folder in &wires.firmware {
            add("-L", format!("/proc/self/fd/{folder}"));
        }
        add("-kernel", format!("/proc/self/fd/{}", wires.kernel));
        add("-initrd", format!("/proc/self/fd/{}", wires.initramfs));
        add("-append", self.kernel_parameters());
        add("-display", "none".into());
        if emulator.sandbox {
            add("-sandbox", SANDBOX.into());
        }
        words.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        words
    }

    fn acceleration(&self) -> &'static str {
        match (self.accelerator, self.deterministic) {
            (Accelerator::Kvm, _) => "kvm",
            (_, false) => "tcg,thread=multi",
            // Several threads would run their instructions in an order of the host's.
            (_, true) => "tcg,thread=single",
        }
    }

    fn cpu(&self, emulator: &Emulator) -> &'static str {
        match self.accelerator {
            Accelerator::Kvm => "host",
            Accelerator::Tcg if emulator.user_interrupts => "max,uintr=off",
            Accelerator::Tcg if emulator.reservation_waits => "rv64,zawrs=on",
            Accelerator::Tcg | Accelerator::Uintr => self.architecture.cpu,
        }
    }

    fn kernel_parameters(&self) -> String {
        // A panic ends the emulator at once (-no-reboot). The check of the timer's interrupt races with an
        // emulator that others keep from running.
        let mut line = format!("console={} rdinit={PROGRAM} panic=-1", self.architecture.console);
        if self.architecture.is_x86() {
            line += " no_timer_check";
        }
        // The kernel's tests of its ciphers are more than half of all instructions of a boot.
        line += " cryptomgr.notests";
        if self.accelerator.emulates() && self.architecture.is_x86() {
            // All translated CPUs read one counter, which the kernel cannot know; the timers it would use
            // instead are devices, whose every reading takes the emulator's great lock.
            line += " tsc=reliable";
            // Where instructions are the clock, the kernel's own comparison is exact.
            if !self.deterministic
                && let Some(kilohertz) = counter::kilohertz()
            {
                line += &format!(" tsc_early_khz={kilohertz}");
            }
        }
        if self.nvme == Some(Nvme::Poll) {
            line += &format!(" nvme.poll_queues={}", self.cpus);
        }
        if self.deterministic {
            line += " norandmaps";
        }
        for parameter in &self.parameters {
            line += &format!(" {parameter}");
        }
        // What follows is for the first process.
        line + " -- " + VERB
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const WIRES: Wires = Wires {
        kernel: 5,
        firmware: Vec::new(),
        initramfs: 7,
        channel: Port { out: 8, input: 9 },
        console: Port { out: 10, input: 12 },
        disk: None,
    };

    fn plain() -> Hardware {
        Hardware {
            architecture: &architecture::ALL[0],
            accelerator: Accelerator::Tcg,
            cpus: 4,
            cores_per_socket: None,
            nodes: 1,
            nvme: None,
            deterministic: false,
            parameters: Vec::new(),
        }
    }

    fn emulator(user_interrupts: bool) -> Emulator {
        Emulator {
            path: PathBuf::from("qemu"),
            version: "QEMU 10.0.13".into(),
            user_interrupts,
            input_paths: true,
            reservation_waits: false,
            sandbox: false,
            firmware: Vec::new(),
        }
    }

    fn line(hardware: &Hardware, user_interrupts: bool, wires: &Wires) -> String {
        hardware.check().unwrap();
        hardware.arguments(&emulator(user_interrupts), wires).join(" ")
    }

    #[test]
    fn user_interrupts_are_on_only_where_they_are_asked_for() {
        let uintr = Hardware { accelerator: Accelerator::Uintr, ..plain() };
        let kvm = Hardware { accelerator: Accelerator::Kvm, ..plain() };
        assert!(line(&uintr, true, &WIRES).contains("-cpu max -smp"));
        assert!(line(&plain(), true, &WIRES).contains("-cpu max,uintr=off -smp"));
        assert!(
            line(&plain(), false, &WIRES).contains("-cpu max -smp"),
            "a plain QEMU does not know the property"
        );
        assert!(line(&kvm, true, &WIRES).contains("-accel kvm -cpu host -smp"));
        assert!(!line(&kvm, true, &WIRES).contains("tsc=reliable"), "KVM's counters are the host's to judge");
    }

    #[test]
    fn an_emulator_that_can_confine_itself_is_told_to() {
        let arguments = |sandbox| {
            let emulator = Emulator { sandbox, ..emulator(false) };
            plain().arguments(&emulator, &WIRES).join(" ")
        };
        assert!(arguments(true).contains("-sandbox on,") && !arguments(false).contains("-sandbox"));
    }

    #[test]
    fn two_nodes_hold_half_the_cpus_and_whole_sockets() {
        let text = line(&Hardware { nodes: 2, ..plain() }, false, &WIRES);
        for part in [
            "-smp cpus=4,sockets=2,cores=2,threads=1",
            "node,nodeid=0,memdev=m0,cpus=0-1",
            "node,nodeid=1,memdev=m1,cpus=2-3",
            "dist,src=1,dst=0,val=21",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let single = line(&Hardware { nodes: 2, cores_per_socket: Some(1), ..plain() }, false, &WIRES);
        assert!(single.contains("sockets=4,cores=1"), "{single}");
        let three = line(&Hardware { cpus: 3, nodes: 3, ..plain() }, false, &WIRES);
        assert!(three.contains("-m 1023M") && three.contains("id=m2,size=341M"), "{three}");
    }

    #[test]
    fn polled_queues_are_asked_for_beside_the_device() {
        let wires = Wires { disk: Some(11), ..WIRES };
        let polled = line(&Hardware { nvme: Some(Nvme::Poll), ..plain() }, false, &wires);
        let driven = line(&Hardware { nvme: Some(Nvme::Irq), ..plain() }, false, &wires);
        assert!(polled.contains("nvme.poll_queues=4") && polled.contains("/proc/self/fd/11"), "{polled}");
        assert!(!driven.contains("poll_queues") && driven.contains("-device nvme"), "{driven}");
    }

    #[test]
    fn determinism_takes_one_thread_a_seed_and_a_clock_of_its_own() {
        let text = line(&Hardware { deterministic: true, ..plain() }, false, &WIRES);
        for part in ["tcg,thread=single", "-icount shift=3,sleep=off", "-seed 1", "clock=vm", "norandmaps"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("tsc_early_khz"), "{text}");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_kernel_on_a_busy_host_is_told_what_it_would_measure_wrong() {
        let told = |accelerator| {
            let text = line(&Hardware { accelerator, ..plain() }, true, &WIRES);
            text.split_whitespace()
                .filter_map(|word| word.strip_prefix("tsc_early_khz=")?.parse::<u64>().ok())
                .max()
        };
        assert!(told(Accelerator::Tcg) > Some(0) && told(Accelerator::Uintr) > Some(0));
        assert_eq!(told(Accelerator::Kvm), None);
    }

    #[test]
    fn the_first_process_gets_its_verb_and_the_kernel_nothing_behind_it() {
        let text = line(&plain(), false, &WIRES);
        let parameters = text.split("-append ").nth(1).unwrap();
        assert!(
            parameters.contains("rdinit=/doorbell") && parameters.contains(" -- vm-guest"),
            "{parameters}"
        );
    }

    #[test]
    fn parameters_come_behind_those_of_every_guest_and_before_the_first_process() {
        let with = |word: &str| Hardware { parameters: vec![word.into()], ..plain() };
        let text = line(&with("pti=on"), false, &WIRES);
        assert!(text.contains("panic=-1") && text.contains(" pti=on -- vm-guest"), "{text}");
        for word in ["", "--", "a b", "a=\"b\"", "a\n", "\u{e9}"] {
            let refused = with(word).check();
            assert_eq!(refused, Err(HardwareError::Parameter(word.into())));
        }
    }

    #[test]
    fn hardware_that_cannot_be_is_refused_with_its_numbers() {
        let refused = |hardware: Hardware| hardware.check().unwrap_err().to_string();
        assert!(refused(Hardware { cpus: 0, ..plain() }).contains("not 0"));
        assert!(refused(Hardware { cpus: 5, nodes: 2, ..plain() }).contains("5 CPUs"));
        assert!(refused(Hardware { nodes: 0, ..plain() }).contains("0 nodes"));
        assert!(
            refused(Hardware { nodes: 2, cores_per_socket: Some(4), ..plain() })
                .contains("sockets of 4 cores")
        );
        assert!(refused(Hardware { cpus: 64, nodes: 64, ..plain() }).contains("give 8 at most"));
        let kvm = Hardware { accelerator: Accelerator::Kvm, deterministic: true, ..plain() };
        assert!(refused(kvm).contains("--accel tcg"));
        for accelerator in [Accelerator::Kvm, Accelerator::Uintr] {
            let foreign = architecture::ALL.iter().find(|it| !it.is_own() && !it.is_x86()).unwrap();
            assert!(
                refused(Hardware { architecture: foreign, accelerator, ..plain() }).contains(foreign.name)
            );
        }
    }

    #[test]
    fn other_architectures_have_their_own_machine_console_and_a_port_of_virtio() {
        let aarch64 = ("aarch64", "-machine virt,gic-version=max ", "console=ttyAMA0 ");
        for (name, machine, console) in [aarch64, ("riscv64", "-machine virt ", "console=ttyS0 ")] {
            let text = line(&Hardware { architecture: name.parse().unwrap(), ..plain() }, false, &WIRES);
            for part in [machine, console, "virtserialport,chardev=channel"] {
                assert!(text.contains(part), "{part} is not in {text}");
            }
            assert!(!text.contains("tsc") && !text.contains("-serial chardev:channel"), "{text}");
        }
    }
}
