// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes an archive in the "new ASCII" cpio format, the one an initramfs is made of (kernel
//! Documentation/driver-api/early-userspace/buffer-format.rst).

use std::io::{self, Write};
use std::path::{Component, Path};

const MAGIC: &str = "070701";
const TRAILER: &str = "TRAILER!!!";
const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

/// An archive under construction.
#[derive(Debug)]
pub(crate) struct Archive<W> {
    target: W,
    written: u64,
    entries: u32,
    folders: Vec<String>,
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(target: W) -> Self {
        Self { target, written: 0, entries: 0, folders: Vec::new() }
    }

    /// Puts a file at an absolute path, the folders above it first.
    pub(crate) fn file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.content(path, content, FILE)
    }

    /// Likewise, and it may be executed.
    pub(crate) fn program(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.content(path, content, PROGRAM)
    }

    /// Makes a folder and those above it.
    pub(crate) fn folder(&mut self, path: &Path) -> io::Result<()> {
        let name = name(path)?;
        self.folders_above(&format!("{name}/"))
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        // The trailer's own number must not be one of a file with links; zero is what others write.
        self.entries = 0;
        self.entry(TRAILER, 0, &[])?;
        Ok(self.target)
    }

    fn content(&mut self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        let name = name(path)?;
        self.folders_above(&name)?;
        self.entry(&name, mode, content)
    }

    /// The kernel makes no folder on its own: each comes before what lies in it.
    fn folders_above(&mut self, name: &str) -> io::Result<()> {
        for (end, _) in name.match_indices('/') {
            if !self.folders.iter().any(|known| known == &name[..end]) {
                self.entry(&name[..end], FOLDER, &[])?;
                self.folders.push(name[..end].to_owned());
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(|_| {
            io::Error::other(format!("{name} is larger than a cpio archive can hold (4 GiB)"))
        })?;
        let links = if mode == FOLDER { 2 } else { 1 };
        let length = name.len() as u32 + 1;
        // inode, mode, owner, group, links, time, size, device (two),
        // device of a node (two), name, checksum (unused)
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, length, 0];
        self.entries += 1;
        let mut header = MAGIC.to_owned();
        header.extend(fields.map(|field| format!("{field:08x}")));
        self.put(header.as_bytes())?;
        self.put(name.as_bytes())?;
        self.put(&[0])?;
        self.align()?;
        self.put(content)?;
        self.align()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.target.write_all(bytes)
    }

    fn align(&mut self) -> io::Result<()> {
        let gap = self.written.next_multiple_of(4) - self.written;
        self.put(&[0; 3][..gap as usize])
    }
}

/// The name an absolute path has in an archive.
fn name(path: &Path) -> io::Result<String> {
    let unfit =
        || io::Error::other(format!("{} has no place in an archive: not an absolute path", path.display()));
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(unfit());
    }
    let parts: Option<Vec<&str>> = parts
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("/")).ok_or_else(unfit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an archive back by the format's own rules.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(&bytes[..6], b"070701", "magic at {at}");
            let field = |number: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * number..14 + 8 * number]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, size, length) = (field(1), field(6) as usize, field(11) as usize);
            let name = String::from_utf8(bytes[110..110 + length - 1].to_vec()).unwrap();
            let start = (110 + length).next_multiple_of(4);
            let content = bytes[start..start + size].to_vec();
            let next = (start + size).next_multiple_of(4);
            if name == TRAILER {
                assert_eq!(bytes.len(), next);
                return entries;
            }
            entries.push((name, mode, content));
            at += next;
            bytes = &bytes[next..];
        }
    }

    fn archive(fill: impl FnOnce(&mut Archive<Vec<u8>>)) -> Vec<(String, u32, Vec<u8>)> {
        let mut archive = Archive::new(Vec::new());
        fill(&mut archive);
        read(&archive.finish().unwrap())
    }

    #[test]
    fn files_of_every_length_come_back_whole() {
        for length in 0..9 {
            let content: Vec<u8> = (0..length).collect();
            let entries = archive(|archive| archive.file(Path::new("/a"), &content).unwrap());
            assert_eq!(entries, [("a".to_owned(), FILE, content)]);
        }
    }

    #[test]
    fn each_folder_stands_once_and_before_what_lies_in_it() {
        let entries = archive(|archive| {
            archive.program(Path::new("/usr/lib/x"), b"x").unwrap();
            archive.folder(Path::new("/usr/lib/deep")).unwrap();
            archive.file(Path::new("/usr/y"), b"y").unwrap();
        });
        let names: Vec<(&str, u32)> = entries.iter().map(|(name, mode, _)| (name.as_str(), *mode)).collect();
        assert_eq!(
            names,
            [
                ("usr", FOLDER),
                ("usr/lib", FOLDER),
                ("usr/lib/x", PROGRAM),
                ("usr/lib/deep", FOLDER),
                ("usr/y", FILE)
            ]
        );
    }

    #[test]
    fn a_path_that_could_leave_the_root_is_refused() {
        let mut archive = Archive::new(Vec::new());
        for path in ["relative", "/", "/a/../b", ""] {
            assert!(archive.file(Path::new(path), b"").is_err(), "{path} was taken");
        }
    }
}
