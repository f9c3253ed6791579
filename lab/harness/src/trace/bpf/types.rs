// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of the running kernel, as it publishes them (kernel Documentation/bpf/btf.rst).

#![expect(clippy::disallowed_methods, reason = "a file of sysfs, which is the kernel's")]

use std::collections::HashMap;

use super::BpfError;

/// Where they are.
pub const PATH: &str = "/sys/kernel/btf/vmlinux";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Structure = 4,
    Typedef = 8,
    Function = 12,
    Variable = 14,
    Section = 15,
}

const POINTER: u32 = 2;
const UNION: u32 = 5;
const PROTOTYPE: u32 = 13;
const KINDS: [Kind; 5] = [Kind::Structure, Kind::Typedef, Kind::Function, Kind::Variable, Kind::Section];
/// Kinds that only add to what they are of: typedef, volatile, const, restrict, and a tag.
const SHELLS: [u32; 5] = [8, 9, 10, 11, 18];

#[derive(Debug)]
pub struct Types {
    bytes: Vec<u8>,
    /// Where the description of each type begins; that of the first is the second's.
    types: Vec<usize>,
    /// The numbers of those that are sought.
    found: HashMap<(Kind, &'static str), u32>,
    names: usize,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    kind: u32,
    /// How many members or parameters.
    count: usize,
    /// Whether members have widths in bits beside their offsets.
    bits: bool,
    /// The type that it is of; of a structure its size.
    of: u32,
    /// Where members begin.
    rest: usize,
}

impl Types {
    /// Those of the running kernel, of which `sought` will be found: one pass over a hundred
    /// thousand.
    pub fn of_this_kernel(sought: &[&'static str]) -> Result<Self, BpfError> {
        Self::read(std::fs::read(PATH).map_err(BpfError::NoTypes)?, sought).ok_or(BpfError::Types)
    }

    fn read(bytes: Vec<u8>, sought: &[&'static str]) -> Option<Self> {
        /// Magic number and version, in little-endian order.
        const BEGIN: [u8; 3] = [0x9f, 0xeb, 1];
        if !bytes.starts_with(&BEGIN) {
            return None;
        }
        let sought: HashMap<&[u8], &'static str> =
            sought.iter().map(|name| (name.as_bytes(), *name)).collect();
        let mut all = Self { bytes, types: vec![0], found: HashMap::new(), names: 0 };
        let head = all.word(4)? as usize;
        let (first, length) = (head + all.word(8)? as usize, all.word(12)? as usize);
        all.names = head + all.word(16)? as usize;
        let mut at = first;
        while at < first + length {
            all.types.push(at);
            let Head { kind, count, .. } = all.head_at(at)?;
            if let Some(kind) = KINDS.into_iter().find(|known| *known as u32 == kind)
                && let Some(name) = sought.get(all.name(at)?)
            {
                let number = u32::try_from(all.types.len() - 1).ok()?;
                all.found.entry((kind, *name)).or_insert(number);
            }
            at += 12
                + match kind {
                    1 | 14 | 17 => 4,
                    3 => 12,
                    4 | 5 | 15 | 19 => 12 * count,
                    6 | 13 => 8 * count,
                    // Pointer, forward declaration, function, float, shells.
                    2 | 7..=12 | 16 | 18 => 0,
                    _ => return None,
                };
        }
        Some(all)
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?))
    }

    fn head_at(&self, at: usize) -> Option<Head> {
        let info = self.word(at + 4)?;
        Some(Head {
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            bits: info >> 31 == 1,
            of: self.word(at + 8)?,
            rest: at + 12,
        })
    }

    fn head(&self, number: u32) -> Option<Head> {
        // The first is void, and has none.
        self.head_at(self.types.get(number as usize).copied().filter(|at| *at > 0)?)
    }

    fn name(&self, at: usize) -> Option<&[u8]> {
        let text = self.bytes.get(self.names + self.word(at)? as usize..)?;
        text.get(..text.iter().position(|byte| *byte == 0)?)
    }

    /// The number of a type, function or variable that was sought.
    pub fn find(&self, kind: Kind, name: &'static str) -> Option<u32> {
        self.found.get(&(kind, name)).copied()
    }

