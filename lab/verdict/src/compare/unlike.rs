// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether two runs were scheduled alike, apart from what their plans say.

use doorbell_results::record::ResultFile;

/// Why the times of the two are not held against each other, `None` if they are: their sides
/// inherited another policy, nice value, timer slack, session group, memory policy or call filters,
/// or one ran under another CPU quota. What a file does not tell is no difference.
pub(super) fn unlike(baseline: &ResultFile, candidate: &ResultFile) -> Option<String> {
    let [first, second] = [baseline, candidate].map(|file| &file.machine);
    let mut differs = first.scheduling.unlike(&second.scheduling);
    let quotas = [first, second].map(|machine| {
        let cgroup = &machine.cgroup;
        cgroup.version.map(|_| {
            cgroup
                .cpu_quota
                .map_or_else(|| "no CPU quota".to_owned(), |quota| format!("a quota of {quota:.2} CPUs"))
        })
    });
    if let [Some(before), Some(after)] = quotas
        && before != after
    {
        differs.push([before, after]);
    }
    let (before, after): (Vec<String>, Vec<String>) =
        differs.into_iter().map(|[before, after]| (before, after)).unzip();
    (!before.is_empty()).then(|| {
        format!("one was measured with {} and the other with {}", before.join(", "), after.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::plain;
    use super::super::{RELEVANT, Turns, compare, compare_beside};
    use super::*;
    use doorbell_results::machine::scheduling::Scheduling;

    /// Runs under `chrt -f 10`, `chrt -i 0` and `nice -n 19` were compared in silence.
    #[test]
    fn runs_whose_sides_inherited_unlike_scheduling_are_not_paired_and_the_difference_is_named() {
        let [mut first, mut second] = [plain(16_000.0), plain(16_000.0)];
        let scheduling = |nice| Scheduling { nice: Some(nice), ..Scheduling::default() };
        first.machine.scheduling = scheduling(0);
        assert_eq!(unlike(&first, &second), None, "an older file tells nothing");
        second.machine.scheduling = scheduling(19);
        let why = "one was measured with nice 0 and the other with nice 19";
        assert_eq!(unlike(&first, &second).as_deref(), Some(why));
        let compared = compare(&first, &second, RELEVANT);
        assert!(compared.rows.is_empty() && compared.unmatched[0].reason == why, "{compared:?}");
        // In turn, one beside the other, the difference may be what is asked about.
        assert_eq!(compare_beside(&first, &second, Turns::Blocks, RELEVANT, 1).rows.len(), 1);
    }

    #[test]
    fn a_run_under_a_quota_is_not_paired_with_one_under_none() {
        let [mut first, mut second] = [plain(16_000.0), plain(16_000.0)];
        (first.machine.cgroup.version, second.machine.cgroup.version) = (Some(2), Some(1));
        assert_eq!(unlike(&first, &second), None);
        second.machine.cgroup.cpu_quota = Some(0.1);
        assert!(unlike(&first, &second).unwrap().ends_with("with a quota of 0.10 CPUs"));
    }
}
