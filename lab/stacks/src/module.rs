// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of code: its tables for exceptions, and its functions' names.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use framehop::ExplicitModuleSectionInfo;
use gimli::{BaseAddresses, CallFrameInstruction, CieOrFde, EhFrame, EhFrameHdr, NativeEndian};
use gimli::{Operation, UnwindSection};
use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};

/// Bytes of a table that are read at the most: of the largest programs known it has half as many.
const MOST: u64 = 1 << 28;
/// Bytes of a name that are kept, and that are shown, at the most.
const KEPT: usize = 1024;
const LONGEST: usize = 120;
/// Functions that one may lie in.
const NESTED: usize = 16;

type Tables = ExplicitModuleSectionInfo<Arc<[u8]>>;
/// Where a part is in its file, and where it is meant to be in memory.
type Segment = (Range<u64>, u64);

#[derive(Debug, Default)]
pub(super) struct Module {
    name: String,
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
    /// What `file`, called `name`, has; nothing where it is no program. Of the bytes that are `left`
    /// for tables it takes what it needs, or has none.
    pub(super) fn read(name: &str, file: File, left: &Cell<u64>) -> Self {
        let cache = ReadCache::new(file);
        let (segments, tables) = code(&cache, left).unwrap_or_default();
        let (name, file) = (name.to_owned(), Some(cache.into_inner()));
        Self { name, segments, tables, file, functions: OnceLock::new() }
    }

    /// How far its addresses in memory lie above those that are meant, if what is at `offset` in
    /// the file is at `address`.
    pub(super) fn moved(&self, address: u64, offset: u64) -> Option<u64> {
        let (range, meant) = self.segments.iter().find(|(range, _)| {
            // A part is mapped from the page on in which it begins.
            (range.start & !0xfff..range.end).contains(&offset)
        })?;
        Some(address.wrapping_sub(meant.wrapping_add(offset.wrapping_sub(range.start))))
    }

    /// For the unwinder: as it is mapped to `range`, so far above what is meant.
    pub(super) fn mapped(&self, range: Range<u64>, moved: u64) -> framehop::Module<Arc<[u8]>> {
        framehop::Module::new(self.name.clone(), range, moved, self.tables.clone())
    }

    /// The function at an address that is meant; of the bytes that are `left` for names this takes
    /// what it needs, or some.
    pub(super) fn function(&self, meant: u64, left: &Cell<u64>) -> String {
        let functions = self.functions.get_or_init(|| {
            let all = self.file.as_ref().map(|file| functions(&ReadCache::new(file), left));
            all.flatten().unwrap_or_default()
        });
        let after = functions.partition_point(|function| function.at.start <= meant);
        let mut before = functions[..after].iter().rev().take(NESTED);
        let named = before.find(|function| function.at.contains(&meant));
        let name = named.map(|function| shown(&function.name));
        name.unwrap_or_else(|| shown(&format!("{}+0x{meant:x}", self.name)))
    }
}

/// Takes `bytes` of what is left, if that is enough.
fn take(left: &Cell<u64>, bytes: u64) -> Option<()> {
    left.set(left.get().checked_sub(bytes)?);
    Some(())
}

/// Where the code of a program is, and its tables.
fn code<'data>(data: impl ReadRef<'data>, left: &Cell<u64>) -> Option<(Vec<Segment>, Tables)> {
    let head = FileHeader64::<Endianness>::parse(data).ok()?;
    let order = head.endian().ok()?;
    let sections = head.sections(order, data).ok()?;
    let section = |called: &[u8]| sections.section_by_name(order, called).map(|(_, section)| section);
    let range = |called: &[u8]| {
        let section = section(called)?;
        let begins = section.sh_addr(order);
        Some(begins..begins.checked_add(section.sh_size(order))?)
    };
    let data_of = |called: &[u8]| {
        let section = section(called).filter(|section| section.sh_size(order) <= MOST)?;
        take(left, section.sh_size(order))?;
        section.data(order, data).ok().map(Arc::<[u8]>::from)
    };
    let mut tables = Tables {
        text_svma: range(b".text"),
        got_svma: range(b".got"),
        eh_frame_svma: range(b".eh_frame"),
        eh_frame: data_of(b".eh_frame"),
        eh_frame_hdr_svma: range(b".eh_frame_hdr"),
        eh_frame_hdr: data_of(b".eh_frame_hdr"),
        ..Tables::default()
    };
    let bases = bases(&tables);
    match tables.eh_frame.as_ref().and_then(|frames| straight(frames, &bases)) {
        Some(entries) => {
            tables.eh_frame_hdr =
                tables.eh_frame_hdr.filter(|header| leads_to(header, &bases, &entries).unwrap_or(false));
        }
        None => (tables.eh_frame, tables.eh_frame_hdr) = (None, None),
    }
    let parts = head.program_headers(order, data).ok()?.iter();
    // Others may begin in the same page of the file.
    let parts = parts.filter(|part| part.p_type(order) == PT_LOAD && part.p_flags(order).contains(PF_X));
    let segment = |part: &<FileHeader64<Endianness> as FileHeader>::ProgramHeader| {
        let (at, size) = part.file_range(order);
        Some((at..at.checked_add(size)?, part.p_vaddr(order)))
    };
    Some((parts.filter_map(segment).collect(), tables))
}

