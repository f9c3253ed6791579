// SPDX-License-Identifier: MIT OR Apache-2.0
//! The word that whoever asks `top --serve` must know.

use std::fmt;
use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, bail};
use rustix::rand::{GetRandomFlags, getrandom};

/// The shortest that is taken from a file: 22 of the letters allowed have 128 bits and more.
const SHORTEST: usize = 22;
const LONGEST: usize = 256;

/// Random, and shown in the address alone.
#[derive(Clone)]
pub(super) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

#[cfg(test)]
impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Token {
    /// A new one of 128 random bits.
    pub(super) fn random() -> std::io::Result<Self> {
        let mut bytes = [0_u8; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The one in a file that nobody else may read; a new one is
    /// written there if there is no such file.
    pub(super) fn of_file(path: &Path) -> anyhow::Result<Self> {
        let said = || path.display().to_string();
        let path = &doorbell_files::resolved(path).with_context(said)?;
        match doorbell_files::create_new(path, 0o600) {
            Ok(mut file) => {
                let token = Self::random()?;
                file.write_all(format!("{}\n", token.0).as_bytes()).with_context(said)?;
                return Ok(token);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(said),
        }
        let file = doorbell_files::open(path).with_context(said)?;
        let data = file.metadata().with_context(said)?;
        let (own, owner) = (rustix::process::geteuid().as_raw(), data.uid());
        if owner != own {
            bail!(
                "{}: it belongs to user {owner}, who knows it, and not to you (user {own}); name another file",
                said()
            );
        }
        let mode = data.mode();
        if mode & 0o077 != 0 {
            bail!(
                "{}: others may read or write it (mode {:o}), so it is no secret; chmod 600 it",
                said(),
                mode & 0o777
            );
        }
        let mut text = String::new();
        file.take(LONGEST as u64 + 2).read_to_string(&mut text).with_context(said)?;
        let token = text.trim();
        let letters = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if !letters || !(SHORTEST..=LONGEST).contains(&token.len()) {
            bail!(
                "{}: a token is {SHORTEST} to {LONGEST} letters, digits, '-' and '_'; remove the file, and a new one is made",
                said()
            );
        }
        Ok(Self(token.to_owned()))
    }

    /// Whether it is `given`. The time it takes says nothing of how much of it is right.
    pub(super) fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let differ = own.iter().zip(given).fold(0, |differ, (own, given)| black_box(differ | (own ^ given)));
        own.len() == given.len() && black_box(differ) == 0
    }

    /// The word itself, for the address.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_itself_and_no_part_of_it_is() {
        let token = Token::random().unwrap();
        let text = token.text().to_owned();
        assert_eq!(text.len(), 32);
        assert!(token.is(&text));
        for wrong in [
            "",
            &text[1..],
            &text[..31],
            &format!("{text}0"),
            &text.to_uppercase().replace(char::is_numeric, "x"),
        ] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert_ne!(Token::random().unwrap().text(), text);
        assert!(!format!("{token:?}").contains(&text));
    }

    #[test]
    fn a_file_keeps_it_and_one_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::of_file(&path).unwrap();
        assert_eq!(Token::of_file(&path).unwrap().text(), made.text());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Token::of_file(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if std::os::unix::fs::chown(&path, Some(65534), None).is_ok() {
            let told = Token::of_file(&path).unwrap_err().to_string();
            assert!(told.contains("belongs to user 65534, who knows it"), "{told}");
            std::os::unix::fs::chown(&path, Some(rustix::process::geteuid().as_raw()), None).unwrap();
        } else {
            doorbell_skipped::skip("only the superuser can give a file away");
        }
        for weak in ["", "short", &"x".repeat(257), "with/a/slash/and/32/letters/in/it"] {
            std::fs::write(&path, weak).unwrap();
            assert!(Token::of_file(&path).is_err(), "{weak}");
        }
    }
}
