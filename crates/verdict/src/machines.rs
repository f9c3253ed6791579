// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which type of machine takes less time, how far machines of one type lie apart, and which of them
//! are none of their type's.
//!
//! SUMMARY: a machine has one figure, how many times as long it takes as the middle one of all: the
//! median over the configurations that all of them ran. Types are judged by their machines, each of
//! which counts once, however often it was measured, since it is machines that are bought: the
//! interval between two types is that of two trimmed means (K. K. Yuen, *The two-sample trimmed t
//! for unequal population variances*, Biometrika 61, 1974), without the quickest and the slowest
//! machine of each. Of fewer machines than that needs, the middle ones of both types are compared
//! with each other, which says nothing of others.
//!
//! DETAILS: a machine is odd if a comparison of it with the middle one of its type finds most
//! configurations slower, or most faster. Of two machines neither is.

use std::collections::BTreeMap;

use super::compare::{Comparison, RELEVANT, apart, compare};
use super::ratio::{Ratio, Standing};
use super::slices::{Apart, ERROR, FEWEST_PAIRS, Levels, Sample};
use super::statistics::{median, student};
use doorbell_results::configuration::{Configuration, Until};
use doorbell_results::machine::Machine;
use doorbell_results::record::ResultFile;

/// What tells types of machines apart: maker and product by the
/// firmware, processor, CPUs, hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Type {
    pub product: Option<String>,
    pub processor: Option<String>,
    pub cpus: usize,
    pub hypervisor: Option<String>,
}

impl Type {
    pub fn of(machine: &Machine) -> Self {
        Self {
            product: machine.virtualisation.product.clone(),
            processor: machine.processor.model_name.clone().or_else(|| machine.processor.vendor.clone()),
            cpus: machine.topology.online.len(),
            hypervisor: machine.virtualisation.hypervisor.clone(),
        }
    }
}

/// One machine and all that was measured on it.
#[derive(Debug, Clone)]
pub struct Node<'result> {
    pub name: String,
    pub results: Vec<&'result ResultFile>,
    /// How many times as long it takes as the middle machine of all.
    pub times: f64,
}

/// The machines of one type, the quickest first.
#[derive(Debug, Clone)]
pub struct Group<'result> {
    pub of: Type,
    pub nodes: Vec<Node<'result>>,
    /// How many times as long they take as those of the quickest
    /// type; its interval needs machines enough.
    pub times: f64,
    pub against: Against,
}

/// How a type stands to the quickest one.
#[derive(Debug, Clone)]
pub enum Against {
    /// It is the quickest.
    Itself,
    /// As machines go.
    Type(Ratio),
    /// As its middle machine goes against the other's: configurations
    /// slower, and all that were compared.
    Middle { slower: usize, faster: usize, of: usize },
}

impl Group<'_> {
    /// How much longer its slowest machine takes than its quickest, as a share.
    pub fn apart(&self) -> f64 {
        let ends = self.nodes.first().zip(self.nodes.last());
        ends.map_or(0.0, |(quickest, slowest)| slowest.times / quickest.times - 1.0)
    }

    fn middle(&self) -> &Node<'_> {
        &self.nodes[self.nodes.len() / 2]
    }
}

/// A machine that is none of its type's.
#[derive(Debug, Clone)]
pub struct Odd {
    pub name: String,
    pub of: Type,
    /// How many times as long it takes as the middle machine of its type.
    pub times: f64,
    /// Configurations in which it differs that way, and all that were compared.
    pub differs: usize,
    pub compared: usize,
}

/// Machines side by side; the quickest type first.
#[derive(Debug, Clone)]
pub struct Machines<'result> {
    pub groups: Vec<Group<'result>>,
    pub odd: Vec<Odd>,
    /// Configurations that all machines ran.
    pub configurations: usize,
}

/// Why machines cannot be laid side by side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMachines {
    #[error("{0}; their times have nothing in common")]
    Apart(String),
    #[error("no configuration was run on all of these machines: measure each with the same command")]
    NothingInCommon,
    #[error("all of these results are of one machine, {0}: name those of another beside them")]
    One(String),
}

