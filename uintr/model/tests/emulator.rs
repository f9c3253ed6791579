// SPDX-License-Identifier: MIT OR Apache-2.0
//! The executable CPU follows a trace of the emulated one, step by step.
//!
//! `uintr/qemu/conformance/run --steps N --trace FILE` makes a trace: random steps of
//! up to eight CPUs in lock step, and what changed after each (the format is in
//! `uintr/qemu/README.md`). Here the same steps are done by [`doorbell_uintr::cpu`],
//! and the first line that says something else is the difference. A recorded
//! trace is followed in every test run; `DOORBELL_UINTR_TRACE` names another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use doorbell_uintr::cpu::{
    ApicMode, Cpu, Exception, Ipi, Memory, PageFault, Rights, deliver, delivery, flag, msr_access,
    notification, senduipi, uiret, xsave,
};
use doorbell_uintr::xstate::UintrState;

const PAGE: u64 = 4096;
const IF: u64 = 1 << 9;
const FIXED_1: u64 = 1 << 1;
const COMPONENT: u64 = 1 << doorbell_uintr::xstate::COMPONENT;

/// Vectors whose request bits a trace shows, lowest bit first.
const SHOWN_VECTORS: [u8; 3] = [0xEC, 0xEB, 0x51];

/// What the program has mapped, as far as steps can reach it.
#[derive(Default)]
struct Pages {
    upid: u64,
    uitt: u64,
    stack_tops: Vec<u64>,
    qwords: BTreeMap<u64, u64>,
}

impl Pages {
    fn get(&self, address: u64) -> u64 {
        self.qwords.get(&address).copied().unwrap_or(0)
    }

    /// The two qwords of a UPID, or of an entry of the table; by the name and number that a trace gives it.
    fn place(&self, name: &str, number: u64) -> u64 {
        if name == "upid" { self.upid + number * 64 } else { self.uitt + number * 16 }
    }

    fn pair(&self, at: u64) -> [u64; 2] {
        [at, at + 8].map(|at| self.get(at))
    }

    fn put(&mut self, at: u64, [low, high]: [u64; 2]) {
        self.qwords.insert(at, low);
        self.qwords.insert(at + 8, high);
    }

    fn mapped(&self, address: u64, rights: Rights) -> bool {
        let in_page = |base: u64| (base..base + PAGE).contains(&address);
        self.stack_tops.iter().any(|&top| in_page(top - PAGE))
            || rights == Rights::Supervisor && (in_page(self.upid) || in_page(self.uitt))
    }

    fn check(&self, address: u64, write: bool, rights: Rights) -> Result<(), PageFault> {
        let user = rights == Rights::User;
        if self.mapped(address, rights) { Ok(()) } else { Err(PageFault { address, write, user }) }
    }
}

impl Memory for Pages {
    fn read8(&mut self, address: u64, rights: Rights) -> Result<u64, PageFault> {
        self.check(address, false, rights)?;
        Ok(self.get(address))
    }

    fn write8(&mut self, address: u64, value: u64, rights: Rights) -> Result<(), PageFault> {
        self.check(address, true, rights)?;
        self.qwords.insert(address, value);
        Ok(())
    }

    fn read16(&mut self, address: u64) -> Result<u128, PageFault> {
        self.check(address, false, Rights::Supervisor)?;
        let [low, high] = self.pair(address);
        Ok(u128::from(high) << 64 | u128::from(low))
    }

    fn update16(
        &mut self,
        address: u64,
        change: &mut dyn FnMut(u128) -> Option<u128>,
    ) -> Result<(), PageFault> {
        self.check(address, true, Rights::Supervisor)?;
        if let Some(new) = change(self.read16(address)?) {
            self.put(address, [new as u64, (new >> 64) as u64]);
        }
        Ok(())
    }
}

/// One processor with its local APIC, of which only the requests matter.
struct Core {
    cpu: Cpu,
    apic_id: u32,
    requests: BTreeSet<u8>,
}

