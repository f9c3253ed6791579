// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the descriptors of a process are of, as `/proc` shows it at a
//! moment. Most are open for long; those that a system call opened whose
//! return says what they are, [`super::graph`] knows without looking.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use doorbell_results::anatomy::program::File;

#[derive(Debug, Default)]
pub struct Files {
    open: HashMap<(i32, i32), Seen>,
    /// As the network's tables had them when they were last read. The kernel goes through its whole
    /// table of connections for each reader, which takes 15 ms: they are read for a new socket alone.
    sockets: HashMap<u64, File>,
}

#[derive(Debug)]
struct Seen {
    file: File,
    /// Of a socket.
    inode: Option<u64>,
}

impl Files {
    pub fn of(&self, process: i32, fd: i32) -> Option<&File> {
        self.open.get(&(process, fd)).map(|seen| &seen.file)
    }

    /// Looks at the descriptors of `process`, and says whether there is such a process. What was
    /// seen of one that is gone stays.
    pub fn look(&mut self, process: i32) -> bool {
        let folder = format!("/proc/{process}/fd");
        let Ok(entries) = fs::read_dir(&folder) else {
            return Path::new("/proc").join(process.to_string()).exists();
        };
        let mut is_read = false;
        for entry in entries.flatten() {
            let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(link) = fs::read_link(entry.path()) else { continue };
            let link = link.to_string_lossy();
            match inode(&link, "socket:[") {
                Some(inode) => {
                    // One that is not connected yet is in no table, nor is that of a process that is
                    // just ending.
                    let seen = self.open.get(&(process, fd));
                    if seen.is_some_and(|seen| seen.inode == Some(inode) && seen.file != unknown()) {
                        continue;
                    }
                    if !is_read && !self.sockets.contains_key(&inode) {
                        self.sockets = sockets_of(process);
                        is_read = true;
                    }
                    let file = self.sockets.get(&inode).cloned().unwrap_or_else(unknown);
                    self.open.insert((process, fd), Seen { file, inode: Some(inode) });
                }
                None => {
                    let file = named(&link, &entry.path());
                    self.open.insert((process, fd), Seen { file, inode: None });
                }
            }
        }
        true
    }

    #[cfg(test)]
    pub(super) fn with(mut self, process: i32, fd: i32, file: File) -> Self {
        self.open.insert((process, fd), Seen { file, inode: None });
        self
    }
}

/// A socket that is in no table.
fn unknown() -> File {
    File::Socket { family: "socket".to_owned(), address: None }
}

/// The number in `socket:[123]`.
fn inode(link: &str, before: &str) -> Option<u64> {
    link.strip_prefix(before)?.strip_suffix(']')?.parse().ok()
}

/// What a link of `/proc/PID/fd` says that its file is (proc_pid_fd(5)).
fn named(link: &str, path: &Path) -> File {
    use std::os::unix::fs::FileTypeExt;
    match link {
        "anon_inode:[eventfd]" => File::Eventfd,
        "anon_inode:[eventpoll]" => File::Epoll,
        "anon_inode:[timerfd]" => File::Timerfd,
        "anon_inode:[signalfd]" => File::Signalfd,
        link if inode(link, "pipe:[").is_some() => File::Pipe,
        link if link.starts_with('/') && fs::metadata(path).is_ok_and(|it| it.file_type().is_fifo()) => {
            File::Pipe
        }
        _ => File::Other,
    }
}