    /// What is left of a type without its shells.
    fn bare(&self, mut number: u32) -> Option<(u32, Head)> {
        loop {
            let head = self.head(number)?;
            if !SHELLS.contains(&head.kind) {
                return Some((number, head));
            }
            number = head.of;
        }
    }

    /// Where in a structure a member lies, in bytes; a path leads into its members by points.
    pub fn member(&self, structure: &'static str, path: &str) -> Option<u64> {
        let mut number = self.find(Kind::Structure, structure)?;
        let mut all = 0;
        for name in path.split('.') {
            let (offset, of) = self.member_of(number, name)?;
            (all, number) = (all + offset, of);
        }
        Some(all)
    }

    /// Where a member lies, and of what type it is. Those of members without a name are the
    /// structure's own.
    fn member_of(&self, number: u32, name: &str) -> Option<(u64, u32)> {
        let (_, head) = self.bare(number)?;
        if head.kind != Kind::Structure as u32 && head.kind != UNION {
            return None;
        }
        for member in (0..head.count).map(|index| head.rest + 12 * index) {
            let (of, offset) = (self.word(member + 4)?, self.word(member + 8)?);
            let offset = u64::from(if head.bits { offset & 0x00ff_ffff } else { offset }) / 8;
            if self.name(member)? == name.as_bytes() {
                return Some((offset, of));
            }
            if self.word(member)? == 0
                && let Some((further, of)) = self.member_of(of, name)
            {
                return Some((offset + further, of));
            }
        }
        None
    }

    /// Where among the variables of each CPU one lies, in bytes.
    pub fn of_cpu(&self, variable: &'static str) -> Option<u64> {
        let number = self.find(Kind::Variable, variable)?;
        let section = self.head(self.find(Kind::Section, ".data..percpu")?)?;
        let mut variables = (0..section.count).map(|index| section.rest + 12 * index);
        let at = variables.find(|at| self.word(*at) == Some(number))?;
        self.word(at + 4).map(u64::from)
    }

    /// How many words an event hands to a program, after the first, which is the tracer's.
    pub fn words(&self, event: &'static str) -> Option<usize> {
        let (_, pointer) = self.bare(self.find(Kind::Typedef, event)?)?;
        if pointer.kind != POINTER {
            return None;
        }
        let (_, prototype) = self.bare(pointer.of)?;
        (prototype.kind == PROTOTYPE).then(|| prototype.count.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUGHT: [&str; 2] = ["ab", "t"];

    /// A structure `ab` of an int `a` and, without a name, one of an int `b`; all after a head of
    /// 24 bytes.
    fn small() -> Vec<u8> {
        let types: [u32; 22] = [
            // 1: int
            &[1, 1 << 24, 4, 32][..],
            // 2: struct { int b; }
            &[0, 4 << 24 | 1, 4, 5, 1, 0],
            // 3: struct ab { int a; struct { int b; }; }
            &[7, 4 << 24 | 2, 8, 10, 1, 0, 0, 2, 32],
            // 4: typedef struct ab t
            &[12, 8 << 24, 3],
        ]
        .concat()
        .try_into()
        .unwrap();
        let names = b"\0int\0b\0ab\0a\0t\0";
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types.len() as u32 * 4, types.len() as u32 * 4, names.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        types.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(names);
        bytes
    }

    #[test]
    fn members_are_found_also_in_those_without_a_name() {
        let types = Types::read(small(), &SOUGHT).unwrap();
        assert_eq!(types.member("ab", "a"), Some(0));
        assert_eq!(types.member("ab", "b"), Some(4));
        assert_eq!(types.member("ab", "c"), None);
        assert_eq!(types.find(Kind::Typedef, "t"), Some(4));
        assert_eq!(types.find(Kind::Structure, "t"), None);
    }

    #[test]
    fn types_that_are_cut_off_or_garbled_are_refused_or_read_and_never_followed_out_of_their_bytes() {
        let whole = small();
        for end in 0..whole.len() {
            if let Some(types) = Types::read(whole[..end].to_vec(), &SOUGHT) {
                types.member("ab", "b");
            }
        }
        for at in 0..whole.len() {
            let mut garbled = whole.clone();
            garbled[at] ^= 0x41;
            if let Some(types) = Types::read(garbled, &SOUGHT) {
                types.member("ab", "b.a");
                types.words("t");
            }
        }
    }
}
