// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages by Debian's own client, with a configuration of our own: neither the host's
//! package sources, its installed packages nor its client's hooks matter or change, and no
//! privilege is needed. The client verifies signatures and sums.
//!
//! Who calls this holds the cache's lock: the client's lists and
//! configuration are one process's at a time.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::architecture::Architecture;
use crate::cache::{folder_made, put};
use crate::fetch_error::FetchError;
use crate::process::answer;

/// Where Debian is, unless [`MIRROR`] names another place; its security archive lies beside it.
const DEBIAN: &str = "http://deb.debian.org/debian";
/// The variable that names another place.
const MIRROR: &str = "DOORBELL_DEBIAN_MIRROR";
/// The time for any one command: the largest is a download of some 30 MB.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// Seconds that a suite's lists hold which do not say how long: a year. Whoever stands between
/// could else go on offering what has had known faults for years.
const LISTS_HOLD: u32 = 31_536_000;
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A client with its own lists.
#[derive(Debug, Clone)]
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

    /// Writes the configuration below `folder` and fetches the lists of `suites` for an
    /// architecture, some 10 MB.
    pub(crate) fn update(
        folder: &Path,
        architecture: &Architecture,
        suites: &[&str],
    ) -> Result<Self, FetchError> {
        if !Path::new(KEYRING).exists() {
            return Err(FetchError::Lacking("the package debian-archive-keyring"));
        }
        for name in ["lists/partial", "archives/partial", "state"] {
            folder_made(&folder.join(name))?;
        }
        let mirror = std::env::var(MIRROR).unwrap_or_else(|_| DEBIAN.to_owned());
        let archive = |suite: &str| if suite.ends_with("-security") { "-security" } else { "" };
        let line =
            |suite: &&str| format!("deb [signed-by={KEYRING}] {mirror}{} {suite} main\n", archive(suite));
        let sources: String = suites.iter().map(line).collect();
        put(&folder.join("sources.list"), &sources)?;
        put(&folder.join("status"), "")?;
        put(&folder.join("apt.conf"), &configuration(folder, architecture.debian, &transport()?))?;
        let apt = Self::open(folder);
        apt.run("apt-get", ["-qq", "update"], folder)?;
        Ok(apt)
    }

    /// The newest version of a package, or the one that is asked for by `NAME=VERSION`.
    pub(crate) fn offer(&self, package: &str) -> Result<Offer, FetchError> {
        self.offer_of(package, "")
    }

    /// The newest version that begins with `series`.
    pub(crate) fn offer_of(&self, package: &str, series: &str) -> Result<Offer, FetchError> {
        let text = self.run("apt-cache", ["show", package], &std::env::temp_dir())?;
        // The client shows the newest first.
        let offers: Vec<Offer> = text.split("\n\n").filter_map(Offer::parse).collect();
        let versions = offers.iter().map(|offer| offer.version.as_str()).collect::<Vec<_>>().join(", ");
        offers.into_iter().find(|offer| offer.version.starts_with(series)).ok_or_else(|| {
            FetchError::NoSuchPackage {
                package: package.to_owned(),
                series: series.to_owned(),
                offered: versions,
            }
        })
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

/// The client's configuration: ours alone. The host's would bring its
/// sources, its default release and its hooks, which delete the host's
/// archives or talk to its other programs after an update (apt.conf(5)).
fn configuration(folder: &Path, architecture: &str, transport: &str) -> String {
    let here = folder.display();
    format!(
        "Dir::Etc::SourceList \"{here}/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
         Dir::Etc::Main \"/dev/null\";\nDir::Etc::Parts \"/dev/null\";\n\
         Dir::State \"{here}/state\";\nDir::State::Lists \"{here}/lists\";\n\
         Dir::State::Status \"{here}/status\";\nDir::Cache \"{here}\";\nAPT::Architecture \"{architecture}\";\n\
         APT::Architectures {{ \"{architecture}\"; }};\nAPT::Sandbox::User \"\";\nAPT::Update::Error-Mode \"any\";\n\
         Acquire::Languages \"none\";\nAcquire::Retries \"2\";\nAcquire::Max-ValidTime \"{LISTS_HOLD}\";\n{transport}"
    )
}

/// How the host's client reaches the network: its proxies are the one
/// part of its configuration that we need.
fn transport() -> Result<String, FetchError> {
    let host = run("apt-config", ["dump"], &std::env::temp_dir(), &[])?;
    let proxies = host.lines().filter(|line| {
        let name = line.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        name.starts_with("acquire::") && name.contains("proxy")
    });
    Ok(proxies.map(|line| format!("{line}\n")).collect())
}

/// Runs a program and returns what it prints; what it says when it fails becomes the error.
pub(crate) fn run(
    program: &'static str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    folder: &Path,
    environment: &[(&str, &OsStr)],
) -> Result<String, FetchError> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(environment.iter().copied());
    answer(&mut command, LIMIT).map_err(|failure| match failure.is_absence() {
        true => FetchError::Lacking(program),
        false => FetchError::Program { program, failure },
    })
}

impl Offer {
    /// A stanza of `apt-cache show`.
    fn parse(stanza: &str) -> Option<Self> {
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

    const STANZA: &str = "Package: linux-image-cloud-amd64\nSource: linux-signed-amd64 (6.1.192+2)\nVersion: 6.1.192-2\n\
        Depends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)\nDescription-en: Linux\n lines of text: with colons\n\
        Size: 1480\nSHA256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

    #[test]
    fn the_clients_configuration_lets_nothing_of_the_hosts_in_and_calls_no_network_an_error() {
        let text =
            configuration(Path::new("/cache"), "arm64", "Acquire::http::Proxy \"http://proxy:3128\";\n");
        for line in [
            "Dir::Etc::Main \"/dev/null\";",
            "Dir::Etc::Parts \"/dev/null\";",
            "Dir::Etc::SourceParts \"/dev/null\";",
            "APT::Update::Error-Mode \"any\";",
            "APT::Architecture \"arm64\";",
            "Acquire::http::Proxy \"http://proxy:3128\";",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
        }
    }

    #[test]
    fn a_package_is_read_from_its_stanza() {
        let offer = Offer::parse(STANZA).unwrap();
        assert_eq!(
            (offer.package.as_str(), offer.version.as_str()),
            ("linux-image-cloud-amd64", "6.1.192-2")
        );
        assert_eq!(offer.bytes, 1480);
        assert_eq!(offer.depends, "linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)");
    }

    #[test]
    fn nothing_is_made_of_a_stanza_without_a_sum() {
        assert_eq!(Offer::parse(&STANZA.replace("SHA256: 0", "SHA256: ")), None);
        assert_eq!(Offer::parse(""), None);
    }
}