fn bases(tables: &Tables) -> BaseAddresses {
    let begins = |range: &Option<Range<u64>>| range.as_ref().map_or(0, |range| range.start);
    BaseAddresses::default()
        .set_eh_frame(begins(&tables.eh_frame_svma))
        .set_eh_frame_hdr(begins(&tables.eh_frame_hdr_svma))
        .set_text(begins(&tables.text_svma))
        .set_got(begins(&tables.got_svma))
}

/// Where the entries of the table are in it. None where one of them is garbled, or has an
/// expression with a jump: that could lead back, and whoever follows it would do so for ever.
/// Compilers write none.
fn straight(frames: &[u8], bases: &BaseAddresses) -> Option<HashSet<usize>> {
    let section = EhFrame::new(frames, NativeEndian);
    let (mut entries, mut all, mut known) = (section.entries(bases), HashSet::new(), None);
    while let Some(entry) = entries.next().ok()? {
        let CieOrFde::Fde(entry) = entry else { continue };
        let entry = entry.parse(|section, bases, at| section.cie_from_offset(bases, at)).ok()?;
        let common = entry.cie();
        let mut lists = vec![entry.instructions(&section, bases)];
        if known.replace(common.offset()) != Some(common.offset()) {
            lists.push(common.instructions(&section, bases));
        }
        for mut list in lists {
            while let Some(instruction) = list.next().ok()? {
                let expression = match instruction {
                    CallFrameInstruction::DefCfaExpression { expression }
                    | CallFrameInstruction::Expression { expression, .. }
                    | CallFrameInstruction::ValExpression { expression, .. } => expression,
                    _ => continue,
                };
                let mut steps = expression.get(&section).ok()?.operations(common.encoding());
                while let Some(step) = steps.next().ok()? {
                    if matches!(step, Operation::Skip { .. } | Operation::Bra { .. }) {
                        return None;
                    }
                }
            }
        }
        all.insert(entry.offset());
    }
    Some(all)
}

/// Whether all that the table's index leads to are `entries` of it.
fn leads_to(header: &[u8], bases: &BaseAddresses, entries: &HashSet<usize>) -> Option<bool> {
    let header = EhFrameHdr::new(header, NativeEndian).parse(bases, 8).ok()?;
    let table = header.table()?;
    let mut all = table.iter(bases);
    while let Some((_, entry)) = all.next().ok()? {
        if !entries.contains(&table.pointer_to_offset(entry).ok()?.0) {
            return Some(false);
        }
    }
    Some(true)
}

/// The functions of a program, in the order of their addresses, as many as there are bytes `left`
/// for.
fn functions<'data>(data: impl ReadRef<'data>, left: &Cell<u64>) -> Option<Vec<Function>> {
    /// Bytes of a symbol, and what it is: code, or code that chooses code (elf(5)).
    const SYMBOL: usize = 24;
    const CODE: [u8; 2] = [2, 10];
    let head = FileHeader64::<Endianness>::parse(data).ok()?;
    let order = head.endian().ok()?;
    let sections = head.sections(order, data).ok()?;
    let table = |called: &[u8]| {
        let (_, section) = sections.section_by_name(order, called)?;
        if section.sh_size(order) > MOST { None } else { section.data(order, data).ok() }
    };
    let mut all = Vec::new();
    for (symbols, names) in [(".symtab", ".strtab"), (".dynsym", ".dynstr")] {
        let tables = table(symbols.as_bytes()).zip(table(names.as_bytes()));
        let Some((symbols, names)) = tables else { continue };
        for symbol in symbols.chunks_exact(SYMBOL) {
            let word = |at: usize| symbol[at..at + 8].try_into().map(u64::from_ne_bytes).unwrap_or(0);
            let (name, kind, section) = (word(0) as u32 as usize, symbol[4] & 0xf, &symbol[6..8]);
            let range = word(8).checked_add(word(16)).map(|end| word(8)..end);
            let Some(range) = range.filter(|range| !range.is_empty() && CODE.contains(&kind)) else {
                continue;
            };
            let Some(name) = names.get(name..).filter(|_| section != [0, 0]) else { continue };
            let name = name[..name.len().min(KEPT)].split(|byte| *byte == 0).next().unwrap_or(name);
            let name = String::from_utf8_lossy(name).into_owned();
            if take(left, (name.len() + size_of::<Function>()) as u64).is_none() {
                break;
            }
            all.push(Function { at: range, name: name.into() });
        }
    }
    all.sort_by_key(|function| function.at.start);
    Some(all)
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
    } else if let Some(cpp) = cpp(name) {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        let _ = cpp.structured_demangle(&mut plain, &options);
    }
    if plain.0.is_empty() {
        let _ = plain.write_str(name);
    }
    plain.0.chars().map(|letter| if is_obeyed(letter) { '?' } else { letter }).collect()
}