/// Lays the machines that `results` were measured on side by side.
pub fn machines<'result>(results: &[&'result ResultFile]) -> Result<Machines<'result>, NoMachines> {
    if let Some(reason) = results.iter().find_map(|result| apart(results[0], result)) {
        return Err(NoMachines::Apart(reason));
    }
    let mut by_machine: BTreeMap<(Type, String), Vec<&ResultFile>> = BTreeMap::new();
    for (place, result) in results.iter().enumerate() {
        let name = result.machine.host.clone().unwrap_or_else(|| format!("number {}", place + 1));
        by_machine.entry((Type::of(&result.machine), name)).or_default().push(result);
    }
    if let ([(_, name)], 1) = (&by_machine.keys().collect::<Vec<_>>()[..], by_machine.len()) {
        return Err(NoMachines::One(name.clone()));
    }
    let levels: Vec<BTreeMap<String, f64>> = by_machine.values().map(|results| levels(results)).collect();
    let common: Vec<&String> =
        levels[0].keys().filter(|key| levels.iter().all(|levels| levels.contains_key(*key))).collect();
    if common.is_empty() {
        return Err(NoMachines::NothingInCommon);
    }
    let middles: Vec<f64> = common
        .iter()
        .filter_map(|key| median(&levels.iter().map(|levels| levels[*key]).collect::<Vec<f64>>()))
        .collect();
    let mut groups: BTreeMap<Type, Vec<Node>> = BTreeMap::new();
    for (((of, name), results), levels) in by_machine.into_iter().zip(&levels) {
        let above: Vec<f64> =
            common.iter().zip(&middles).map(|(key, middle)| levels[*key] / middle).collect();
        let times = median(&above).unwrap_or(1.0);
        groups.entry(of).or_default().push(Node { name, results, times });
    }
    let mut groups: Vec<Group> = groups
        .into_iter()
        .map(|(of, mut nodes)| {
            nodes.sort_by(|a, b| a.times.total_cmp(&b.times));
            let times = median(&nodes.iter().map(|node| node.times).collect::<Vec<f64>>()).unwrap_or(1.0);
            Group { of, nodes, times, against: Against::Itself }
        })
        .collect();
    groups.sort_by(|a, b| a.times.total_cmp(&b.times));
    judge(&mut groups);
    let odd = groups.iter().flat_map(odd).collect();
    Ok(Machines { groups, odd, configurations: common.len() })
}

/// The level of each configuration over all blocks of all results of a machine, by what it is but
/// for the CPUs' numbers, nanoseconds. The harness itself is none of the machine's.
fn levels(results: &[&ResultFile]) -> BTreeMap<String, f64> {
    let mut blocks: BTreeMap<String, Sample> = BTreeMap::new();
    for result in results {
        for variant in result.variants().iter().filter(|variant| !variant.is_harness()) {
            let sample = blocks.entry(key(variant.configuration)).or_default();
            let first = sample.len() as u32;
            sample.extend((first..).zip(variant.medians_ns(variant.headline())));
        }
    }
    let level = |sample: Sample| Levels::of_blocks(&[sample]).level(0);
    blocks.into_iter().filter_map(|(key, sample)| Some((key, level(sample)?))).collect()
}

/// A configuration by what it is on any machine.
pub(super) fn key(configuration: &Configuration) -> String {
    let mut any = Configuration { until: Until { count: None, time_ns: None }, ..configuration.clone() };
    any.placement.cpus = None;
    format!("{any:?}")
}

/// The trimmed mean of the machines of a type, in logarithms, its standard error and its degrees of
/// freedom; none of too few.
fn middle_of(group: &Group) -> Option<[f64; 3]> {
    let mut times: Vec<f64> = group.nodes.iter().map(|node| node.times.ln()).collect();
    times.sort_by(f64::total_cmp);
    let count = times.len();
    let kept = times.get(1..count.checked_sub(1)?).filter(|_| count >= FEWEST_PAIRS)?;
    let level = kept.iter().sum::<f64>() / kept.len() as f64;
    // Those that are left out count as the nearest that is not.
    let ends = [kept[0], kept[kept.len() - 1]];
    let mean = (kept.iter().sum::<f64>() + ends.iter().sum::<f64>()) / count as f64;
    let squares: f64 = kept.iter().chain(&ends).map(|time| (time - mean).powi(2)).sum();
    let freedom = kept.len() as f64 - 1.0;
    Some([level, (squares / (kept.len() as f64 * freedom)).sqrt(), freedom])
}

/// How much longer the machines of `group` take than those of `quickest`; none of too few.
fn against(quickest: &Group, group: &Group, error: f64) -> Option<Ratio> {
    let [[first, first_error, first_freedom], [second, second_error, second_freedom]] =
        [middle_of(quickest)?, middle_of(group)?];
    let t = |freedom: f64| student(1.0 - error / 2.0, freedom);
    let half = (t(first_freedom) * first_error).hypot(t(second_freedom) * second_error);
    Some(Apart { by: second - first, half }.ratio())
}

/// Every other type against the quickest.
fn judge(groups: &mut [Group]) {
    let [quickest, others @ ..] = groups else { return };
    let each = ERROR / others.len().max(1) as f64;
    for other in others {
        let compared = compared(quickest.middle(), other.middle());
        let count = |wanted| compared.rows.iter().filter(|row| row.standing == wanted).count();
        let middle = Against::Middle {
            slower: count(Standing::Slower),
            faster: count(Standing::Faster),
            of: compared.rows.len(),
        };
        other.against = against(quickest, other, each).map_or(middle, Against::Type);
        other.times /= quickest.times;
    }
    quickest.times = 1.0;
}

