// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that run a side without having told that they turned to it.
//!
//! Seen on a kernel of a virtual machine whose second CPU told of no switch from idle to a task,
//! while its first told of all. A wake that ends there has no mark of its waiter's coming, and must
//! not be taken for one whose waiter had never left.

use std::collections::BTreeSet;

use crate::trace::instance::Harvest;
use doorbell_results::anatomy::{Hidden, Mark};
use doorbell_results::event::{Event, What};

/// The CPUs on which one of `tasks` ran without having been said to come.
pub fn missing_events(harvest: &Harvest, tasks: [i32; 2]) -> BTreeSet<u32> {
    let whole = |event: &&Event| event.at >= harvest.whole_from.cast_signed();
    let mut cpus = BTreeSet::new();
    for task in tasks {
        let mut away = false;
        let mut came_to = BTreeSet::new();
        for event in harvest.events.iter().filter(whole) {
            // Where clocks of CPUs differ, a coming may stand before
            // the leaving from another CPU: it was told all the same.
            if away && event.task == task && !came_to.contains(&event.cpu) {
                cpus.insert(event.cpu);
                away = false;
            }
            match event.what {
                What::Switch { to, .. } if to == task => {
                    away = false;
                    came_to.insert(event.cpu);
                }
                What::Switch { from, .. } if from == task => {
                    away = true;
                    came_to.remove(&event.cpu);
                }
                _ => {}
            }
        }
    }
    cpus
}

pub fn hidden(cpus: &BTreeSet<u32>) -> impl Iterator<Item = Hidden> + '_ {
    cpus.iter().map(|cpu| Hidden {
        mark: Mark::ScheduledIn,
        why: format!("CPU {cpu} ran sides without telling that it turned to them"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harvest(events: &[Event], whole_from: u64) -> Harvest {
        Harvest { events: events.to_vec(), lost: 0, whole_from }
    }

    fn switch(at: i64, cpu: u32, from: i32, to: i32) -> Event {
        let name = String::new;
        let what = What::Switch { from, from_name: name(), state: 1, to, to_name: name(), to_priority: 120 };
        Event { at, cpu, task: from, what }
    }

    #[test]
    fn a_cpu_that_tells_of_every_coming_hides_nothing() {
        let call = Event { at: 3, cpu: 1, task: 7, what: What::CallReturns { number: 202 } };
        let told = [switch(1, 1, 7, 0), switch(2, 1, 0, 7), call.clone(), switch(4, 1, 7, 0)];
        assert!(missing_events(&harvest(&told, 0), [6, 7]).is_empty());
        // Of somebody else's coming nothing is asked.
        assert!(missing_events(&harvest(&[switch(1, 1, 8, 0), switch(2, 1, 8, 0)], 0), [6, 7]).is_empty());
    }

    #[test]
    fn a_cpu_on_which_a_side_acts_again_without_having_come_is_named() {
        let call = Event { at: 3, cpu: 1, task: 7, what: What::CallReturns { number: 202 } };
        assert_eq!(missing_events(&harvest(&[switch(1, 1, 7, 0), call], 0), [6, 7]), [1].into());
        let moved = [switch(1, 0, 7, 0), switch(2, 3, 7, 0)];
        assert_eq!(missing_events(&harvest(&moved, 0), [6, 7]), [3].into());
        // Before the moment from which nothing is missing, its coming may have been overwritten.
        assert!(missing_events(&harvest(&moved, 2), [6, 7]).is_empty());
        let early = [switch(1, 3, 0, 7), switch(2, 0, 7, 0), switch(3, 3, 7, 0)];
        assert!(missing_events(&harvest(&early, 0), [6, 7]).is_empty(), "two clocks that differ");
        let hidden: Vec<Hidden> = hidden(&[3].into()).collect();
        assert!(
            matches!(&hidden[..], [Hidden { mark: Mark::ScheduledIn, why }] if why.starts_with("CPU 3 "))
        );
    }
}