/// A C++ name; any letter would name a type too.
fn cpp(name: &str) -> Option<cpp_demangle::BorrowedSymbol<'_>> {
    let mangled = name.starts_with("_Z").then_some(name.as_bytes())?;
    cpp_demangle::BorrowedSymbol::new(mangled).ok()
}

/// Whether a terminal acts on it, be it by turning the direction of what follows.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_their_languages_have_them() {
        assert_eq!(shown("_ZN4core3ptr4read17h0123456789abcdefE"), "core::ptr::read");
        assert_eq!(shown("_ZN3foo3barEi"), "foo::bar");
        assert_eq!(shown("pthread_cond_wait\x1b\u{202e}"), "pthread_cond_wait??");
        // Of C, and types of C++ too.
        for name in ["t", "f", "rx", "Pv", "PFvvE", "St"] {
            assert_eq!(shown(name), name);
        }
        assert_eq!(shown(&"x".repeat(1000)).len(), LONGEST);
        assert!(shown(&"ö".repeat(1000)).len() >= LONGEST - 1);
    }

    #[test]
    fn a_file_that_is_no_program_has_no_functions() {
        let module = Module { name: "text".to_owned(), ..Module::default() };
        let left = Cell::new(MOST);
        assert!(code(&b"no program"[..], &left).is_none() && functions(&b"no program"[..], &left).is_none());
        assert_eq!(module.function(0x10, &left), "text+0x10");
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
            let left = Cell::new(MOST);
            let _ = functions(&bytes[..], &left);
            let Some((segments, tables)) = code(&bytes[..], &left) else {
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

    /// A table of one entry, whose address of the frame is `expression`.
    fn table(expression: &[u8]) -> Vec<u8> {
        // Version, no augmentation, code and data in steps of 1 and -8, returns to register 16.
        let common = [1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0, 0, 0, 0];
        let mut bytes = (common.len() as u32 + 4).to_ne_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(common);
        // From 0x1000 on, 0x100 bytes.
        let mut entry = [0x1000_u64.to_ne_bytes(), 0x100_u64.to_ne_bytes()].concat();
        entry.extend([0x0f, expression.len() as u8]);
        entry.extend(expression);
        let at = bytes.len() as u32;
        bytes.extend((entry.len() as u32 + 4).to_ne_bytes());
        bytes.extend((at + 4).to_ne_bytes());
        bytes.extend(entry);
        bytes
    }

    #[test]
    fn a_table_in_which_whoever_follows_it_might_stay_is_not_followed() {
        let bases = BaseAddresses::default().set_eh_frame(0x5000);
        // The stack pointer and 8, as compilers have it.
        assert_eq!(straight(&table(&[0x77, 8]), &bases).map(|all| all.len()), Some(1));
        // Back to where it is; the same with one more on the stack each time.
        assert_eq!(straight(&table(&[0x96, 0x2f, 0xfc, 0xff]), &bases), None);
        assert_eq!(straight(&table(&[0x30, 0x2f, 0xfc, 0xff]), &bases), None);
        // If what is on the stack is not 0.
        assert_eq!(straight(&table(&[0x31, 0x28, 0xfc, 0xff]), &bases), None);
    }

    #[test]
    fn of_tables_and_names_no_more_is_kept_than_there_is_room_for() {
        let bytes = std::fs::read("/bin/true").unwrap();
        let (_, tables) = code(&bytes[..], &Cell::new(MOST)).unwrap();
        assert!(tables.eh_frame.is_some() && tables.eh_frame_hdr.is_some());
        let (_, tables) = code(&bytes[..], &Cell::new(10)).unwrap();
        assert!(tables.eh_frame.is_none() && tables.eh_frame_hdr.is_none());
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let left = Cell::new(1 << 16);
        let some = functions(&own[..], &left).unwrap();
        assert!(!some.is_empty() && left.get() < 2 * KEPT as u64, "{}", left.get());
        let all = functions(&own[..], &Cell::new(MOST)).unwrap();
        assert!(all.len() > some.len() && all.is_sorted_by_key(|function| function.at.start));
    }

    #[test]
    fn a_label_within_a_function_does_not_hide_it() {
        let function = |at, name: &str| Function { at, name: name.into() };
        let functions = OnceLock::from(vec![function(0x10..0x90, "outer"), function(0x20..0x23, "inner")]);
        let module = Module { functions, ..Module::default() };
        let names = [0x21, 0x30].map(|at| module.function(at, &Cell::new(0)));
        assert_eq!(names, ["inner", "outer"]);
    }

    #[test]
    fn a_part_is_mapped_from_its_first_page_on() {
        let module = Module { segments: vec![(0x1e40..0x3000, 0x41e40)], ..Module::default() };
        assert_eq!(module.moved(0x7000_1000, 0x1000), Some(0x7000_1000 - 0x41000));
        assert_eq!(module.moved(0x7000_1000, 0x3000), None);
    }
}
