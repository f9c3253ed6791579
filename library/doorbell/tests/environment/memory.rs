// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory cgroups, and kinds of memory.

use super::*;

/// A memory cgroup below this process's own. Removed when dropped, empty by then.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// `None`, with the reason said, if this process may not have one.
    fn new(most: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = |kind: &str, option: &str| {
            let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            mounts.find(|mount| mount[2] == kind && mount[3].contains(option)).map(|mount| mount[1])
        };
        // Version 1 has a tree for memory alone, version 2 one for all.
        let (line, mount, limit) = match groups.lines().find(|line| line.contains(":memory:")) {
            Some(line) => (line, at("cgroup", "memory"), "memory.limit_in_bytes"),
            None => (
                groups.lines().find(|line| line.starts_with("0::")).unwrap(),
                at("cgroup2", ""),
                "memory.max",
            ),
        };
        let own = line.rsplit(':').next().unwrap().trim_start_matches('/');
        let Some(mount) = mount else {
            doorbell_skipped::skip("no memory cgroups are mounted");
            return None;
        };
        // Several tests have one at the same time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("doorbell-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let group = Path::new(mount).join(own).join(name);
        let mut swap_is_limited = false;
        let limited = fs::create_dir(&group).map(|()| Self(group)).and_then(|group| {
            fs::write(group.0.join(limit), most.to_string())?;
            for (swap, most) in [("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", most)] {
                swap_is_limited |= fs::write(group.0.join(swap), most.to_string()).is_ok();
            }
            Ok(group)
        });
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        match limited {
            Ok(_) if !swap_is_limited && swaps.lines().count() > 1 => {
                doorbell_skipped::skip("this kernel does not count what of a memory cgroup is in swap");
                None
            }
            Ok(group) => Some(group),
            // Version 2 allows no limit in a group below one that has processes of its own, but at the root.
            Err(error) if is_not_allowed(&error) => {
                doorbell_skipped::skip(format_args!(
                    "this process may not have a memory cgroup below its own: {error}"
                ));
                None
            }
            Err(error) => panic!("no memory cgroup: {error}"),
        }
    }

    fn hold(&self, command: &mut Command) {
        let members = self.0.join("cgroup.procs");
        // SAFETY: system calls only, which are async-signal-safe; the
        // path takes no memory that is not there.
        unsafe {
            command.pre_exec(move || {
                let file = rustix::fs::open(members.as_path(), OFlags::WRONLY, Mode::empty())?;
                rustix::io::write(file, b"0")?;
                Ok(())
            });
        }
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The kernel may be counting the last member still.
        for _ in 0..1000 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What a memory cgroup may have in which a process of ours runs, but no large segment.
const LITTLE: u64 = 48 << 20;

pub(crate) fn send_until_killed() {
    let connection: Connection = inherited::join().unwrap();
    let mut sender: Sender = Sender::attach(&connection, 0).unwrap();
    let mut message = vec![0; 1 << 16];
    for number in 0_u64.. {
        message[..8].copy_from_slice(&number.to_ne_bytes());
        message[(1 << 16) - 8..].copy_from_slice(&number.to_ne_bytes());
        sender.send(&message).unwrap();
    }
}

/// The pages of a ring are counted where they are touched first.
#[test]
fn a_sender_killed_by_its_full_memory_cgroup_is_told_of_behind_its_last_message() {
    let Some(group) = MemoryGroup::new(LITTLE) else { return };
    let lanes = Lanes::new(1, 1, 4 * LITTLE).unwrap();
    let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes)).unwrap());
    let mut command = me_as("send-until-killed");
    group.hold(&mut command);
    let offer = inherited::offer(&mut command).unwrap();
    let mut child = Other(command.spawn().unwrap());
    let connection: Connection = offer.meet(&segment, child.0.id()).unwrap();
    assert_eq!(end_of(&mut child.0).signal(), Some(libc::SIGKILL), "the kernel killed it");
    let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
    let (mut next, mut bytes) = (0_u64, Vec::new());
    let told = loop {
        match receiver.recv_timeout(FOREVER) {
            Ok(message) => message.expect("hung").copy_to_vec(&mut bytes),
            Err(error) => break error,
        }
        let at = |from: usize| u64::from_ne_bytes(bytes[from..from + 8].try_into().unwrap());
        assert_eq!((bytes.len(), at(0), at((1 << 16) - 8)), (1 << 16, next, next));
        next += 1;
    };
    assert_eq!(told, RecvError::PeerGone(connection.peer().id()));
    assert!(next > 0 && next << 16 < LITTLE, "{next} messages");
}

