// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where threads slept and from where they were woken, of some of the wake-ups.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;

use crate::trace::bpf::record::{Of, Stack};
use doorbell_results::anatomy::program::{Edge, Sampled, Stacks};

/// Pairs of stacks that are kept of an edge, those first that were met most often.
const KEPT: usize = 10;
/// How the kernel's functions begin that record a wake-up; those under them are the program's.
const RECORDER: [&str; 4] = ["bpf_", "__bpf_", "__traceiter_", "__probestub_"];

/// How the kernel's functions begin by which an interrupt enters it, on x86-64 and 64-bit ARM.
const INTERRUPTS: [&str; 4] = ["asm_sysvec_", "asm_common_interrupt", "el1h_64_irq", "el0t_64_irq"];

/// A place in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// An address in the kernel.
    Kernel(u64),
    /// A place in a file of code, by the file's number in what unwinds.
    File(u32, u64),
    /// An address in a process, of no known file.
    Memory(u64),
}

/// Finds places on a stack, and names their functions. The crate `doorbell-stacks` does, which
/// whoever needs no stacks does not need to build.
pub trait Unwind: std::fmt::Debug {
    /// Those in user mode, the innermost first; soon after the stack was recorded.
    fn user(&mut self, stack: &Stack) -> Vec<Place>;
    /// That a process may be another program now.
    fn changed(&mut self, process: i32);
    /// The function at a place; none where the kernel keeps it from this user.
    fn name(&self, place: Place) -> Option<String>;
}

/// A stack as it was recorded: the kernel's places, and those of user mode.
type Met = (Of, Vec<u64>, Vec<Place>);

#[derive(Debug)]
pub(super) struct ByStacks {
    pub(super) one_in: NonZero<u32>,
    unwind: Box<dyn Unwind>,
    stacks: Numbered<Met>,
    /// Of a sleep, by its thread and beginning: the sleeper's stack and the waker's.
    samples: HashMap<(i32, u64), [Option<u32>; 2]>,
}

/// Things in the order in which they were first met.
#[derive(Debug)]
struct Numbered<Thing> {
    all: Vec<Thing>,
    numbers: HashMap<Thing, u32>,
}

impl<Thing: Clone + Eq + std::hash::Hash> Numbered<Thing> {
    fn new() -> Self {
        Self { all: Vec::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, thing: Thing) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(thing).or_insert_with_key(|thing| {
            self.all.push(thing.clone());
            next
        })
    }
}

impl ByStacks {
    pub(super) fn new(one_in: NonZero<u32>, unwind: Box<dyn Unwind>) -> Self {
        Self { one_in, unwind, stacks: Numbered::new(), samples: HashMap::new() }
    }

    /// Enters a stack, of which `kernel` are the kernel's addresses.
    pub(super) fn enter(&mut self, stack: &Stack, kernel: Vec<u64>) {
        let user = self.unwind.user(stack);
        let number = self.stacks.number((stack.of, kernel, user));
        let sample = self.samples.entry((stack.task, stack.slept)).or_default();
        sample[usize::from(stack.of != Of::Sleeper)] = Some(number);
    }

    /// That a thread has another name, as it has once its process is another program.
    pub(super) fn renamed(&mut self, task: i32) {
        self.unwind.changed(task);
    }

    pub(super) fn has(&self, task: i32, slept: u64) -> bool {
        self.samples.contains_key(&(task, slept))
    }

    /// The functions of a stack, but for those that recorded it and a bystander's.
    fn functions(&self, (of, kernel, user): &Met) -> Vec<String> {
        let names = kernel.iter().filter_map(|address| self.unwind.name(Place::Kernel(*address)));
        let mut names: Vec<String> = names.map(|name| format!("{name}_[k]")).collect();
        let begins = |name: &String, with: &[&str]| with.iter().any(|begin| name.starts_with(begin));
        if let Some(last) = names.iter().rposition(|name| begins(name, &RECORDER)) {
            names.drain(..=last);
        }
        let interrupted = names.iter().position(|name| begins(name, &INTERRUPTS));
        match interrupted.filter(|_| *of != Of::Sleeper) {
            // What an interrupt came upon is a bystander's.
            Some(place) => names.truncate(place + 1),
            // Nobody knows whether it was an interrupt.
            None if *of == Of::WakerOrBystander && names.is_empty() => {}
            None => names.extend(user.iter().filter_map(|place| self.unwind.name(*place))),
        }
        names
    }

