// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace buffer of one's own, beside whatever else is traced on the
//! machine, and gone with the trial.

#![expect(clippy::disallowed_methods, reason = "the files of tracefs, which are the kernel's")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::event::{Decoder, EventKind, KINDS, Of};
use super::format::Format;
use super::ring;
use super::tracefs::{TraceError, Tracefs};
use doorbell_results::event::Event;
use doorbell_results::machine::clock::Source;
use doorbell_results::machine::cpu_list::CpuList;

/// What names of instances begin with; the number of the process and the time of its start follow.
const PREFIX: &str = "doorbell-";

#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
    /// Held open from first to last: the kernel refuses to remove an instance of which a file is
    /// open, so no other run can take a living one for a dead one's.
    switch: Option<File>,
    buffers: Vec<Buffer>,
    page: usize,
    /// Reads that take out at the least what a full buffer holds.
    most: usize,
    decoder: Decoder,
    missing: Vec<&'static EventKind>,
}

#[derive(Debug)]
struct Buffer {
    cpu: u32,
    file: File,
    /// Events lost until the last harvest.
    lost: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Harvest {
    pub events: Vec<Event>,
    /// Events that were overwritten or dropped.
    pub lost: u64,
    /// From this moment on nothing is missing, by the buffer's clock.
    pub whole_from: u64,
}

#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// What of each kind: what it does for stages, or for causes.
    pub of: fn(&'static EventKind) -> Option<Of>,
    pub tasks: [u32; 2],
    /// The CPUs; those the sides may run on.
    pub cpus: &'a CpuList,
    pub clock: Source,
    pub kib: u32,
}

impl Instance {
    /// Makes one that records nothing yet; clears those that dead runs left.
    pub fn create(tracefs: &Tracefs, wanted: &Wanted) -> Result<Self, TraceError> {
        let mut instance = Self::bare(tracefs)?;
        instance.lay_out(tracefs, wanted.clock, wanted.cpus, wanted.kib)?;
        instance.write("options/overwrite", "1")?;
        for kind in KINDS {
            let Some(of) = (wanted.of)(kind) else { continue };
            let event = format!("events/{}/{}", kind.system, kind.name);
            let format = fs::read_to_string(instance.folder.join(&event).join("format"));
            let Some(()) = format.ok().and_then(|text| instance.decoder.add(kind, &text)) else {
                instance.missing.push(kind);
                continue;
            };
            if let Of::Sides(fields) = of {
                let [a, b] = wanted.tasks;
                let either: Vec<String> =
                    fields.iter().map(|field| format!("{field}=={a}||{field}=={b}")).collect();
                instance.write(&format!("{event}/filter"), &either.join("||"))?;
            }
            instance.write(&format!("{event}/enable"), "1")?;
        }
        instance.open_buffers(wanted.cpus)?;
        Ok(instance)
    }

    /// Makes one that records nothing yet, and then follows the tasks that [`Instance::follow`]
    /// names; with the formats of its kinds, in their order. A full buffer drops what comes.
    pub fn following(
        tracefs: &Tracefs,
        events: &[(&'static str, &'static str, &[&str])],
        clock: Source,
        cpus: &CpuList,
        kib: u32,
    ) -> Result<(Self, Vec<Format>), TraceError> {
        let mut instance = Self::bare(tracefs)?;
        instance.lay_out(tracefs, clock, cpus, kib)?;
        instance.write("options/overwrite", "0")?;
        instance.write("options/event-fork", "1")?;
        // Without a task in the list everything of the machine would be recorded.
        instance.unfollow()?;
        let mut formats = Vec::new();
        for &(system, name, _) in events {
            let event = format!("events/{system}/{name}");
            let format = fs::read_to_string(instance.folder.join(&event).join("format"));
            let format = format.ok().and_then(|text| Format::parse(&text));
            formats.push(format.ok_or(TraceError::NoEvent { system, name })?);
            instance.write(&format!("{event}/enable"), "1")?;
        }
        instance.open_buffers(cpus)?;
        Ok((instance, formats))
    }

