// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of code: its tables for exceptions, and its functions' names.

use std::fmt::{self, Write};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use framehop::ExplicitModuleSectionInfo;
use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

/// Bytes of a file that is read at the most: a browser's program has half as many.
const MOST: u64 = 1 << 29;
/// Bytes of a name that are shown at the most.
const LONGEST: usize = 120;

type Tables = ExplicitModuleSectionInfo<Arc<[u8]>>;
/// Where a part is in its file, and where it is meant to be in memory.
type Segment = (Range<u64>, u64);

/// What is known of a file.
#[derive(Debug, Default)]
pub(super) struct Module {
    name: String,
    /// Its code.
    segments: Vec<Segment>,
    tables: Tables,
    /// For the names of its functions, which are read when the first is asked for: those of a large
    /// program take seconds.
    file: Option<File>,
    functions: OnceLock<Vec<Function>>,
}

#[derive(Debug)]
struct Function {
    at: Range<u64>,
    /// As the file has it.
    name: Box<str>,
}

impl Module {
    /// What `file`, called `name`, has; nothing where it is no program, or too large.
    pub(super) fn read(name: &str, file: File) -> Self {
        let nothing = Self { name: name.to_owned(), ..Self::default() };
        if !file.metadata().is_ok_and(|file| file.len() <= MOST) {
            return nothing;
        }
        let cache = ReadCache::new(file);
        let read = code(&cache);
        let file = Some(cache.into_inner());
        read.map_or(nothing, |(segments, tables)| Self { segments, tables, file, ..Self::of(name) })
    }

    fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// How far its addresses in memory lie behind those that are meant, if what is at `offset` in
    /// the file is at `address`.
    pub(super) fn moved(&self, address: u64, offset: u64) -> Option<u64> {
        let (range, meant) = self.segments.iter().find(|(range, _)| {
            // A part is mapped from the page on in which it begins.
            (range.start & !0xfff..range.end).contains(&offset)
        })?;
        Some(address.wrapping_sub(meant.wrapping_add(offset.wrapping_sub(range.start))))
    }

    /// For the unwinder: as it is mapped to `range`, so far behind what is meant.
    pub(super) fn mapped(&self, range: Range<u64>, moved: u64) -> framehop::Module<Arc<[u8]>> {
        framehop::Module::new(self.name.clone(), range, moved, self.tables.clone())
    }

    /// The function at an address that is meant.
    pub(super) fn function(&self, meant: u64) -> String {
        let functions = self.functions.get_or_init(|| {
            let mut bytes = Vec::new();
            if let Some(file) = &self.file {
                // Of one that is cut off the parser says what is missing.
                bytes.resize(file.metadata().map_or(0, |file| file.len().min(MOST)) as usize, 0);
                let _ = file.read_exact_at(&mut bytes, 0);
            }
            functions(&bytes)
        });
        let after = functions.partition_point(|function| function.at.start <= meant);
        let named = functions[..after].last().filter(|function| function.at.contains(&meant));
        let name = named.map(|function| shown(&function.name));
        name.unwrap_or_else(|| shown(&format!("{}+0x{meant:x}", self.name)))
    }
}

/// Where the code of a program is, and its tables.
fn code<'data>(data: impl ReadRef<'data>) -> Option<(Vec<Segment>, Tables)> {
    let head = FileHeader64::<Endianness>::parse(data).ok()?;
    let order = head.endian().ok()?;
    let sections = head.sections(order, data).ok()?;
    let section = |called: &[u8]| sections.section_by_name(order, called).map(|(_, section)| section);
    let range = |called: &[u8]| {
        let section = section(called)?;
        let begins = section.sh_addr(order);
        Some(begins..begins.checked_add(section.sh_size(order))?)
    };
    let data_of = |called: &[u8]| section(called)?.data(order, data).ok().map(Arc::from);
    let tables = ExplicitModuleSectionInfo {
        text_svma: range(b".text"),
        got_svma: range(b".got"),
        eh_frame_svma: range(b".eh_frame"),
        eh_frame: data_of(b".eh_frame"),
        eh_frame_hdr_svma: range(b".eh_frame_hdr"),
        eh_frame_hdr: data_of(b".eh_frame_hdr"),
        ..ExplicitModuleSectionInfo::default()
    };
    let parts = head.program_headers(order, data).ok()?.iter();
    // Others may begin in the same page of the file.
    let parts = parts.filter(|part| part.p_type(order) == PT_LOAD && part.p_flags(order).contains(PF_X));
    let segment = |part: &<FileHeader64<Endianness> as FileHeader>::ProgramHeader| {
        let (at, size) = part.file_range(order);
        Some((at..at.checked_add(size)?, part.p_vaddr(order)))
    };
    Some((parts.filter_map(segment).collect(), tables))
}