/// The fields of a processor that a trace shows, by name.
type View = BTreeMap<&'static str, u64>;

impl Core {
    fn view(&self) -> View {
        let cpu = &self.cpu;
        let requests =
            (0..).zip(SHOWN_VECTORS).map(|(bit, v)| u64::from(self.requests.contains(&v)) << bit).sum();
        BTreeMap::from([
            ("rr", cpu.uirr),
            ("handler", cpu.handler),
            ("adjust", cpu.stack_adjust),
            ("misc", u64::from(cpu.uinv) << 32 | u64::from(cpu.uitt_size)),
            ("pd", cpu.upid_address),
            ("tt", cpu.tt),
            ("uif", u64::from(cpu.uif)),
            ("cr4", u64::from(cpu.cr4_uintr)),
            ("irr", requests),
        ])
    }
}

/// How a trace writes that something completed, or what it raised.
fn outcome<T>(result: Result<T, Exception>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(Exception::InvalidOpcode) => "ud".to_owned(),
        Err(Exception::GeneralProtection) => "gp".to_owned(),
        Err(Exception::StackFault) => "ss".to_owned(),
        Err(Exception::PageFault(fault)) => {
            format!("pf:{:x}:{:x}", fault.address, u8::from(fault.write) << 1 | u8::from(fault.user) << 2)
        }
    }
}

fn hex(word: &str) -> Result<u64, String> {
    u64::from_str_radix(word, 16).map_err(|_| format!("{word:?} is no hexadecimal number"))
}

/// A qword of "bv:B image:Q:Q:Q:Q:Q:Q", after the colon-separated names.
fn image(words: &[&str]) -> Result<(u64, UintrState), String> {
    let [bv, image] = words else { return Err("an XSAVE image is bv:… image:…".to_owned()) };
    let bv = hex(bv.strip_prefix("bv:").unwrap_or_default())?;
    let q = image.split(':').skip(1).map(hex).collect::<Result<Vec<_>, _>>()?;
    let [handler, stack_adjust, misc, upid_address, uirr, tt] = q[..] else {
        return Err("an XSAVE image has six qwords".to_owned());
    };
    Ok((bv, UintrState { handler, stack_adjust, misc, upid_address, uirr, tt }))
}

struct Machine {
    cores: Vec<Core>,
    pages: Pages,
}

impl Machine {
    /// From the first line of a trace.
    fn new(header: &str) -> Result<Self, String> {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut name = "";
        for word in header.split_ascii_whitespace() {
            if ["lockstep", "cpus", "apic", "uiret-uif", "la57", "handler", "stack", "ids", "upid", "uitt"]
                .contains(&word)
            {
                name = word;
            } else {
                values.entry(name).or_default().push(word);
            }
        }
        let first = |name: &str| {
            values.get(name).and_then(|v| v.first()).copied().ok_or(format!("no {name} in the header"))
        };
        if first("lockstep")? != "1" {
            return Err(format!("a trace of version {}, 1 is known", first("lockstep")?));
        }
        let cpu = Cpu {
            has_uiret_uif: first("uiret-uif")? == "1",
            la57_capable: first("la57")? == "1",
            apic: if first("apic")? == "x2" { ApicMode::X2Apic } else { ApicMode::XApic },
            cpl: 0,
            ..Cpu::user_mode()
        };
        let cores = values.get("ids").into_iter().flatten();
        let cores = cores.map(|id| Ok(Core { cpu, apic_id: hex(id)? as u32, requests: BTreeSet::new() }));
        let tops = values.get("stack").into_iter().flatten().map(|top| hex(top));
        let pages = Pages {
            upid: hex(first("upid")?)?,
            uitt: hex(first("uitt")?)?,
            stack_tops: tops.collect::<Result<_, _>>()?,
            qwords: BTreeMap::new(),
        };
        Ok(Self { cores: cores.collect::<Result<_, String>>()?, pages })
    }

