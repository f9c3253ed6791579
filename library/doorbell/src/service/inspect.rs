// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which services there are, who their clients are, and what lies in their rings.
//!
//! Nothing is asked of the services, and it costs them nothing: the memory that each shares with a
//! client is a memfd which is named after the service, `/memfd:doorbell@PATH`, so that it shows
//! among the links in `/proc/PID/fd` of both. Whoever may read that directory (the same user, or
//! root) can map it, which is done here, for reading.

use super::duplex::{ANSWERS, REQUESTS};
use super::name;
use crate::aio::AsyncIo;
use crate::counters;
use crate::directory::look_at_lane;
use crate::folder::Folder;
use crate::holder;
use crate::mapping::Mapping;
use crate::rendezvous::{MOST_MEMORY, Reason, RendezvousError};
use crate::shown_memory::ShownMemory;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What [`inspect`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The services, by name.
    pub services: Vec<Served>,
    /// The folders in which names are looked for, and what is there.
    pub folders: Vec<Folder>,
    /// How many processes may not be looked into: other users', or
    /// protected ones. Some may be services or clients.
    pub closed: usize,
    /// What all processes have taken of the kernel's limit that each of them needs one of. `None`
    /// where that is not shown.
    pub async_io: Option<AsyncIo>,
}

/// A service, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its name, or the path it listens at, if that is not in one of this user's folders.
    pub name: String,
    /// The path it listens at: its end, if it is too long for the
    /// name of a memfd and in no folder of this user's.
    pub path: PathBuf,
    /// The process that listens. `None` if nobody does, or if it may not be looked into.
    pub process: Option<u32>,
    /// How many callers and clients the services of that process have turned away.
    pub turned_away: u32,
    /// Why the last of them were, the last one last.
    pub reasons: Vec<Reason>,
    /// Those it shares memory with.
    pub clients: Vec<ClientSeen>,
}

/// A client of a service, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSeen {
    /// The processes, beside the service's, that have the memory: one
    /// as a rule, and those it forked. None if it may not be looked
    /// into, or has gone and the service has not noticed yet.
    pub processes: Vec<u32>,
    /// From the client to the service.
    pub requests: Occupancy,
    /// From the service to the client.
    pub answers: Occupancy,
}

/// What lies in a ring. As true as those who share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// The size of the ring in bytes.
    pub capacity: u64,
    /// Messages that were sent and whose room was not given back: a receiver gives it back by
    /// eighths of the ring, or when it finds no message.
    pub messages: usize,
    /// The bytes of the ring that they take.
    pub bytes: u64,
    /// Messages that its sender has dropped for want of room.
    pub dropped: u64,
}

/// What the memory of a service is called, ahead of the path.
const PREFIX: &str = "doorbell@";

/// So much of a path fits in the name of a memfd, from its end: with
/// the prefix, 249 bytes (memfd_create(2)).
const MOST: usize = 200;

/// What the memory is called that the service at `path` shares with a client.
pub(super) fn label(path: &Path) -> String {
    let text = path.to_string_lossy();
    let from =
        (0..).map(|skipped| text.len().saturating_sub(MOST) + skipped).find(|at| text.is_char_boundary(*at));
    format!("{PREFIX}{}", text.get(from.unwrap_or(0)..).unwrap_or_default())
}