    /// One without events.
    fn bare(tracefs: &Tracefs) -> Result<Self, TraceError> {
        sweep(tracefs);
        let folder = tracefs.folder().join("instances").join(own_name());
        match fs::create_dir(&folder) {
            // One's own, left by the trial before when something else read from it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => {
                other.map_err(|cause| TraceError::Forbidden { place: folder.display().to_string(), cause })?
            }
        }
        let mut instance = Self {
            folder,
            switch: None,
            buffers: Vec::new(),
            page: 4096,
            most: usize::MAX,
            decoder: Decoder::default(),
            missing: Vec::new(),
        };
        let path = instance.folder.join("tracing_on");
        let switch =
            OpenOptions::new().write(true).open(&path).map_err(|cause| TraceError::file(&path, cause))?;
        instance.switch = Some(switch);
        instance.turn(false)?;
        Ok(instance)
    }

    /// What holds whatever is recorded: the layout of pages, the
    /// clock, and the size of each CPU's buffer.
    fn lay_out(
        &mut self,
        tracefs: &Tracefs,
        clock: Source,
        cpus: &CpuList,
        kib: u32,
    ) -> Result<(), TraceError> {
        let header = tracefs.folder().join("events/header_page");
        let text = at_once(&header).map_err(|cause| TraceError::file(&header, cause))?;
        ring::check(&text, &header.display().to_string())?;
        self.set_clock(clock)?;
        // Before 6.8 a sub-buffer is always a page.
        if let Ok(kib) = fs::read_to_string(self.folder.join("buffer_subbuf_size_kb")) {
            self.page = kib.trim().parse::<usize>().map_or(self.page, |kib| kib * 1024);
        }
        // Twice what it takes: each page has a header, the reader has
        // one of its own, and a signal may end a read.
        self.most = 2 * (kib as usize * 1024 / self.page.max(1)) + 16;
        self.write("tracing_cpumask", &mask(cpus))?;
        for cpu in cpus.iter() {
            self.write(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &kib.to_string())?;
        }
        Ok(())
    }