    fn deliver_ipi(&mut self, ipi: Ipi) {
        if ipi.vector >= 16 {
            for core in self.cores.iter_mut().filter(|core| core.apic_id == ipi.destination) {
                core.requests.insert(ipi.vector);
            }
        }
    }

    fn send(&mut self, me: usize, index: u64) -> Result<(), Exception> {
        let cpu = self.cores[me].cpu;
        // The table may lie where the current paging mode has no addresses; a `Memory` can only say #PF.
        let entry = senduipi::entry_address(&cpu, index)?;
        if (entry as i64) << 16 >> 16 != entry as i64 {
            return Err(Exception::GeneralProtection);
        }
        if let Some(ipi) = senduipi(&cpu, &mut self.pages, index)? {
            self.deliver_ipi(ipi);
        }
        Ok(())
    }

    /// Acknowledges the highest request: `Some(vector)` if it goes through the IDT.
    fn acknowledge(&mut self, me: usize) -> Result<Option<u8>, Exception> {
        let Core { cpu, requests, .. } = &mut self.cores[me];
        let vector = requests.pop_last().expect("called with a request");
        if !notification::identifies(cpu, vector) {
            return Ok(Some(vector));
        }
        notification::process(cpu, &mut self.pages).map(|()| None)
    }

    fn open(&mut self, me: usize) -> String {
        let (mut interrupts, mut faults) = (String::new(), String::new());
        while !self.cores[me].requests.is_empty() {
            match self.acknowledge(me) {
                Ok(Some(vector)) => write!(interrupts, "irq:{vector:x} ").unwrap(),
                Ok(None) => {}
                fault => write!(faults, "{} ", outcome(fault)).unwrap(),
            }
        }
        format!("{interrupts}{faults}ok")
    }

    /// Everything that happens at one instruction boundary at CPL 3, handlers run to their end.
    fn boundary(&mut self, me: usize, stay_off: bool, seen: &mut Seen) -> Result<(), Exception> {
        loop {
            if self.cores[me].cpu.rflags & IF != 0 && !self.cores[me].requests.is_empty() {
                seen.interrupts.extend(self.acknowledge(me)?);
            } else if delivery::deliverable(&self.cores[me].cpu) {
                let cpu = &mut self.cores[me].cpu;
                seen.delivered.push(deliver(cpu, &mut self.pages)?);
                cpu.rsp += 8;
                if stay_off {
                    let at = cpu.rsp + 8;
                    let rflags = self.pages.get(at) & !FIXED_1;
                    self.pages.qwords.insert(at, rflags);
                }
                uiret(cpu, &mut self.pages)?;
            } else {
                return Ok(());
            }
        }
    }

    fn visit(
        &mut self,
        me: usize,
        stay_off: bool,
        action: &[&str],
        seen: &mut Seen,
    ) -> Result<(), Exception> {
        self.boundary(me, stay_off, seen)?;
        match action {
            ["stui"] => flag::stui(&mut self.cores[me].cpu)?,
            ["clui"] => flag::clui(&mut self.cores[me].cpu)?,
            ["send", index] => self.send(me, hex(index).unwrap_or(u64::MAX))?,
            _ => {}
        }
        self.boundary(me, stay_off, seen)
    }

    fn user(&mut self, me: usize, interrupts: bool, stay_off: bool, action: &[&str]) -> String {
        let cpu = &mut self.cores[me].cpu;
        cpu.cpl = 3;
        cpu.rflags = FIXED_1 | if interrupts { IF } else { 0 };
        cpu.rsp = self.pages.stack_tops[me];
        cpu.rip = 0x1000;
        let mut seen = Seen::default();
        let end = outcome(self.visit(me, stay_off, action, &mut seen));
        self.cores[me].cpu.cpl = 0;
        let mut text = String::new();
        seen.interrupts.iter().for_each(|v| write!(text, "irq:{v:x} ").unwrap());
        seen.delivered.iter().for_each(|v| write!(text, "user:{v:x} ").unwrap());
        text + &end
    }