/// The services of this user's folders, and those at other paths that have clients, of all
/// processes that may be looked into.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("doorbell-inspect-{}", std::process::id()));
/// # let name = folder.with_extension("sock");
/// let service = doorbell::listen(&name)?;
/// # drop(service);
/// for served in doorbell::service::inspect()?.services {
///     println!("{}: process {:?}, {} clients", served.name, served.process, served.clients.len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RendezvousError::Os`] if a folder of names cannot be read.
pub fn inspect() -> Result<Found, RendezvousError> {
    let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (_, path) in name::sockets()? {
        paths.insert(label(&path), path);
    }
    let sockets = listening();
    let (mut listeners, mut memory, mut closed) = (BTreeMap::new(), BTreeMap::new(), 0);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let links = match fs::read_dir(format!("/proc/{process}/fd")) {
            Ok(links) => links,
            Err(error) => {
                closed += usize::from(error.kind() == ErrorKind::PermissionDenied);
                continue;
            }
        };
        // What ends or is closed meanwhile is left out.
        for link in links.flatten().map(|link| link.path()) {
            let Ok(target) = fs::read_link(&link) else { continue };
            let target = target.to_string_lossy();
            if let Some(socket) = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
                if let Some(path) = sockets.get(socket) {
                    // Of several the oldest: a child has a copy until it begins a program.
                    let since = (holder::begun(process).unwrap_or(u64::MAX), process);
                    let first = listeners.entry(label(path)).or_insert(since);
                    *first = since.min(*first);
                }
            } else if let Some(seen) = ShownMemory::behind(&link, PREFIX) {
                let (shared_by, rings): &mut (Vec<u32>, Option<[Occupancy; 2]>) =
                    memory.entry((seen.name.clone(), seen.inode)).or_default();
                // Now, and at the next link if not at this: whose it is
                // may close it, as a child does that begins a program.
                if rings.is_none() {
                    *rings = occupancy(&seen);
                }
                if !shared_by.contains(&process) {
                    shared_by.push(process);
                }
            }
        }
    }
    let mut services: BTreeMap<String, Served> = BTreeMap::new();
    let served = |label: &str| {
        let process = listeners.get(label).map(|(_, process)| *process);
        let (name, path) = match paths.get(label) {
            Some(path) => (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path.clone()),
            None => {
                let path = label.trim_start_matches(PREFIX);
                (path.to_owned(), PathBuf::from(path))
            }
        };
        let counted = process.and_then(|process| counters::process(process).ok().flatten());
        let (turned_away, reasons) =
            counted.map_or_else(Default::default, |counted| (counted.turned_away, counted.reasons));
        let reasons = reasons.into_iter().filter_map(Reason::of_word).collect();
        Served { name, path, process, turned_away, reasons, clients: Vec::new() }
    };
    services.extend(paths.keys().map(|label| (label.clone(), served(label))));
    for ((label, _), (mut processes, rings)) in memory {
        let process = listeners.get(&label).map(|(_, process)| *process);
        processes.retain(|shared_by| Some(*shared_by) != process);
        let Some([requests, answers]) = rings else { continue };
        let served = services.entry(label.clone()).or_insert_with(|| served(&label));
        served.clients.push(ClientSeen { processes, requests, answers });
    }
    let services = services.into_values().collect();
    Ok(Found { services, folders: name::folders(), closed, async_io: AsyncIo::now() })
}

/// The sockets that listen at paths, by their numbers.
fn listening() -> BTreeMap<String, PathBuf> {
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    let mut found = BTreeMap::new();
    // Num RefCount Protocol Flags Type St Inode Path
    for line in table.split(|byte| *byte == b'\n').skip(1) {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        // `__SO_ACCEPTCON` of linux/net.h.
        if fields.nth(3) == Some(b"00010000")
            && let Some(inode) = fields.nth(2).and_then(|inode| std::str::from_utf8(inode).ok())
            && let Some(at) = line.iter().position(|byte| *byte == b'/')
        {
            found.insert(inode.to_owned(), PathBuf::from(std::ffi::OsStr::from_bytes(&line[at..])));
        }
    }
    found
}

/// What lies in the rings of memory, if it is what it is called, and still there.
fn occupancy(memory: &ShownMemory) -> Option<[Occupancy; 2]> {
    let file = memory.open()?;
    let mapping = Mapping::read_only(file.into(), MOST_MEMORY).ok()?;
    let look = |lane| {
        let (capacity, messages, bytes, dropped) = look_at_lane(&mapping, lane)?;
        Some(Occupancy { capacity, messages, bytes, dropped })
    };
    Some([look(REQUESTS)?, look(ANSWERS)?])
}

#[cfg(test)]
mod tests {
    use super::{MOST, label};
    use std::path::Path;

    #[test]
    fn memory_is_named_after_the_end_of_a_path_that_is_too_long_for_a_name() {
        assert_eq!(label(Path::new("/run/clock.sock")), "doorbell@/run/clock.sock");
        let long = "ü".repeat(MOST);
        assert_eq!(label(Path::new(&long)).len(), "doorbell@".len() + MOST);
    }
}
