// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads files that the user names.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::by_number::is_by_number;

/// Why a file is not read although the system would open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// It may never end, or act when it is opened.
    #[error(
        "it is {0} and no regular file; what comes from elsewhere is read from standard input, or \
         as <(COMMAND)"
    )]
    Kind(&'static str),
    /// In another encoding, or begun by U+FEFF, as some editors of Windows save it.
    #[error("it is {0}; save it as UTF-8 without a byte-order mark")]
    Encoding(&'static str),
    /// Longer than what is read.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
}

/// Opens the file that the user names, if it is a regular one, or one that was given to this
/// process by its number, as a shell's `<(…)` is. It waits for nobody, and opens nothing else.
pub fn open(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.read(true);
    #[expect(clippy::disallowed_methods, reason = "whoever started this process opened it")]
    if is_by_number(path) {
        return how.open(path);
    }
    regular(path, &how)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn regular(path: &Path, how: &OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let held = crate::Held::at(path)?;
    fits(held.data.file_type())?;
    // For those of the kernel's that wait for news.
    held.open(how.clone().custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::disallowed_methods, reason = "the system has no way to hold what it does not open")]
fn regular(path: &Path, how: &OpenOptions) -> io::Result<File> {
    fits(std::fs::metadata(path)?.file_type())?;
    let file = how.open(path)?;
    fits(file.metadata()?.file_type())?;
    Ok(file)
}

fn fits(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Err(io::Error::other(NotRead::Kind(what(kind))))
}

#[cfg(unix)]
pub(crate) fn what(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    match () {
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(not(unix))]
pub(crate) fn what(_: FileType) -> &'static str {
    "no file"
}

/// All of the file that the user names, if it has at most `most` bytes.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    at_most(open(path)?, most)
}

fn at_most(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, NotRead::TooLong(most)));
    }
    Ok(bytes)
}

/// The same of a text; `-` is standard input.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    let refused = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let bytes = if path == Path::new("-") { at_most(io::stdin().lock(), most)? } else { bytes(path, most)? };
    if let Some((_, named)) = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Err(refused(NotRead::Encoding(named)));
    }
    String::from_utf8(bytes).map_err(|_| refused(NotRead::Encoding("text in another encoding than UTF-8")))
}

/// How text begins that is not taken, and what is said of it.
pub const MARKS: [(&[u8], &str); 3] = [
    (b"\xef\xbb\xbf", "text that begins with a byte-order mark"),
    (b"\xff\xfe", "text in UTF-16, which begins with a byte-order mark"),
    (b"\xfe\xff", "text in UTF-16, which begins with a byte-order mark"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: io::Error) -> String {
        error.to_string()
    }

    #[test]
    fn a_file_is_read_within_its_bound_and_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "seven..").unwrap();
        assert_eq!(text(&path, 7).unwrap(), "seven..");
        assert_eq!(told(bytes(&path, 6).unwrap_err()), "it is longer than 6 bytes");
        for (bytes, what) in [
            (&[0xff][..], "in another encoding than UTF-8"),
            (b"\xef\xbb\xbf{}", "that begins with a byte-order mark"),
            (b"\xff\xfe{\0}\0", "in UTF-16"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let told = told(text(&path, 7).unwrap_err());
            assert!(told.starts_with(&format!("it is text {what}")), "{told}");
        }
        std::fs::write(&path, [0xff]).unwrap();
        assert!(told(open(&folder.path().join("none")).unwrap_err()).contains("os error 2"));
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("file", &link).unwrap();
            assert_eq!(bytes(&link, 7).unwrap(), [0xff]);
        }
    }

    /// Whoever planted one beside the results of others made their reader wait for ever.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_named_pipe_and_a_device_are_not_opened_and_a_pipe_given_by_number_is_read() {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert!(told(open(&fifo).unwrap_err()).starts_with("it is a named pipe"));
        assert!(told(open(Path::new("/dev/zero")).unwrap_err()).starts_with("it is a device"));
        let (from, mut to) = io::pipe().unwrap();
        to.write_all(b"here").unwrap();
        drop(to);
        for folder in ["/dev/fd", "/proc/self/fd"] {
            let path = Path::new(folder).join(from.as_raw_fd().to_string());
            assert!(open(&path).is_ok(), "{folder}");
        }
        assert_eq!(text(&Path::new("/dev/fd").join(from.as_raw_fd().to_string()), 9).unwrap(), "here");
    }
}
