// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clang made of the program's source: sections of code, and what their instructions mean by
//! names. It is an ELF file of 64 bits in little-endian order (elf(5)), and comes with this
//! command: whatever is not as expected is a fault of the build.

use super::BpfError;

/// Section types, and the one relocation there is (kernel Documentation/bpf/llvm_reloc.rst).
const SYMBOLS: u32 = 2;
const RELOCATIONS: u32 = 9;
const R_BPF_64_64: u64 = 1;
/// Bytes of an instruction.
const INSTRUCTION: usize = 8;

/// What a map is made of, as the source has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub kind: u32,
    pub key: u32,
    pub value: u32,
    pub entries: u32,
    pub flags: u32,
}

impl Shape {
    pub fn one_of(bytes: u32) -> Self {
        /// `BPF_MAP_TYPE_ARRAY` (kernel include/uapi/linux/bpf.h).
        const ARRAY: u32 = 2;
        Self { kind: ARRAY, key: 4, value: bytes, entries: 1, flags: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    Map(usize),
    /// Constants, and what is counted, from an offset on.
    Constant(u32),
    Count(u32),
}

#[derive(Debug)]
pub struct Program {
    pub section: String,
    code: Vec<u8>,
    /// What instructions at these offsets mean.
    meant: Vec<(usize, Meant)>,
}

impl Program {
    /// Its code, with what `resolve` says of each name: the kind of reference, its number, and an
    /// offset.
    pub fn linked(&self, mut resolve: impl FnMut(&Meant) -> (u8, u32, u32)) -> Result<Vec<u8>, BpfError> {
        let mut code = self.code.clone();
        for (at, meant) in &self.meant {
            let (kind, number, offset) = resolve(meant);
            // It loads 64 bits and is two instructions long: the upper half of the second byte says
            // of what kind, and each half holds a number.
            let two = code.get_mut(*at..at + 2 * INSTRUCTION);
            let two = two.ok_or(BpfError::Object("a reference out of its code"))?;
            two[1] = two[1] & 0x0f | kind << 4;
            two[4..8].copy_from_slice(&number.to_le_bytes());
            two[12..16].copy_from_slice(&offset.to_le_bytes());
        }
        Ok(code)
    }
}

#[derive(Debug)]
pub struct Object {
    pub programs: Vec<Program>,
    pub maps: Vec<(String, Shape)>,
    pub bss: u32,
}

#[derive(Debug, Clone, Copy)]
struct Section<'a> {
    name: &'a str,
    kind: u32,
    /// Of symbols, the section that their names are in; of relocations, the one that they are of.
    names: usize,
    of: usize,
    size: usize,
    bytes: &'a [u8],
}

impl Object {
    pub fn read(file: &[u8]) -> Result<Self, BpfError> {
        read(file).ok_or(BpfError::Object("not the form of an object"))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn quarter(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let bytes = bytes.get(at..)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

fn place(number: u64) -> Option<usize> {
    usize::try_from(number).ok()
}

fn read(file: &[u8]) -> Option<Object> {
    /// Bytes of a section's head, of a symbol, of a relocation.
    const HEAD: usize = 64;
    const SYMBOL: usize = 24;
    const RELOCATION: usize = 16;
    let (heads, count, names) = (place(word(file, 0x28)?)?, quarter(file, 0x3c)?, quarter(file, 0x3e)?);
    let head = |number: usize| file.get(heads + number * HEAD..heads + (number + 1) * HEAD);
    let bytes = |head: &[u8]| {
        let (at, size) = (place(word(head, 24)?)?, place(word(head, 32)?)?);
        // What is all zeroes has no bytes in the file.
        Some((size, file.get(at..at.checked_add(size)?).unwrap_or_default()))
    };
    let (_, names) = bytes(head(names)?)?;
    let section = |number: usize| {
        let head = head(number)?;
        let (size, bytes) = bytes(head)?;
        let [names_in, of] = [half(head, 40)?, half(head, 44)?].map(|number| number as usize);
        let name = text(names, half(head, 0)? as usize)?;
        Some(Section { name, kind: half(head, 4)?, names: names_in, of, size, bytes })
    };
    let sections: Vec<Section> = (0..count).map(section).collect::<Option<_>>()?;
    let symbols = sections.iter().find(|section| section.kind == SYMBOLS)?;
    let (symbols, symbol_names) = (symbols.bytes, sections.get(symbols.names)?.bytes);
    // A symbol: its name, the section it is in, and where.
    let symbol = |number: usize| {
        let symbol = symbols.get(number * SYMBOL..(number + 1) * SYMBOL)?;
        Some((text(symbol_names, half(symbol, 0)? as usize)?, quarter(symbol, 6)?, word(symbol, 8)?))
    };
    let at_section = |name: &str| sections.iter().position(|section| section.name == name);
    let (in_maps, in_bss) = (at_section("maps")?, at_section(".bss")?);
    let in_constants = at_section(".rodata")?;
    let mut maps = Vec::new();
    for number in 0..symbols.len() / SYMBOL {
        let (name, section, at) = symbol(number)?;
        if section == in_maps && !name.is_empty() {
            let (bytes, at) = (sections[in_maps].bytes, place(at)?);
            let word = |index: usize| half(bytes, at + 4 * index);
            let shape =
                Shape { kind: word(0)?, key: word(1)?, value: word(2)?, entries: word(3)?, flags: word(4)? };
            maps.push((at, (name.to_owned(), shape)));
        }
    }
    let meant = |relocation: &[u8], code: &[u8]| {
        let (at, what) = (place(word(relocation, 0)?)?, word(relocation, 8)?);
        if what & 0xffff_ffff != R_BPF_64_64 {
            return None;
        }
        let (_, section, symbol_at) = symbol(place(what >> 32)?)?;
        // The instruction itself holds what is added.
        let offset = u32::try_from(symbol_at).ok()?.wrapping_add(half(code, at + 4)?);
        let meant = match section {
            section if section == in_maps => {
                Meant::Map(maps.iter().position(|(map, _)| *map == offset as usize)?)
            }
            section if section == in_constants => Meant::Constant(offset),
            section if section == in_bss => Meant::Count(offset),
            _ => return None,
        };
        Some((at, meant))
    };
    let mut programs = Vec::new();
    for (number, section) in sections.iter().enumerate().filter(|(_, section)| section.name.contains('/')) {
        if section.name.starts_with(".rel") {
            continue;
        }
        let relocations = sections.iter().filter(|one| one.kind == RELOCATIONS && one.of == number);
        let relocations = relocations.flat_map(|one| one.bytes.chunks_exact(RELOCATION));
        programs.push(Program {
            section: section.name.to_owned(),
            code: section.bytes.to_vec(),
            meant: relocations.map(|one| meant(one, section.bytes)).collect::<Option<_>>()?,
        });
    }
    let maps = maps.into_iter().map(|(_, map)| map).collect();
    Some(Object { programs, maps, bss: u32::try_from(sections[in_bss].size).ok()? })
}

#[cfg(test)]
mod tests {
    use super::super::OBJECT;
    use super::*;

    #[test]
    fn the_object_has_the_maps_and_programs_of_its_source() {
        let object = Object::read(OBJECT).unwrap();
        let mut maps: Vec<&str> = object.maps.iter().map(|(name, _)| name.as_str()).collect();
        maps.sort_unstable();
        assert_eq!(maps, ["numbered", "records", "stacks", "threads", "timers", "wanted"]);
        assert_eq!(object.programs.len(), 10);
        assert_eq!(object.bss, 24);
        for program in &object.programs {
            assert!(program.code.len() % INSTRUCTION == 0 && !program.code.is_empty(), "{program:?}");
        }
    }

    #[test]
    fn an_object_that_is_cut_off_or_garbled_anywhere_is_refused_or_read_and_never_followed_out_of_its_bytes()
    {
        for end in 0..OBJECT.len() {
            let _ = Object::read(&OBJECT[..end]);
        }
        let mut garbled = OBJECT.to_vec();
        for at in 0..garbled.len().min(0x2000) {
            garbled[at] ^= 0x55;
            if let Ok(object) = Object::read(&garbled) {
                for program in &object.programs {
                    let _ = program.linked(|_| (1, 2, 3));
                }
            }
            garbled[at] ^= 0x55;
        }
    }
}
