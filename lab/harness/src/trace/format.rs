// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout of an event as the kernel publishes it in `events/SYSTEM/NAME/format`.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// The number by which the buffer names the event.
    pub id: u16,
    fields: Vec<(String, Place)>,
}

/// Where one field lies, for whoever reads it of a million records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    at: Range<usize>,
    signed: bool,
}

impl Place {
    /// The number there; none if the record is too short for it, or it is wider than 64 bits.
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.at.clone())?;
        let mut wide = [if self.signed && bytes.last()? & 0x80 != 0 { 0xff } else { 0 }; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(i64::from_le_bytes(wide))
    }

    /// The word of 64 bits at `index`, of a field that is a row of such.
    pub fn word(&self, record: &[u8], index: usize) -> Option<u64> {
        let bytes = record.get(self.at.clone())?.chunks_exact(8).nth(index)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The text there up to its first zero.
    ///
    /// Task names are chosen by their programs: whatever is no printable character is replaced.
    pub fn text(&self, record: &[u8]) -> Option<String> {
        let bytes = record.get(self.at.clone())?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..end]);
        Some(text.replace(char::is_control, "?"))
    }
}

impl Format {
    /// Reads the text of a `format` file; none if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(|line| field(line.trim())).collect();
        Some(Self { id, fields })
    }

    pub fn place(&self, name: &str) -> Option<&Place> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, place)| place)
    }
}

/// One line of a format: `field:char comm[16]; offset:8; size:16;
/// signed:0;` with tabs between the parts.
fn field(line: &str) -> Option<(String, Place)> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse::<usize>().ok(),
            Some(("size", number)) => size = number.parse::<usize>().ok(),
            Some(("signed", number)) => signed = number == "1",
            _ => {}
        }
    }
    let name = declaration.split('[').next()?.rsplit([' ', '*']).next()?.to_owned();
    let start = offset?;
    Some((name, Place { at: start..start.checked_add(size?)?, signed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = include_str!("fixture/sched/sched_switch");

    #[test]
    fn a_format_file_says_where_each_field_lies() {
        let format = Format::parse(SWITCH).unwrap();
        let mut record = vec![0_u8; 64];
        record[4..8].copy_from_slice(&7_i32.to_le_bytes());
        record[8..13].copy_from_slice(b"a\x1b[2J");
        record[24..28].copy_from_slice(&(-1_i32).to_le_bytes());
        let number = |name| format.place(name).and_then(|place| place.number(&record));
        assert_eq!(number("common_pid"), Some(7));
        assert_eq!(number("prev_pid"), Some(-1));
        assert_eq!(format.place("prev_comm").unwrap().text(&record).unwrap(), "a?[2J");
        assert_eq!(number("no_such_field"), None);
        assert_eq!(format.place("prev_pid").unwrap().number(&record[..20]), None);
    }

    #[test]
    fn what_is_no_format_is_none() {
        for text in ["", "ID:", "ID: 70000", "name: x\n"] {
            assert_eq!(Format::parse(text), None, "{text}");
        }
        let odd = "ID: 3\nfield:int x;\toffset:99999999999999999999;\tsize:4;\nfield:int y;\n";
        assert_eq!(Format::parse(odd).unwrap().fields, []);
    }
}
