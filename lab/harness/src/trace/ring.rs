// SPDX-License-Identifier: MIT OR Apache-2.0
//! One page of the kernel's ring buffer, as `trace_pipe_raw` hands it out.
//!
//! SUMMARY: `time stamp (8) · commit (8) · entries`; an entry is 5
//! bits of kind or length and 27 bits of time since the entry before
//! it (kernel include/linux/ring_buffer.h, `events/header_event`).
//!
//! DETAILS: times are relative to the page's own stamp. A time that needs more than 27 bits has an
//! entry of its own in front. Entries that a filter dropped stay as padding; their own time does
//! not count (`rb_update_read_stamp`).

use super::tracefs::TraceError;

/// Bytes before the entries: what `events/header_page` says on every 64-bit kernel.
const HEADER: usize = 16;
/// The bits of `commit` that are a length; flags lie above (kernel
/// kernel/trace/ring_buffer.c, `RB_MISSED_EVENTS`).
const COMMITTED: u64 = (1 << 20) - 1;
/// Bits of a time inside an entry.
const DELTA: u32 = 27;
/// Bits of an absolute time that an entry cannot hold: they are the page's.
const TOP: u64 = 0xf8 << 56;

/// Hands every entry of `page` to `entry`, with its time by the buffer's clock; an entry that would
/// reach out of the page ends it. None where there is not even a header.
pub fn read<'page>(page: &'page [u8], mut entry: impl FnMut(u64, &'page [u8])) -> Option<()> {
    let word = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?));
    let (mut time, commit) = (word(0)?, word(8)?);
    let end = HEADER.checked_add(usize::try_from(commit & COMMITTED).ok()?)?.min(page.len());
    let mut at = HEADER;
    while at + 4 <= end {
        let Some(head) = short(at) else { break };
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let extra = || short(at + 4);
        match kind {
            29 => {
                // Without a time it fills the page up.
                let Some(length) = extra().filter(|_| delta > 0) else { break };
                at += 4 + length as usize;
            }
            30 => {
                let Some(high) = extra() else { break };
                time = time.wrapping_add((u64::from(high) << DELTA) + delta);
                at += 8;
            }
            31 => {
                let Some(high) = extra() else { break };
                time = (time & TOP) | (((u64::from(high) << DELTA) + delta) & !TOP);
                at += 8;
            }
            _ => {
                time = time.wrapping_add(delta);
                let (start, length) = match kind {
                    0 => match extra() {
                        Some(length) if length >= 4 => (at + 8, length as usize - 4),
                        _ => break,
                    },
                    words => (at + 4, words as usize * 4),
                };
                let Some(data) = page.get(start..start + length).filter(|_| start + length <= end) else {
                    break;
                };
                entry(time, data);
                at = start + length;
            }
        }
    }
    Some(())
}

/// Checks `events/header_page`: another layout would be read wrongly.
pub fn check(header_page: &str, path: &str) -> Result<(), TraceError> {
    let data = header_page.lines().find(|line| line.contains("char data;"));
    match data {
        Some(line) if line.contains(&format!("offset:{HEADER};")) => Ok(()),
        _ => Err(TraceError::Unknown {
            path: path.to_owned(),
            text: header_page.trim().chars().take(200).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(commit: u64, entries: &[u32]) -> Vec<u8> {
        let mut page = [100_u64.to_le_bytes(), commit.to_le_bytes()].concat();
        entries.iter().for_each(|word| page.extend(word.to_le_bytes()));
        page.resize(4096, 0);
        page
    }

    fn entries(page: &[u8]) -> Vec<(u64, usize)> {
        let mut seen = Vec::new();
        read(page, |time, data| seen.push((time, data.len()))).unwrap();
        seen
    }

    #[test]
    fn times_add_up_and_long_ones_have_an_entry_of_their_own() {
        let page = page(28, &[1 | 5 << 5, 7, 30 | 3 << 5, 2, 2 | 1 << 5, 8, 9]);
        assert_eq!(entries(&page), [(105, 4), (105 + (2 << 27) + 3 + 1, 8)]);
    }

    #[test]
    fn an_absolute_time_keeps_the_top_bits_of_the_page() {
        let mut page = page(16, &[31 | 3 << 5, 2, 1, 8]);
        page[7] = 0x10;
        assert_eq!(entries(&page), [((0x10 << 56) + (2 << 27) + 3, 4)]);
    }

    #[test]
    fn what_a_filter_dropped_is_passed_over_without_its_time() {
        let page = page(20, &[29 | 9 << 5, 8, 0, 1 | 4 << 5, 1]);
        assert_eq!(entries(&page), [(104, 4)]);
    }

    #[test]
    fn long_entries_carry_their_length() {
        let page = page(16, &[1 << 5, 12, 1, 2]);
        assert_eq!(entries(&page), [(101, 8)]);
    }

    #[test]
    fn a_page_that_lies_about_itself_ends_where_it_ends() {
        for commit in [u64::MAX, 4080, 1 << 19] {
            for hostile in [0xffff_ffff_u32, 29 | 1 << 5, 1 << 5, 28] {
                let page = page(commit, &[hostile; 1020]);
                let seen = entries(&page).iter().map(|(_, length)| length + 4).sum::<usize>();
                assert!(seen <= 4096);
            }
        }
        assert_eq!(read(&[0; 12], |_, _| {}), None);
    }

    #[test]
    fn another_layout_is_refused() {
        let known =
            "\tfield: u64 timestamp;\toffset:0;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert!(check(known, "x").is_ok());
        assert!(check(&known.replace("16", "12"), "x").is_err());
        assert!(check("", "x").is_err());
    }
}