    fn open_buffers(&mut self, cpus: &CpuList) -> Result<(), TraceError> {
        for cpu in cpus.iter() {
            let path = self.folder.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&path)
                .map_err(|cause| TraceError::file(&path, cause))?;
            self.buffers.push(Buffer { cpu, file, lost: 0 });
        }
        Ok(())
    }

    fn set_clock(&self, clock: Source) -> Result<(), TraceError> {
        let name = clock_name(clock);
        let path = self.folder.join("trace_clock");
        let has = fs::read_to_string(&path).map_err(|cause| TraceError::file(&path, cause))?;
        if !has.split_whitespace().any(|known| known.trim_matches(['[', ']']) == name) {
            return Err(TraceError::NoClock { wanted: name, has: has.trim().to_owned() });
        }
        self.write("trace_clock", name)
    }

    /// Kinds of event that were asked for and that this kernel does not have.
    pub fn missing(&self) -> &[&'static EventKind] {
        &self.missing
    }

    /// Records, or stops; what was recorded stays.
    pub fn turn(&self, on: bool) -> Result<(), TraceError> {
        let Some(switch) = &self.switch else { return Ok(()) };
        rustix::io::write(switch, if on { b"1" } else { b"0" })
            .map(drop)
            .map_err(|cause| TraceError::file(&self.folder.join("tracing_on"), cause.into()))
    }

    pub fn follow(&self, tasks: &[i32]) -> Result<(), TraceError> {
        let path = self.folder.join("set_event_pid");
        let mut file =
            OpenOptions::new().append(true).open(&path).map_err(|cause| TraceError::file(&path, cause))?;
        // The kernel takes less than a page at a time.
        for some in tasks.chunks(256) {
            let text: String = some.iter().map(|task| format!("{task} ")).collect();
            file.write_all(text.as_bytes()).map_err(|cause| TraceError::file(&path, cause))?;
        }
        Ok(())
    }

    /// Follows nobody but a task that cannot be: an empty list would stand for everybody.
    pub fn unfollow(&self) -> Result<(), TraceError> {
        self.write("set_event_pid", &nobody().to_string())
    }

    /// Events that were lost since this was last asked, on all CPUs.
    pub fn lost(&mut self) -> u64 {
        let mut all = 0;
        for Buffer { cpu, lost, .. } in &mut self.buffers {
            let (now, _) = stats(&self.folder, *cpu);
            all += now.saturating_sub(*lost);
            *lost = now;
        }
        all
    }

    /// Hands each record that lies in the buffers to `entry`, with the place of its CPU's buffer
    /// and its time, and takes it out; recording may go on.
    pub fn drain(&mut self, mut entry: impl FnMut(usize, u64, &[u8])) -> Result<(), TraceError> {
        let mut page = vec![0; self.page];
        for (place, Buffer { file, .. }) in self.buffers.iter_mut().enumerate() {
            // Who writes as fast as it is read would keep us at one buffer for ever.
            take(file, &mut page, self.most, |time, record| entry(place, time, record))
                .map_err(|cause| TraceError::file(&self.folder.join("trace_pipe_raw"), cause))?;
        }
        Ok(())
    }

    /// Takes out all that was recorded; to be called while nothing is.
    pub fn harvest(&mut self) -> Result<Harvest, TraceError> {
        let mut harvest = Harvest::default();
        let mut page = vec![0; self.page];
        for Buffer { cpu, file, lost } in &mut self.buffers {
            let (now, oldest) = stats(&self.folder, *cpu);
            if now > *lost {
                harvest.lost += now - *lost;
                harvest.whole_from = harvest.whole_from.max(oldest);
                *lost = now;
            }
            take(file, &mut page, usize::MAX, |time, record| {
                harvest.events.extend(self.decoder.event(*cpu, time, record))
            })
            .map_err(|cause| TraceError::file(&self.folder.join("trace_pipe_raw"), cause))?;
        }
        // Each CPU's are in order; a stable sort keeps that order where clocks agree to the tick.
        harvest.events.sort_by_key(|event| event.at);
        Ok(harvest)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), TraceError> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|cause| TraceError::file(&path, cause))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An instance that cannot be stopped is removed all the same.
        let _ = self.turn(false);
        self.buffers.clear();
        self.switch = None;
        // A reader of its files, such as a curious `cat`, holds it for a moment.
        for _ in 0..20 {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // Removed, or never to be; then the next run's sweep meets it again.
                _ => return,
            }
        }
    }
}

/// A number that no task has now and hardly one will get: numbers are given in turn, and these are
/// the last (`/proc/sys/kernel/pid_max` is the first that is never given; the kernel takes no
/// greater one for its list).
fn nobody() -> u32 {
    /// What the kernel begins with on a small machine (kernel
    /// include/linux/threads.h, `PID_MAX_DEFAULT`).
    const LEAST: u32 = 32_768;
    let most = fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    let most = most.and_then(|text| text.trim().parse().ok()).unwrap_or(LEAST);
    (1..most).rev().find(|task| !Path::new(&format!("/proc/{task}")).exists()).unwrap_or(LEAST - 1)
}