/// The functions of a program, in the order of their addresses.
fn functions(bytes: &[u8]) -> Vec<Function> {
    let Ok(read) = object::File::parse(bytes) else { return Vec::new() };
    let function = |symbol: object::Symbol<'_, '_, _>| {
        let at = symbol.address()..symbol.address().checked_add(symbol.size())?;
        let named = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        let name = symbol.name().ok().filter(|name| named && !name.is_empty() && !at.is_empty())?;
        Some(Function { at, name: name.into() })
    };
    let symbols = read.symbols().chain(read.dynamic_symbols());
    let mut functions: Vec<Function> = symbols.filter_map(function).collect();
    functions.sort_by_key(|function| function.at.start);
    functions
}

/// Text that ends at its limit: a name of a hundred letters can mean one of as many as there are
/// atoms.
#[derive(Debug, Default)]
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST - self.0.len();
        let most = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        self.0.push_str(&text[..most.unwrap_or(0)]);
        if text.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

/// A function's name as people know it. It is its program's choice: nothing that a terminal obeys.
fn shown(name: &str) -> String {
    let mut plain = Limited::default();
    // What meets the limit fails, and what is there is shown.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let _ = write!(plain, "{rust:#}");
    } else if let Ok(cpp) = cpp_demangle::Symbol::new(name) {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        let _ = cpp.structured_demangle(&mut plain, &options);
    }
    if plain.0.is_empty() {
        let _ = plain.write_str(name);
    }
    plain.0.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_their_languages_have_them() {
        assert_eq!(shown("_ZN4core3ptr4read17h0123456789abcdefE"), "core::ptr::read");
        assert_eq!(shown("_ZN3foo3barEi"), "foo::bar");
        assert_eq!(shown("pthread_cond_wait\x1b"), "pthread_cond_wait?");
        assert_eq!(shown(&"x".repeat(1000)).len(), LONGEST);
        assert!(shown(&"ö".repeat(1000)).len() >= LONGEST - 1);
    }

    #[test]
    fn a_file_that_is_no_program_has_no_functions() {
        let module = Module::of("text");
        assert!(code(&b"no program"[..]).is_none() && functions(b"no program").is_empty());
        assert_eq!(module.function(0x10), "text+0x10");
        assert_eq!(module.moved(0x1000, 0), None);
    }

    #[test]
    fn a_program_that_is_garbled_anywhere_is_read_or_not_and_its_tables_lead_nowhere_else() {
        use framehop::{CacheNative, Unwinder, UnwinderNative};
        let mut bytes = std::fs::read("/bin/true").unwrap();
        let mut chance = 1_u64;
        for turn in 0..4000 {
            // Each byte of the head in turn, then any.
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = if turn < 1000 { turn } else { (chance >> 33) as usize } % bytes.len();
            let was = std::mem::replace(&mut bytes[at], (chance >> 24) as u8);
            functions(&bytes);
            let Some((segments, tables)) = code(&bytes[..]) else {
                bytes[at] = was;
                continue;
            };
            let module = Module { segments, tables, ..Module::default() };
            let moved = module.moved(0x10000, 0x2000).unwrap_or(0);
            let mut unwinder: UnwinderNative<_, framehop::MayAllocateDuringUnwind> = UnwinderNative::new();
            unwinder.add_module(module.mapped(0x10000..0x20000, moved));
            let mut word =
                |address: u64| if address < 1000 { Ok(0x10000 + chance % 0x8000) } else { Err(()) };
            #[cfg(target_arch = "x86_64")]
            let start = framehop::x86_64::UnwindRegsX86_64::new(0x12345, 8, 16);
            #[cfg(target_arch = "aarch64")]
            let start = framehop::aarch64::UnwindRegsAarch64::new(0x12345, 8, 16);
            let mut cache = CacheNative::<framehop::MayAllocateDuringUnwind>::new();
            let mut frames = unwinder.iter_frames(0x12345, start, &mut cache, &mut word);
            for _ in 0..100 {
                let _ = frames.next();
            }
            bytes[at] = was;
        }
    }

    #[test]
    fn a_part_is_mapped_from_its_first_page_on() {
        let module = Module { segments: vec![(0x1e40..0x3000, 0x41e40)], ..Module::default() };
        assert_eq!(module.moved(0x7000_1000, 0x1000), Some(0x7000_1000 - 0x41000));
        assert_eq!(module.moved(0x7000_1000, 0x3000), None);
    }
}
