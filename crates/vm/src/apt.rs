// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages by Debian's own client, with a configuration of our own: neither the host's package sources nor its
//! installed packages matter or change, and no privilege is needed. The client verifies signatures and sums.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::packages::FetchError;

/// The release whose kernel the guests run, and where its packages come from.
const SOURCES: [(&str, &str); 2] = [
    ("http://deb.debian.org/debian", "bookworm"),
    ("http://deb.debian.org/debian-security", "bookworm-security"),
];
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A client with its own lists.
#[derive(Debug)]
pub(crate) struct Apt {
    configuration: PathBuf,
}

/// A package as the lists describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) depends: String,
}

impl Apt {
    /// The client whose lists [`Apt::update`] fetched into `folder`.
    pub(crate) fn open(folder: &Path) -> Self {
        Self { configuration: folder.join("apt.conf") }
    }

    /// Writes the configuration below `folder` and fetches the lists, some 10 MB.
    pub(crate) fn update(folder: &Path) -> Result<Self, FetchError> {
        if !Path::new(KEYRING).exists() {
            return Err(FetchError::Lacking("the package debian-archive-keyring"));
        }
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|cause| FetchError::File { path, cause })
        };
        for name in ["lists/partial", "archives/partial", "state"] {
            let path = folder.join(name);
            fs::create_dir_all(&path).map_err(|cause| FetchError::File { path, cause })?;
        }
        let line = |(mirror, suite)| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        write("sources.list", &SOURCES.map(line).concat())?;
        write("status", "")?;
        let here = folder.display();
        write(
            "apt.conf",
            &format!(
                "Dir::Etc::SourceList \"{here}/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
                 Dir::State \"{here}/state\";\nDir::State::Lists \"{here}/lists\";\n\
                 Dir::State::Status \"{here}/status\";\nDir::Cache \"{here}\";\nAPT::Architecture \"amd64\";\n\
                 APT::Architectures {{ \"amd64\"; }};\nAPT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n"
            ),
        )?;
        let apt = Self::open(folder);
        apt.run("apt-get", ["-qq", "update"], folder)?;
        Ok(apt)
    }

    /// The newest version of a package.
    pub(crate) fn offer(&self, package: &str) -> Result<Offer, FetchError> {
        let folder = std::env::temp_dir();
        let text = self.run("apt-cache", ["show", "--no-all-versions", package], &folder)?;
        Offer::parse(&text).ok_or_else(|| FetchError::NoSuchPackage(package.to_owned()))
    }

    /// Puts the package's file into `folder`.
    pub(crate) fn download(&self, package: &str, version: &str, folder: &Path) -> Result<(), FetchError> {
        let exact = format!("{package}={version}");
        self.run("apt-get", ["-qq", "download", &exact], folder).map(drop)
    }

    fn run<const N: usize>(
        &self,
        program: &'static str,
        arguments: [&str; N],
        folder: &Path,
    ) -> Result<String, FetchError> {
        run(program, arguments, folder, &[("APT_CONFIG", self.configuration.as_os_str())])
    }
}

/// Runs a program and returns what it prints; what it says when it fails becomes the error.
pub(crate) fn run(
    program: &'static str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    folder: &Path,
    environment: &[(&str, &OsStr)],
) -> Result<String, FetchError> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => FetchError::Lacking(program),
            _ => FetchError::Start { program, cause },
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(FetchError::Failed { program, status: output.status, complaint })
}

impl Offer {
    /// The first stanza of `apt-cache show`.
    fn parse(text: &str) -> Option<Self> {
        let stanza = text.split("\n\n").next()?;
        let field = |name: &str| {
            let line = stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(|value| value.trim().to_owned())
        };
        Some(Self {
            package: field("Package")?,
            version: field("Version")?,
            bytes: field("Size")?.parse().ok()?,
            sha256: field("SHA256").filter(|sum| sum.len() == 64)?,
            depends: field("Depends").unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "Package: linux-image-cloud-amd64\nSource: linux-signed-amd64 (6.1.192+2)\nVersion: 6.1.192-2\n\
        Depends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)\nDescription-en: Linux\n lines of text: with colons\n\
        Size: 1480\nSHA256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n\nPackage: other\n";

    #[test]
    fn a_package_is_read_from_the_first_stanza() {
        let offer = Offer::parse(SHOWN).unwrap();
        assert_eq!(
            (offer.package.as_str(), offer.version.as_str()),
            ("linux-image-cloud-amd64", "6.1.192-2")
        );
        assert_eq!(offer.bytes, 1480);
        assert_eq!(offer.depends, "linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)");
    }

    #[test]
    fn nothing_is_made_of_a_stanza_without_a_sum() {
        assert_eq!(Offer::parse(&SHOWN.replace("SHA256: 0", "SHA256: ")), None);
        assert_eq!(Offer::parse(""), None);
    }
}