    fn save(&mut self, me: usize) -> String {
        let cpu = &mut self.cores[me].cpu;
        let in_use = xsave::in_use(cpu);
        let saved = xsave::xsaves(cpu);
        let image = if in_use { saved } else { UintrState::default() };
        format!(
            "ok bv:{:x} image:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}",
            if in_use { COMPONENT } else { 0 },
            image.handler,
            image.stack_adjust,
            image.misc,
            image.upid_address,
            image.uirr,
            image.tt
        )
    }

    /// Does what an op line says before its arrow; the text that must come after it.
    fn step(&mut self, me: usize, words: &[&str]) -> Result<String, String> {
        let cpu = &mut self.cores[me].cpu;
        Ok(match words {
            ["clui"] => outcome(flag::clui(cpu)),
            ["stui"] => outcome(flag::stui(cpu)),
            ["testui"] => match flag::testui(cpu) {
                Ok(()) => format!("uif:{}", cpu.rflags & 1),
                fault => outcome(fault),
            },
            ["wrmsr", number, value] => outcome(msr_access::wrmsr(cpu, hex(number)? as u32, hex(value)?)),
            ["cr4", on] => {
                cpu.cr4_uintr = *on == "1";
                "ok".to_owned()
            }
            ["xsaves"] => self.save(me),
            ["xrstors", rest @ ..] => {
                let (bv, image) = image(rest)?;
                outcome(if bv & COMPONENT != 0 {
                    xsave::xrstors(cpu, &image)
                } else {
                    xsave::xrstors_initial(cpu)
                })
            }
            ["send", index] => outcome(self.send(me, hex(index)?)),
            ["open"] => self.open(me),
            ["user", interrupts, stay_off, action @ ..] => {
                self.user(me, *interrupts == "1", *stay_off == "1", action)
            }
            ["ipi", to, vector] => {
                self.cores[hex(to)? as usize].requests.insert(hex(vector)? as u8);
                "ok".to_owned()
            }
            [set @ ("setupid" | "setuitt"), n, low, high] => {
                let at = self.pages.place(&set[3..], hex(n)?);
                self.pages.put(at, [hex(low)?, hex(high)?]);
                "ok".to_owned()
            }
            other => return Err(format!("unknown step {other:?}")),
        })
    }
}

#[derive(Default)]
struct Seen {
    interrupts: Vec<u8>,
    delivered: Vec<u8>,
}

/// What the trace has shown so far.
struct Shown {
    cores: Vec<View>,
    /// UPIDs and entries, by name and number.
    pairs: BTreeMap<(String, u64), [u64; 2]>,
}

impl Shown {
    fn new(machine: &Machine) -> Self {
        Self { cores: machine.cores.iter().map(Core::view).collect(), pairs: BTreeMap::new() }
    }

    fn take(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["cpu", n, fields @ ..] => {
                let view = &mut self.cores[hex(n)? as usize];
                for field in fields {
                    let (name, value) = field.split_once('=').ok_or(format!("{field:?} is no field"))?;
                    let slot = view.iter_mut().find(|(known, _)| **known == name);
                    *slot.ok_or(format!("unknown field {name:?}"))?.1 = hex(value)?;
                }
            }
            [name @ ("upid" | "uitt"), n, low, high] => {
                self.pairs.insert(((*name).to_owned(), hex(n)?), [hex(low)?, hex(high)?]);
            }
            other => return Err(format!("unknown line {other:?}")),
        }
        Ok(())
    }

    /// The first thing in which the model differs from what was shown.
    fn difference(&self, machine: &Machine, core: usize) -> Option<String> {
        let differs = |what: String, model: &[u64], shown: &[u64]| {
            (model != shown).then(|| format!("{what}: the model has {model:x?}, the emulator {shown:x?}"))
        };
        let fields = machine.cores[core].view().into_iter().zip(self.cores[core].values());
        let pages = &machine.pages;
        let pairs = self.pairs.iter().filter_map(|((name, n), shown)| {
            differs(format!("{name} {n}"), &pages.pair(pages.place(name, *n)), shown)
        });
        fields
            .filter_map(|((name, model), shown)| differs(format!("CPU {core} {name}"), &[model], &[*shown]))
            .chain(pairs)
            .next()
    }
}

