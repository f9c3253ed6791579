// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's functions, by their addresses.

/// No function has so many bytes: what lies farther after its start is in another, which is not
/// listed.
const LONGEST: u64 = 1 << 16;

/// The kernel's functions, as it lists them; none where this user may not know where they are
/// (`kernel.kptr_restrict`).
#[derive(Debug, Default)]
pub struct Kernel {
    /// In the order of their addresses.
    functions: Vec<(u64, Box<str>)>,
}

impl Kernel {
    pub fn here() -> Self {
        Self::of(&doorbell_files::kernel("/proc/kallsyms").unwrap_or_default())
    }

    /// Of a list: an address, a kind and a name in each line.
    fn of(list: &str) -> Self {
        let function = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
            words.next().filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))?;
            Some((address, words.next()?.into()))
        };
        let mut functions: Vec<(u64, Box<str>)> = list.lines().filter_map(function).collect();
        functions.sort_by_key(|(address, _)| *address);
        Self { functions }
    }

    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|(begins, _)| *begins <= address);
        let (begins, name) = &self.functions[after.checked_sub(1)?];
        (address - begins < LONGEST).then_some(&**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let list = "ffff20 T schedule\nffff10 t __schedule\nffff28 d data\nffff30 W wake\t[mod]\n";
        let kernel = Kernel::of(list);
        let places = [0xffff0f, 0xffff10, 0xffff1f, 0xffff2f, 0xffff40, 0x10_ffff40];
        let names = places.map(|at| kernel.name(at));
        let named = [None, Some("__schedule"), Some("__schedule"), Some("schedule"), Some("wake"), None];
        assert_eq!(names, named);
    }

    #[test]
    fn addresses_that_are_kept_secret_name_nothing() {
        assert!(Kernel::of("0000000000000000 T schedule\n").is_empty());
        assert!(Kernel::of("what is this\n\n").is_empty());
    }
}
