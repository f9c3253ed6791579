// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs leave in the ring, as `wake.bpf.c` lays it out.

/// Bits of [`Woken::how`].
pub const IN_SOFTIRQ: u32 = 1;
pub const IN_INTERRUPT: u32 = 2;
/// A timer was served.
pub const BY_TIMER: u32 = 4;
/// It was the sleeper's own: its time ran out.
pub const RAN_OUT: u32 = 8;
/// That the CPU turned to it was not told: when it came is when it left again less what it ran.
pub const UNTOLD: u32 = 16;

/// A wake-up, times by the monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Woken {
    pub how: u32,
    pub task: i32,
    pub process: i32,
    pub waker: i32,
    pub waker_process: i32,
    /// The calls that both were in; none has a negative number.
    pub call: i32,
    pub waker_call: i32,
    /// When it left its CPU, its waking began, and a CPU turned to it.
    pub slept: u64,
    pub waking: u64,
    pub came: u64,
    /// Its CPU time, and its calls that had read or written, when it left.
    pub ran: u64,
    pub done: u64,
    /// How often the waker had left its CPU.
    pub waker_switches: u64,
    pub args: [u64; 3],
    pub waker_args: [u64; 3],
    /// The CPU that it came to, and the one from which it was woken.
    pub cpu: u32,
    pub waker_cpu: u32,
    /// Who had its CPU until it came, 0 for the idle task; negative where that was not told.
    pub before: i32,
    /// For how long that one had run in one go.
    pub before_ran: u64,
}

/// What a stack is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Of {
    Sleeper,
    Waker,
    /// Who wakes it by what it sent, or whom a packet from elsewhere interrupted.
    WakerOrBystander,
}

/// The stack of a sleeper, or of who wakes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Who sleeps, and since when.
    pub task: i32,
    pub slept: u64,
    pub of: Of,
    /// Whose stack it is.
    pub process: i32,
    /// The number of the kernel's part.
    pub kernel: Option<u32>,
    /// User mode's code, stack and frame, and where it returns to, where that is in a register.
    pub at: [u64; 4],
    /// What lies on the stack in user mode, from `at` on; nothing where there is none.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Stack(Stack),
    Woken(Woken),
    /// A thread left its CPU without having gone to sleep.
    Left {
        task: i32,
        at: u64,
    },
    Born {
        task: i32,
        process: i32,
        /// The process that made it.
        parent: i32,
        name: String,
    },
    Renamed {
        task: i32,
        name: String,
    },
    /// A thread has ended, with so much CPU time.
    Ended {
        task: i32,
        ran: u64,
    },
}

/// The record in `bytes`; none where it is of no known kind, or too short.
pub fn read(bytes: &[u8]) -> Option<Told> {
    let half = |index: usize| Some(i32::from_ne_bytes(bytes.get(4 * index..4 * index + 4)?.try_into().ok()?));
    let word = |index: usize| Some(u64::from_ne_bytes(bytes.get(8 * index..8 * index + 8)?.try_into().ok()?));
    let three = |index: usize| Some([word(index)?, word(index + 1)?, word(index + 2)?]);
    let name = || {
        let name = bytes.get(16..32)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let text = String::from_utf8_lossy(&name[..end]);
        // Names are chosen by their programs.
        Some(text.replace(char::is_control, "?"))
    };
    Some(match half(0)? {
        1 => Told::Woken(Woken {
            how: half(1)?.cast_unsigned(),
            task: half(2)?,
            process: half(3)?,
            waker: half(4)?,
            waker_process: half(5)?,
            call: half(6)?,
            waker_call: half(7)?,
            slept: word(4)?,
            waking: word(5)?,
            came: word(6)?,
            ran: word(7)?,
            done: word(8)?,
            waker_switches: word(9)?,
            args: three(10)?,
            waker_args: three(13)?,
            cpu: half(32)?.cast_unsigned(),
            waker_cpu: half(33)?.cast_unsigned(),
            before: half(34)?,
            before_ran: word(18)?,
        }),
        2 => Told::Left { task: half(1)?, at: word(1)? },
        3 => Told::Born { task: half(1)?, process: half(2)?, parent: half(3)?, name: name()? },
        4 => Told::Renamed { task: half(1)?, name: name()? },
        5 => Told::Ended { task: half(1)?, ran: word(1)? },
        6 => {
            const HEAD: usize = 64;
            let length = usize::try_from(half(7)?).ok()?;
            Told::Stack(Stack {
                task: half(1)?,
                of: match half(2)? {
                    0 => Of::Sleeper,
                    1 => Of::Waker,
                    _ => Of::WakerOrBystander,
                },
                process: half(3)?,
                slept: word(2)?,
                kernel: u32::try_from(half(6)?).ok(),
                at: [word(4)?, word(5)?, word(6)?, word(7)?],
                bytes: bytes.get(HEAD..HEAD.checked_add(length)?)?.to_vec(),
            })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_is_laid_out_and_one_cut_off_is_none() {
        let halves: Vec<i32> = vec![1, 9, 10, 11, 12, 13, -1, 202];
        let words: Vec<u64> = (100..112).collect();
        let last: [i32; 4] = [1, 0, -1, 0];
        let mut bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_ne_bytes()).collect();
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(last.iter().flat_map(|half| half.to_ne_bytes()));
        bytes.extend(112_u64.to_ne_bytes());
        let woken = Woken {
            how: IN_SOFTIRQ | RAN_OUT,
            task: 10,
            process: 11,
            waker: 12,
            waker_process: 13,
            call: -1,
            waker_call: 202,
            slept: 100,
            waking: 101,
            came: 102,
            ran: 103,
            done: 104,
            waker_switches: 105,
            args: [106, 107, 108],
            waker_args: [109, 110, 111],
            cpu: 1,
            waker_cpu: 0,
            before: -1,
            before_ran: 112,
        };
        assert_eq!(read(&bytes), Some(Told::Woken(woken)));
        (0..bytes.len()).for_each(|end| assert_eq!(read(&bytes[..end]), None));
        assert_eq!(read(&[0xff; 128]), None);
    }

    #[test]
    fn of_a_stack_no_more_is_read_than_there_is() {
        let mut bytes: Vec<u8> = [6_i32, 10, 1, 11].iter().flat_map(|half| half.to_ne_bytes()).collect();
        bytes.extend(100_u64.to_ne_bytes());
        bytes.extend([-14_i32, 3].iter().flat_map(|half| half.to_ne_bytes()));
        bytes.extend([1_u64, 2, 3, 4].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(b"abcd");
        let stack = Stack {
            task: 10,
            slept: 100,
            of: Of::Waker,
            process: 11,
            kernel: None,
            at: [1, 2, 3, 4],
            bytes: b"abc".to_vec(),
        };
        assert_eq!(read(&bytes), Some(Told::Stack(stack)));
        assert_eq!(read(&bytes[..bytes.len() - 2]), None);
        bytes[28] = 0x80;
        assert_eq!(read(&bytes), None);
    }

    #[test]
    fn a_name_ends_at_its_zero_and_holds_nothing_that_a_terminal_obeys() {
        let mut bytes: Vec<u8> = [3_i32, 20, 21, 22].iter().flat_map(|half| half.to_ne_bytes()).collect();
        bytes.extend(b"a\x1bb\0cdefghijklmn");
        let name = "a?b".to_owned();
        assert_eq!(read(&bytes), Some(Told::Born { task: 20, process: 21, parent: 22, name }));
    }
}
