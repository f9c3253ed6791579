// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths in JSON, which has no bytes: those that are not UTF-8 are lists of their bytes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(PathBuf),
    Bytes(Vec<u8>),
}

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => path.as_os_str().as_bytes().serialize(serializer),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(path) => path,
        Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_path_comes_back_whatever_its_bytes_are() {
        #[derive(Serialize, Deserialize)]
        struct Holder(#[serde(with = "super")] PathBuf);
        for bytes in [&b"/tmp/\xff\xfe"[..], b"/tmp/plain", b""] {
            let path = PathBuf::from(OsStr::from_bytes(bytes));
            let text = serde_json::to_string(&Holder(path.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Holder>(&text).unwrap().0, path, "{text}");
        }
    }
}