fn compared<'result>(baseline: &Node<'result>, candidate: &Node<'result>) -> Comparison<'result> {
    compare(baseline.results[0], candidate.results[0], RELEVANT)
}

fn odd<'a>(group: &'a Group<'a>) -> impl Iterator<Item = Odd> + 'a {
    let several = group.nodes.len() > 2;
    let middle = group.middle();
    group.nodes.iter().filter(move |node| several && node.name != middle.name).filter_map(move |node| {
        let compared = compared(middle, node);
        let times = node.times / middle.times;
        let way = if times > 1.0 { Standing::Slower } else { Standing::Faster };
        let differs = compared.rows.iter().filter(|row| row.standing == way).count();
        (2 * differs > compared.rows.len()).then(|| Odd {
            name: node.name.clone(),
            of: group.of.clone(),
            times,
            differs,
            compared: compared.rows.len(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    /// A survey of futex and pipe on `host` of `model`, `times` as long as usual.
    fn survey(host: &str, model: &str, times: f64, seed: u64) -> ResultFile {
        let mut random = fastrand::Rng::with_seed(seed);
        let configurations = [sample::configuration("futex"), sample::configuration("pipe")];
        let mut result = sample::result(&configurations, 10, |_, _| 16_000.0);
        for series in result.records.iter_mut().flat_map(|record| record.series.values_mut()) {
            let noise = 1.0 + 0.01 * (random.f64() - 0.5);
            series.p50_ns *= times * noise;
            series.p99_ns *= times * noise;
        }
        result.machine.host = Some(host.to_owned());
        result.machine.processor.model_name = Some(model.to_owned());
        result
    }

    fn laid(files: &[ResultFile]) -> Result<Machines<'_>, NoMachines> {
        machines(&files.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_type_is_judged_by_its_machines_and_the_odd_one_is_named() {
        let old = (0..7_u32)
            .map(|node| survey(&format!("old{node}"), "Old", 1.3 + 0.01 * f64::from(node), node.into()));
        let new = (0..7_u32).map(|node| {
            let times = if node == 3 { 1.6 } else { 1.0 + 0.01 * f64::from(node) };
            survey(&format!("new{node}"), "New", times, 100 + u64::from(node))
        });
        let files: Vec<ResultFile> = old.chain(new).collect();
        let laid = laid(&files).unwrap();
        let models: Vec<_> = laid.groups.iter().map(|group| group.of.processor.as_deref().unwrap()).collect();
        assert_eq!(models, ["New", "Old"]);
        let Against::Type(ratio) = &laid.groups[1].against else { panic!("{:?}", laid.groups[1]) };
        assert!(ratio.low < 1.3 && 1.3 < ratio.high, "{ratio:?}");
        assert!(
            (laid.groups[1].times - 1.3).abs() < 0.05 && laid.configurations == 2,
            "{}",
            laid.groups[1].times
        );
        let odd: Vec<&str> = laid.odd.iter().map(|odd| odd.name.as_str()).collect();
        assert!(odd.contains(&"new3"), "{odd:?}");
        assert!((laid.groups[0].apart() - 0.6).abs() < 0.05, "{}", laid.groups[0].apart());
    }

    #[test]
    fn of_one_machine_each_nothing_is_said_of_the_types() {
        let files = [survey("a", "A", 1.0, 1), survey("b", "B", 1.5, 2)];
        let laid = laid(&files).unwrap();
        assert!(
            matches!(laid.groups[1].against, Against::Middle { slower: 2, faster: 0, of: 2 }),
            "{:?}",
            laid.groups[1].against
        );
        assert!(laid.odd.is_empty());
    }

    #[test]
    fn a_machine_that_was_measured_often_counts_once() {
        let mut files: Vec<ResultFile> = (0..9).map(|seed| survey("a", "A", 1.0, seed)).collect();
        assert_eq!(laid(&files).unwrap_err(), NoMachines::One("a".to_owned()));
        files.push(survey("b", "A", 1.2, 99));
        let laid = laid(&files).unwrap();
        assert_eq!((laid.groups.len(), laid.groups[0].nodes.len()), (1, 2));
    }

    #[test]
    fn machines_that_ran_nothing_alike_are_not_laid_side_by_side() {
        let mut files = [survey("a", "A", 1.0, 1), survey("b", "B", 1.5, 2)];
        let other = |configuration: &mut Configuration| configuration.size = 64;
        files[1].plan.configurations.iter_mut().for_each(other);
        files[1].records.iter_mut().for_each(|record| other(&mut record.configuration));
        assert_eq!(laid(&files).unwrap_err(), NoMachines::NothingInCommon);
    }
}