/// Makes a segment for which its memory cgroup is too small, says
/// when it has it, and uses all of it.
pub(crate) fn make_a_large_segment(populated: bool) {
    let memory = MemoryOptions { populated, ..MemoryOptions::default() };
    let segment = Segment::new(&Offer { payload: 4 * LITTLE, memory, ..Offer::default() }).unwrap();
    println!("made, without {} wishes", segment.refused().len());
    (0..4 * LITTLE).step_by(4096).for_each(|page| segment.payload().write(page, &[1]).unwrap());
}

/// What the kernel says of the memory of `segment`, in `file` of this process in /proc.
fn kernels_word(file: &str, segment: &Segment) -> Vec<String> {
    let header = std::ptr::from_ref(segment.state(0).unwrap().record()) as usize - 128;
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let start = format!("{header:x}");
    let is_header =
        |line: &&str| line.starts_with(|first: char| first.is_ascii_hexdigit() && !first.is_uppercase());
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&start));
    let first = lines.next().expect("the segment is mapped").to_owned();
    std::iter::once(first).chain(lines.take_while(|line| !is_header(line)).map(str::to_owned)).collect()
}

/// A number of smaps, in bytes.
fn bytes(segment: &Segment, name: &str) -> u64 {
    let lines = kernels_word("smaps", segment);
    let line = lines.iter().find(|line| line.starts_with(name)).expect("smaps has it");
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A segment with this wish alone, if it was granted, and one without any.
fn with_and_without(memory: MemoryOptions) -> Option<(Segment, Segment)> {
    let make = |memory| Segment::new(&Offer { payload: 4 << 20, memory, ..Offer::default() }).unwrap();
    let segment = make(memory);
    if let Some(refusal) = segment.refused().first() {
        doorbell_skipped::skip(refusal);
        return None;
    }
    Some((segment, make(MemoryOptions::default())))
}

#[test]
fn memory_that_is_wished_to_be_there_from_the_start_is() {
    let populated = MemoryOptions { populated: true, ..MemoryOptions::default() };
    let (with, without) = with_and_without(populated).expect("Linux 5.14 has it");
    assert_eq!(bytes(&with, "Rss:"), bytes(&with, "Size:"));
    assert!(bytes(&without, "Rss:") < bytes(&without, "Size:"), "else this shows nothing");
}

#[test]
fn memory_that_is_wished_to_be_locked_is() {
    let locked = MemoryOptions { locked: true, ..MemoryOptions::default() };
    let Some((with, without)) = with_and_without(locked) else { return };
    assert_eq!(bytes(&with, "Locked:"), bytes(&with, "Size:"));
    assert_eq!(bytes(&without, "Locked:"), 0);
}

#[test]
fn memory_that_is_wished_on_a_node_is_bound_to_it() {
    let bound = MemoryOptions { numa_node: Some(0), populated: true, ..MemoryOptions::default() };
    let Some((with, without)) = with_and_without(bound) else { return };
    let policy = |segment| kernels_word("numa_maps", segment)[0].split(' ').nth(1).unwrap().to_owned();
    assert_eq!(policy(&with), "bind:0");
    assert_eq!(policy(&without), "default");
}

#[test]
fn memory_that_is_wished_in_huge_pages_is() {
    let huge = MemoryOptions { huge_pages: true, ..MemoryOptions::default() };
    let Some((with, without)) = with_and_without(huge) else { return };
    assert_eq!(bytes(&with, "KernelPageSize:"), 2 << 20);
    assert_eq!(bytes(&without, "KernelPageSize:"), 4096);
}

/// The kernel kills for it, and gives no error: better before there is any traffic.
#[test]
fn a_memory_cgroup_too_small_for_a_segment_ends_its_maker_at_once_if_it_wished_for_all_of_it_and_later_if_not()
 {
    for populated in [true, false] {
        let Some(group) = MemoryGroup::new(LITTLE) else { return };
        let mut command = me_as(format!("make-a-large-segment {populated}"));
        group.hold(&mut command);
        let output = command.stdout(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.contains("made, without 0 wishes"), !populated, "{said}");
        assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    }
}