/// Takes all pages out of a buffer, in `most` reads at the most, and hands each record to `entry`.
fn take(file: &mut File, page: &mut [u8], most: usize, mut entry: impl FnMut(u64, &[u8])) -> io::Result<()> {
    for _ in 0..most {
        match file.read(page) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                // A page without a header holds nothing.
                let _ = ring::read(&page[..length], &mut entry);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a file that the kernel ends after the first read, however short that was
/// (`show_header_page_file`).
fn at_once(path: &Path) -> io::Result<String> {
    let mut bytes = [0; 4096];
    let length = File::open(path)?.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// What `per_cpu/cpuN/stats` tells: events that were lost, and when the oldest was that is there.
fn stats(folder: &Path, cpu: u32) -> (u64, u64) {
    read_stats(&fs::read_to_string(folder.join(format!("per_cpu/cpu{cpu}/stats"))).unwrap_or_default())
}

fn read_stats(text: &str) -> (u64, u64) {
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        // The monotonic clock is told in seconds with a point, counters as whole numbers.
        match line.trim().split_once('.') {
            Some((seconds, rest)) => {
                let micros: u64 = format!("{rest:0<6}").get(..6)?.parse().ok()?;
                Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + (micros + 1) * 1000)
            }
            None => line.trim().parse().ok(),
        }
    };
    let lost = ["overrun", "commit overrun", "dropped events"].into_iter().filter_map(number).sum();
    (lost, number("oldest event ts").unwrap_or(u64::MAX))
}

/// The trace clock whose ticks are those of `source`.
fn clock_name(source: Source) -> &'static str {
    match source {
        Source::Tsc => "x86-tsc",
        // Trials beside events go by no other (`launch`).
        Source::Monotonic | Source::Cntvct | Source::Rdtime => "mono",
    }
}

/// CPUs as the kernel writes masks: 32 bits to a word, words of
/// hexadecimal digits from high to low, joined by commas.
fn mask(cpus: &CpuList) -> String {
    let words = cpus.iter().max().unwrap_or(0) / 32 + 1;
    let word = |index: u32| {
        let bits =
            cpus.iter().filter(|cpu| cpu / 32 == index).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
        format!("{bits:08x}")
    };
    (0..words).rev().map(word).collect::<Vec<_>>().join(",")
}

/// A name no other living process has: a process number may be given
/// again, but not with the same time of start.
fn own_name() -> String {
    let pid = std::process::id();
    format!("{PREFIX}{pid}-{}", started(pid).unwrap_or(0))
}

/// Removes the instances of processes that are gone.
pub fn sweep(tracefs: &Tracefs) {
    let Ok(entries) = fs::read_dir(tracefs.folder().join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((pid, start)) = name.to_str().and_then(owner) else { continue };
        if started(pid) != Some(start) {
            // The kernel refuses while anybody has it open: an owner
            // that this process cannot see, in another container.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn owner(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// When a process started, in ticks since the machine did (field 22 of `/proc/PID/stat`); none if
/// it is gone. One that has ended and was not waited for yet is gone: it holds nothing any more.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The name, in parentheses, may hold spaces; the state that follows it is field 3.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    fields.nth(22 - 4).filter(|_| !matches!(state, "Z" | "X"))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_reads_them() {
        for (cpus, text) in
            [("0-1", "00000003"), ("5", "00000020"), ("0,32-33,64", "00000001,00000003,00000001")]
        {
            assert_eq!(mask(&cpus.parse().unwrap()), text);
        }
    }

    #[test]
    fn losses_are_read_in_either_clock() {
        let text =
            "entries: 7\noverrun: 3\ncommit overrun: 1\noldest event ts: 73772714369134\ndropped events: 2\n";
        assert_eq!(read_stats(text), (6, 73_772_714_369_134));
        assert_eq!(read_stats("overrun: 0\noldest event ts:   123.000450\n"), (0, 123_000_451_000));
    }

    #[test]
    fn only_instances_of_processes_that_are_gone_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let instances = folder.path().join("instances");
        let own = own_name();
        let reused = format!("{PREFIX}{}-1", std::process::id());
        for name in [own.as_str(), &reused, "doorbell-4194999-5", "doorbell-x-1", "somebody-4194999-5"] {
            fs::create_dir_all(instances.join(name)).unwrap();
        }
        sweep(&Tracefs::at(folder.path()));
        let mut left: Vec<_> = fs::read_dir(&instances)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut kept = [own, "doorbell-x-1".to_owned(), "somebody-4194999-5".to_owned()];
        kept.sort();
        assert_eq!(left, kept);
    }
}