    /// Gives each edge the stacks of its wake-ups; `edge` is that of one, by its thread and when
    /// that went to sleep.
    pub(super) fn put(
        &self,
        edges: &mut [Edge],
        edge: impl Fn(i32, u64) -> Option<usize>,
        lost: u64,
    ) -> Stacks {
        let mut functions = Numbered::new();
        // Places of one function are one.
        let stacks: Vec<Vec<u32>> = self
            .stacks
            .all
            .iter()
            .map(|met| self.functions(met).into_iter().map(|name| functions.number(name)).collect())
            .collect();
        let mut met: BTreeMap<usize, BTreeMap<[&[u32]; 2], u64>> = BTreeMap::new();
        for ((task, slept), sample) in &self.samples {
            if let Some(edge) = edge(*task, *slept) {
                let pair = sample.map(|stack| stack.map_or(&[][..], |number| &stacks[number as usize]));
                *met.entry(edge).or_default().entry(pair).or_default() += 1;
            }
        }
        for (place, pairs) in met {
            let Some(edge) = edges.get_mut(place) else { continue };
            edge.sampled = pairs.values().sum();
            let mut pairs: Vec<_> = pairs.into_iter().collect();
            pairs.sort_by_key(|(_, wakes)| std::cmp::Reverse(*wakes));
            let kept = pairs.into_iter().take(KEPT).map(|([waiter, waker], wakes)| Sampled {
                waiter: waiter.to_vec(),
                waker: waker.to_vec(),
                wakes,
            });
            edge.stacks = kept.collect();
        }
        Stacks { one_in: self.one_in.get(), lost, functions: functions.all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::anatomy::program::{By, Mechanism, Object, Wait, Waker};
    use doorbell_results::record::{Histogram, Series};

    /// Names every address by itself.
    #[derive(Debug)]
    struct ByAddress;

    impl Unwind for ByAddress {
        fn user(&mut self, stack: &Stack) -> Vec<Place> {
            vec![Place::Memory(stack.at[0])]
        }

        fn changed(&mut self, _: i32) {}

        fn name(&self, place: Place) -> Option<String> {
            let Place::Kernel(address) = place else { return Some(format!("{place:?}")) };
            let name = match address {
                1 => "bpf_trace_run4",
                2 => "__traceiter_sched_switch",
                3 => "__schedule",
                4 => "asm_common_interrupt",
                _ => return None,
            };
            Some(name.to_owned())
        }
    }

    fn stack(task: i32, slept: u64, of: Of, code: u64) -> Stack {
        Stack { task, slept, of, process: 1, kernel: None, at: [code, 0, 0, 0], bytes: Vec::new() }
    }

    #[test]
    fn a_bystander_of_an_interrupt_is_no_waker() {
        let functions = |of, kernel: &[u64]| {
            let mut by = ByStacks::new(NonZero::new(1).unwrap(), Box::new(ByAddress));
            by.enter(&stack(10, 5, of, 7), kernel.to_vec());
            by.functions(&by.stacks.all[0])
        };
        let interrupted = ["__schedule_[k]", "asm_common_interrupt_[k]"];
        assert_eq!(functions(Of::Waker, &[3, 4, 3]), interrupted);
        assert_eq!(functions(Of::WakerOrBystander, &[3, 4, 3]), interrupted);
        assert_eq!(functions(Of::WakerOrBystander, &[3]), ["__schedule_[k]", "Memory(7)"]);
        // Nobody knows what the kernel was in.
        assert!(functions(Of::WakerOrBystander, &[]).is_empty());
        // One that was taken off its CPU by an interrupt sleeps nevertheless.
        assert!(functions(Of::Sleeper, &[3, 4]).contains(&"Memory(7)".to_owned()));
    }

    #[test]
    fn what_records_is_no_part_of_a_stack_and_an_edge_has_those_that_were_met_most_first() {
        let mut by = ByStacks::new(NonZero::new(64).unwrap(), Box::new(ByAddress));
        by.enter(&stack(10, 5, Of::Sleeper, 7), vec![1, 2, 3, 9]);
        by.enter(&stack(10, 6, Of::Sleeper, 8), vec![]);
        by.enter(&stack(10, 7, Of::Sleeper, 8), vec![]);
        for slept in [6, 7] {
            by.enter(&stack(10, slept, Of::Waker, 9), vec![3]);
        }
        by.enter(&stack(11, 6, Of::Sleeper, 8), vec![]);
        let nothing = Series::from(&Histogram::untouched());
        let mut edges = [Edge {
            waker: Waker::Kernel,
            waiter: "worker".to_owned(),
            mechanism: Mechanism { wait: Wait::Futex, object: Object::None, by: By::Call },
            wakes: 3,
            ran_out: 0,
            rescued: 0,
            slept: nothing.clone(),
            took: nothing,
            sequence: None,
            slowest: Vec::new(),
            sampled: 0,
            stacks: Vec::new(),
        }];
        let of_ten = |task, _| (task == 10).then_some(0);
        let stacks = by.put(&mut edges, of_ten, 2);
        assert_eq!((stacks.one_in, stacks.lost), (64, 2));
        let named = |places: &[u32]| -> Vec<&str> {
            places.iter().map(|place| stacks.functions[*place as usize].as_str()).collect()
        };
        let [most, least] = &edges[0].stacks[..] else { panic!("{edges:?}") };
        assert_eq!((edges[0].sampled, most.wakes, least.wakes), (3, 2, 1));
        assert_eq!(
            (named(&most.waiter), named(&most.waker)),
            (vec!["Memory(8)"], vec!["__schedule_[k]", "Memory(9)"])
        );
        assert_eq!(
            (named(&least.waiter), named(&least.waker)),
            (vec!["__schedule_[k]", "Memory(7)"], vec![])
        );
    }
}