/// Follows a trace to its end; the number of steps, or the first difference with its line number.
fn follow(trace: &str) -> Result<u64, String> {
    let mut lines = (1..).zip(trace.lines());
    let (_, header) = lines.next().ok_or("an empty trace")?;
    let mut machine = Machine::new(header)?;
    let mut shown = Shown::new(&machine);
    let (mut steps, mut last, mut last_line) = (0, None, (1, header));
    for (number, line) in lines {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let result = match &words[..] {
            ["op" | "end", ..]
                if let Some(difference) = last.and_then(|core| shown.difference(&machine, core)) =>
            {
                return Err(format!("after line {}, {:?}: {difference}", last_line.0, last_line.1));
            }
            ["end", _] => return Ok(steps),
            ["op", core, rest @ ..] => {
                let core = hex(core)? as usize;
                if let Some(difference) = shown.difference(&machine, core) {
                    return Err(format!("before line {number}, {line:?}: {difference}"));
                }
                let arrow = rest
                    .iter()
                    .position(|word| *word == "->")
                    .ok_or(format!("line {number} has no arrow"))?;
                steps += 1;
                (last, last_line) = (Some(core), (number, line));
                machine.step(core, &rest[..arrow]).and_then(|expected| {
                    let said = rest[arrow + 1..].join(" ");
                    if said == expected { Ok(()) } else { Err(format!("the model says {expected:?}")) }
                })
            }
            words => shown.take(words),
        };
        result.map_err(|why| format!("line {number}, {line:?}: {why}"))?;
    }
    Err(format!("the trace breaks off after {steps} steps"))
}

const RECORDED: &str = include_str!("emulator.trace");

#[test]
fn the_model_does_what_the_emulator_did_in_the_recorded_trace() {
    assert_eq!(follow(RECORDED), Ok(2000));
}

#[test]
#[ignore = "needs a fresh trace, named by DOORBELL_UINTR_TRACE: ci/test/60-qemu.sh makes one on \
    the emulator and runs this"]
fn the_model_does_what_the_emulator_did_in_the_trace_given_by_the_environment() {
    let path = std::env::var_os("DOORBELL_UINTR_TRACE").expect("DOORBELL_UINTR_TRACE names a trace");
    let trace = std::fs::read_to_string(&path).unwrap();
    let steps = follow(&trace).unwrap();
    println!("{steps} steps of {} without a difference", path.display());
}

#[test]
fn a_changed_digit_anywhere_in_the_state_is_a_difference() {
    let lines: Vec<_> = RECORDED.lines().collect();
    let shows = |line: &str| line.starts_with("cpu ") || line.starts_with("upid ");
    let candidates: Vec<_> = (0..lines.len()).filter(|&i| shows(lines[i])).step_by(17).collect();
    assert!(candidates.len() > 20, "the recorded trace has too few states to try");
    for at in candidates {
        let mut changed: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        let digit = changed[at].pop().unwrap();
        changed[at].push(if digit == '1' { '2' } else { '1' });
        assert!(follow(&changed.join("\n")).is_err(), "line {}: {:?}", at + 1, changed[at]);
    }
}

#[test]
fn a_changed_outcome_is_a_difference() {
    for (from, to) in [("-> gp", "-> ok"), ("-> ud", "-> gp"), ("user:", "user:f"), ("irq:ec", "irq:eb")] {
        assert!(RECORDED.contains(from), "the recorded trace has no {from:?}");
        assert!(follow(&RECORDED.replacen(from, to, 1)).is_err(), "{from:?} became {to:?}");
    }
}