fn sockets_of(process: i32) -> HashMap<u64, File> {
    let text = |name: &str| doorbell_files::kernel(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let mut all = HashMap::new();
    for (family, names) in [("tcp", ["tcp", "tcp6"]), ("udp", ["udp", "udp6"])] {
        for name in names {
            all.extend(inet(family, &text(name)));
        }
    }
    all.extend(unix(&text("unix")));
    all
}

/// The lines of `/proc/net/tcp` and its like. A connection is named by the end that was listened
/// at: so all connections of a server have one name, on either side.
fn inet(family: &str, text: &str) -> Vec<(u64, File)> {
    /// `TCP_LISTEN` (kernel include/net/tcp_states.h).
    const LISTENS: &str = "0A";
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let listened: Vec<u16> = lines
        .iter()
        .filter(|line| line.get(3) == Some(&LISTENS))
        .filter_map(|line| Some(endpoint(line.get(1)?)?.port()))
        .collect();
    let socket = |line: &Vec<&str>| {
        let (local, remote) = (endpoint(line.get(1)?)?, endpoint(line.get(2)?)?);
        let served = listened.contains(&local.port()) || remote.port() == 0;
        let address = if served { local } else { remote };
        let file = File::Socket { family: family.to_owned(), address: Some(address.to_string()) };
        Some((line.get(9)?.parse().ok()?, file))
    };
    lines.iter().filter_map(socket).collect()
}

/// `0100007F:1F90`, as the kernel writes an address: its words as
/// numbers of this machine, then the port.
fn endpoint(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            let bytes: [u8; 16] = words.try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn unix(text: &str) -> Vec<(u64, File)> {
    let socket = |line: &str| {
        let mut words = line.split_whitespace();
        let inode = words.nth(6)?.parse().ok()?;
        let address = words.next().map(str::to_owned);
        Some((inode, File::Socket { family: "unix".to_owned(), address }))
    };
    text.lines().skip(1).filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_by_the_end_that_was_listened_at() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let line = |local: &str, remote: &str, state: &str, inode: u64| {
            format!(
                "   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 x\n"
            )
        };
        let text = head.to_owned()
            + &line("0100007F:18EB", "00000000:0000", "0A", 1)
            + &line("0100007F:18EB", "0100007F:A001", "01", 2)
            + &line("0100007F:A001", "0100007F:18EB", "01", 3);
        let named = inet("tcp", &text);
        let file =
            |address: &str| File::Socket { family: "tcp".to_owned(), address: Some(address.to_owned()) };
        let server = || file("127.0.0.1:6379");
        assert_eq!(named, [(1, server()), (2, server()), (3, server())]);
        assert_eq!(endpoint("0000000000000000FFFF00000100007F:0050").unwrap().to_string(), "127.0.0.1:80");
        for odd in ["", "x", "01:1", "0100007F", "0100007F:99999", "é00007F:0001"] {
            assert_eq!(endpoint(odd), None, "{odd}");
        }
    }

    #[test]
    fn unix_sockets_have_their_path_or_none() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 77 /run/a\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 78\nodd\n";
        let file = |address: Option<&str>| File::Socket {
            family: "unix".to_owned(),
            address: address.map(str::to_owned),
        };
        assert_eq!(unix(text), [(77, file(Some("/run/a"))), (78, file(None))]);
    }

    #[test]
    fn a_socket_has_its_address_once_it_listens() {
        use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
        let end = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let mut files = Files::default();
        let process = i32::try_from(std::process::id()).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&end);
        assert!(files.look(process));
        assert_eq!(files.of(process, fd), Some(&unknown()));
        bind(&end, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&end, 1).unwrap();
        for _ in 0..2 {
            assert!(files.look(process));
            let Some(File::Socket { family, address: Some(address) }) = files.of(process, fd) else {
                panic!("{:?}", files.of(process, fd))
            };
            assert!(family == "tcp" && address.starts_with("127.0.0.1:"), "{address}");
        }
    }

    #[test]
    fn the_descriptors_of_this_process_are_known_by_their_links() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
        let mut files = Files::default();
        let process = i32::try_from(std::process::id()).unwrap();
        assert!(files.look(process));
        let of = |fd: &dyn std::os::fd::AsRawFd| files.of(process, fd.as_raw_fd()).cloned().unwrap();
        assert_eq!([of(&reader), of(&writer)], [File::Pipe, File::Pipe]);
        assert_eq!(of(&event), File::Eventfd);
        assert!(!files.look(i32::MAX), "no process has such a number");
    }
}
