// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which nodes of a fleet fail, which are odd beside their kin, and
//! what those have in common that the others have not.
//!
//! Results are added one after another and forgotten, but for their verdict, figures and what marks
//! their machine: some hundred bytes and eight for each figure.
//!
//! ODD: a node's figures are those of its verdict, else the levels of its configurations. A figure
//! is odd if its logarithm lies further from the median of its kin than Student's quantile times
//! 1.4826 medians of the absolute deviations (1 / Φ⁻¹(3/4), which makes it the standard deviation
//! of normal noise; F. R. Hampel, JASA 69, 1974), at an error of 5 % for all nodes of a type
//! together, and by as much as matters. A node is odd if more than half of its figures are, all the
//! same way. Kin are machines of one `Type`; of fewer than six nothing is said.
//!
//! SHARED: what marks the nodes that fail or are slow more often than
//! the others, by Fisher's exact test, one-sided, at an error of 5 %
//! for all marks together. That is no cause: it is where to look first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::compare::RELEVANT;
use super::machines::{Type, key};
use super::statistics::{median, student};
use doorbell_results::machine::Machine;
use doorbell_results::plan::{FEWEST_BLOCKS, Plan};
use doorbell_results::record::ResultFile;
use doorbell_results::record::verdict::Status;
use statrs::function::factorial::ln_binomial;

/// Kin of whom fewer say nothing.
const FEWEST: usize = FEWEST_BLOCKS as usize;

/// How often one of all nodes of a type may be called odd, and one of
/// all marks be called shared, where there is nothing.
const ERROR: f64 = 0.05;

/// The longest name of a node, in bytes: that of a host has 64 at the most, a domain's 253.
const LONGEST_NAME: usize = 255;

/// 2020-01-01, nanoseconds since 1970. This program is younger: a
/// clock that has lost its battery begins again before.
const EARLIEST: u64 = 1_577_836_800_000_000_000;

/// Letters of a verdict's reason that are kept.
const LONGEST_REASON: usize = 300;

/// What the newest results of a node say: the worst of them, where it
/// was asked more than one thing.
#[derive(Debug, Clone)]
pub struct Node {
    /// As [`Runs::node`] has it.
    pub name: String,
    pub of: Rc<Type>,
    /// That of its verdict; open if it was interrupted, or was asked nothing where others were.
    pub status: Status,
    pub reason: String,
    /// When the run began that this is of.
    pub started_at_unix_ns: u64,
    finished_at_unix_ns: u64,
    /// Logarithms of figures in nanoseconds, by the number of what they are of.
    figures: Vec<(usize, f64)>,
    /// Numbers of what marks its machine.
    marks: Vec<usize>,
}

/// A node beside its kin; odd is one of which most figures differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// Its place among the nodes.
    pub node: usize,
    /// How many times as long it takes as the middle one of its type,
    /// by the median over its figures.
    pub times: f64,
    /// Figures that are odd that way, and all that it has.
    pub differs: usize,
    pub compared: usize,
}

/// A mark that nodes which fail or are slow have more often than others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// `kernel 6.12.9`, `microcode 0x2b000461`.
    pub mark: String,
    /// Those that have it, and all, of the nodes that fail or are slow.
    pub among: (usize, usize),
    /// The same of the others.
    pub others: (usize, usize),
}

#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// By name.
    pub nodes: Vec<Node>,
    /// How many times as long each node takes as the middle one of its type, by its place; of too
    /// few kin nothing is known.
    pub times: Vec<Option<f64>>,
    /// The slowest first.
    pub odd: Vec<Beside>,
    /// The surest first.
    pub shared: Vec<Shared>,
    /// Older results of nodes that have a newer one.
    pub older: usize,
    /// Nodes that were asked and gave no result, by name.
    pub silent: Vec<String>,
    /// Nodes that gave a result and were not asked, by name: they are not counted.
    pub strangers: Vec<String>,
}

/// Why a result stands for no node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the same run of {0} as a file before it")]
    Duplicate(String),
    #[error("it names neither its run nor its host, so nobody knows of which node it is: run it with --name")]
    Nameless,
    #[error("the name of its node has {0} bytes, of which there are {LONGEST_NAME} at the most")]
    LongName(usize),
    #[error(
        "it began {0} ns after 1970, {when}: the clock of {1} is wrong, and nobody knows which of \
         its results is the newest",
        when = if *.0 < EARLIEST { "before this program was written" } else { "which is yet to come" }
    )]
    WrongClock(u64, String),
}

/// The runs that were seen, by their node and when they began.
#[derive(Debug)]
pub struct Runs {
    seen: BTreeSet<(String, u64)>,
    latest: u64,
}

impl Runs {
    pub fn begun_by(latest: u64) -> Self {
        Self { seen: BTreeSet::new(), latest }
    }

    /// The name of the node that `result` is of: the run's, else the host's. Refuses a run that was
    /// seen before, and one whose node or time cannot be told.
    pub fn node(&mut self, result: &ResultFile) -> Result<String, Refused> {
        let given = |name: &&String| !name.trim().is_empty();
        let host = || result.machine.host.as_ref().filter(given);
        let name = result.name.as_ref().filter(given).or_else(host).ok_or(Refused::Nameless)?;
        if name.len() > LONGEST_NAME {
            return Err(Refused::LongName(name.len()));
        }
        if !(EARLIEST..=self.latest).contains(&result.started_at_unix_ns) {
            return Err(Refused::WrongClock(result.started_at_unix_ns, name.clone()));
        }
        let first = self.seen.insert((name.clone(), result.started_at_unix_ns));
        if first { Ok(name.clone()) } else { Err(Refused::Duplicate(name.clone())) }
    }
}

#[derive(Debug, Default)]
struct Named {
    /// The newest of each that was asked: the number of the whole question, and whether it was
    /// answered by a verdict, for a result without one takes no verdict's place.
    newest: BTreeMap<(usize, bool), Node>,
    /// The newest that failed, whatever came after it.
    failed: Option<Node>,
    /// When each began and ended, and on what it ran, whatever came after it: in whatever order
    /// results are read, the same is known.
    ran: BTreeSet<(u64, u64)>,
    on: BTreeSet<Rc<Type>>,
    /// Whether a run of it was given no name, so that this is its host's, which several may have.
    by_host: bool,
}

impl Named {
    fn add(&mut self, asked: (usize, bool), node: Node) {
        self.ran.insert((node.started_at_unix_ns, node.finished_at_unix_ns));
        self.on.insert(Rc::clone(&node.of));
        let newer = |other: Option<&Node>| {
            other.is_none_or(|other| other.started_at_unix_ns < node.started_at_unix_ns)
        };
        if node.status == Status::Failed && newer(self.failed.as_ref()) {
            self.failed = Some(node.clone());
        }
        if newer(self.newest.get(&asked)) {
            self.newest.insert(asked, node);
        }
    }

    /// Whether two machines have this name: their types differ, or
    /// one began before another had ended.
    fn are_two(&self) -> bool {
        let mut ended = None;
        let meet = self.ran.iter().any(|(began, end)| {
            let meets = ended.is_some_and(|ended| *began <= ended);
            ended = ended.max(Some(*end));
            meets
        });
        meet || self.on.len() > 1
    }

    /// Results that count for nothing, for there is a newer one.
    fn older(&self) -> usize {
        if self.are_two() { 0 } else { self.ran.len() - self.newest.len() }
    }

    /// What it comes to: the worst of what counts.
    fn judged(self) -> Option<Node> {
        let two = self.are_two();
        const BY_HOST: &str = "a later run did not fail, and both are known by their host's name, \
            which several may have: give each node one (--name), or leave out what is of before";
        let Self { newest, failed, by_host, .. } = self;
        let rank = |node: &Node| match node.status {
            Status::Failed => 3,
            Status::Inconclusive => 2,
            Status::Passed => 1,
            Status::Answered => 0,
        };
        let worst = newest.into_values().max_by_key(|node| (rank(node), node.started_at_unix_ns));
        if !two {
            let hidden = failed.filter(|_| by_host && worst.as_ref().is_some_and(|node| rank(node) < 3));
            return hidden
                .map(|node| Node { reason: format!("{}; {BY_HOST}", node.reason), ..node })
                .or(worst);
        }
        failed.or(worst).map(|mut node| {
            const TWO: &str = "two machines have this name, or one was changed: give each a name \
                of its own (--name), or leave out what is of before";
            if node.status == Status::Failed {
                node.reason = format!("{}; {TWO}", node.reason);
            } else {
                node.status = Status::Inconclusive;
                node.reason = TWO.to_owned();
            }
            node
        })
    }
}

#[derive(Debug)]
pub struct Fleet {
    nodes: BTreeMap<String, Named>,
    runs: Runs,
    types: BTreeSet<Rc<Type>>,
    figures: Numbered,
    marks: Numbered,
    questions: Numbered,
    asked: BTreeSet<String>,
}

/// Words and their numbers, in order of appearance.
#[derive(Debug, Default)]
struct Numbered {
    numbers: HashMap<String, usize>,
    words: Vec<String>,
}

impl Numbered {
    fn number(&mut self, word: String) -> usize {
        let Self { numbers, words } = self;
        *numbers.entry(word).or_insert_with_key(|word| {
            words.push(word.clone());
            words.len() - 1
        })
    }
}

impl Fleet {
    pub fn begun_by(latest: u64) -> Self {
        Self {
            nodes: BTreeMap::new(),
            runs: Runs::begun_by(latest),
            types: BTreeSet::new(),
            figures: Numbered::default(),
            marks: Numbered::default(),
            questions: Numbered::default(),
            asked: BTreeSet::new(),
        }
    }

    /// Says which nodes were asked: those of which no result is added
    /// are silent, and others are not counted.
    pub fn ask(&mut self, names: impl IntoIterator<Item = String>) {
        self.asked.extend(names);
    }

    /// Takes what `result` says of its node; of each thing that a
    /// node was asked the newest result counts.
    pub fn add(&mut self, result: &ResultFile) -> Result<(), Refused> {
        let name = self.runs.node(result)?;
        let (status, reason) = match &result.verdict {
            _ if result.partial => (Status::Inconclusive, "it was interrupted".to_owned()),
            Some(verdict) => (verdict.status, verdict.reason.chars().take(LONGEST_REASON).collect()),
            None => (Status::Answered, String::new()),
        };
        let of = Rc::new(Type::of(&result.machine));
        let of = self.types.get(&of).cloned().unwrap_or(of);
        self.types.insert(Rc::clone(&of));
        let figures =
            figures(result).into_iter().map(|(of, ns)| (self.figures.number(of), ns.ln())).collect();
        let marks = marks(&result.machine).into_iter().map(|mark| self.marks.number(mark)).collect();
        let &ResultFile { started_at_unix_ns, finished_at_unix_ns, .. } = result;
        let node = Node {
            name: name.clone(),
            of,
            status,
            reason,
            started_at_unix_ns,
            finished_at_unix_ns,
            figures,
            marks,
        };
        let question = self.questions.number(question(&result.plan));
        let named = self.nodes.entry(name).or_default();
        named.by_host |= result.name.as_ref().is_none_or(|name| name.trim().is_empty());
        named.add((question, result.verdict.is_some()), node);
        Ok(())
    }

    /// What follows of all.
    pub fn judge(mut self) -> Judged {
        let silent = self.asked.iter().filter(|name| !self.nodes.contains_key(*name)).cloned().collect();
        let stranger = |name: &String| !self.asked.is_empty() && !self.asked.contains(name);
        let strangers: Vec<String> = self.nodes.keys().filter(|name| stranger(name)).cloned().collect();
        self.nodes.retain(|name, _| !stranger(name));
        let older = self.nodes.values().map(Named::older).sum();
        let mut nodes: Vec<Node> = self.nodes.into_values().filter_map(Named::judged).collect();
        if nodes.iter().any(|node| matches!(node.status, Status::Passed | Status::Failed)) {
            for node in nodes.iter_mut().filter(|node| node.status == Status::Answered) {
                node.status = Status::Inconclusive;
                node.reason = "it gave no verdict, as others did".to_owned();
            }
        }
        let mut kin: BTreeMap<&Type, Vec<usize>> = BTreeMap::new();
        for (place, node) in nodes.iter().enumerate() {
            kin.entry(&node.of).or_default().push(place);
        }
        let beside: Vec<Beside> = kin.values().flat_map(|kin| beside(&nodes, kin)).collect();
        let mut times = vec![None; nodes.len()];
        for one in &beside {
            times[one.node] = Some(one.times);
        }
        let mut odd: Vec<Beside> = beside.into_iter().filter(|one| 2 * one.differs > one.compared).collect();
        odd.sort_by(|a, b| b.times.total_cmp(&a.times));
        let slow = odd.iter().filter(|odd| odd.times > 1.0).map(|odd| odd.node);
        let failed = (0..nodes.len()).filter(|place| nodes[*place].status == Status::Failed);
        let shared = shared(&nodes, &slow.chain(failed).collect(), &self.marks.words);
        Judged { times, odd, shared, older, silent, strangers, nodes }
    }
}

/// What was asked, with its limits, and of what: a gate of 10 s answers no gate of 50 µs. Nothing
/// where nothing was asked.
fn question(plan: &Plan) -> String {
    let Some(asked) = &plan.question else { return String::new() };
    let of: BTreeSet<String> = plan.configurations.iter().map(key).collect();
    of.into_iter().fold(format!("{asked:?}"), |all, one| all + "\n" + &one)
}

/// What was looked at and how long it took, nanoseconds.
fn figures(result: &ResultFile) -> Vec<(String, f64)> {
    let findings = result.verdict.iter().flat_map(|verdict| &verdict.findings);
    let judged: Vec<(String, f64)> = findings
        .filter(|finding| finding.unit == "ns")
        .filter_map(|finding| {
            let ns = finding.value.filter(|ns| *ns > 0.0)?;
            Some((format!("{} {}", finding.configuration, finding.figure), ns))
        })
        .collect();
    if !judged.is_empty() {
        return judged;
    }
    let variants = result.variants();
    let measured = variants.iter().filter(|variant| !variant.is_harness());
    let level = |medians: Vec<f64>| median(&medians).filter(|ns| *ns > 0.0);
    measured
        .filter_map(|variant| {
            Some((key(variant.configuration), level(variant.medians_ns(variant.headline()))?))
        })
        .collect()
}

/// What tells machines of one type apart, in words. The one list to extend.
fn marks(machine: &Machine) -> Vec<String> {
    let Machine { kernel, processor, power, virtualisation, .. } = machine;
    let on = |is: Option<bool>| is.map(|is| if is { "on" } else { "off" }.to_owned());
    let mut marks: Vec<String> = [
        ("kernel", kernel.release.clone()),
        ("kernel build", kernel.version.clone()),
        ("preemption", kernel.preemption.clone()),
        ("clock source", kernel.clock_source.clone()),
        ("autogroup", on(kernel.autogroup)),
        ("NUMA balancing", on(kernel.numa_balancing)),
        ("huge pages", kernel.transparent_huge_pages.clone()),
        ("processor", processor.model_name.clone()),
        ("stepping", processor.model.clone()),
        ("microcode", processor.microcode.clone()),
        ("firmware", virtualisation.firmware.clone()),
        ("product", virtualisation.product.clone()),
        ("hypervisor", virtualisation.hypervisor.clone()),
        ("container", virtualisation.container.clone()),
        ("frequency driver", power.frequency_driver.clone()),
        ("turbo", on(power.turbo)),
        ("idle driver", power.idle_driver.clone()),
        ("idle governor", power.idle_governor.clone()),
        ("CPUs", Some(machine.topology.online.len().to_string())),
    ]
    .into_iter()
    .filter_map(|(what, value)| Some(format!("{what} {}", value?)))
    .collect();
    marks.extend(power.governors.keys().map(|governor| format!("governor {governor}")));
    let words = kernel.command_line.iter().flat_map(|line| line.split_whitespace());
    marks.extend(words.map(|word| format!("kernel parameter {word}")));
    marks.extend(processor.mitigations.iter().map(|(of, what)| format!("mitigation {of}: {what}")));
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// Each of `kin`, places in `nodes`, held against all of them.
fn beside(nodes: &[Node], kin: &[usize]) -> Vec<Beside> {
    if kin.len() < FEWEST {
        return Vec::new();
    }
    let mut by_figure: HashMap<usize, Vec<f64>> = HashMap::new();
    for (figure, value) in kin.iter().flat_map(|place| &nodes[*place].figures) {
        by_figure.entry(*figure).or_default().push(*value);
    }
    // The middle of each figure, and how far from it is odd.
    let bounds: HashMap<usize, (f64, f64)> = by_figure
        .into_iter()
        .filter(|(_, values)| values.len() >= FEWEST)
        .filter_map(|(figure, values)| {
            let middle = median(&values)?;
            let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
            let count = values.len() as f64;
            let reach = student(1.0 - ERROR / 2.0 / count, count - 1.0);
            Some((figure, (middle, (reach * 1.4826 * median(&deviations)?).max(RELEVANT.ln_1p()))))
        })
        .collect();
    kin.iter()
        .filter_map(|place| {
            let known = nodes[*place].figures.iter().filter_map(|(figure, value)| {
                let (middle, far) = bounds.get(figure)?;
                Some((value - middle, *far))
            });
            let above: Vec<(f64, f64)> = known.collect();
            let middle = median(&above.iter().map(|(above, _)| *above).collect::<Vec<f64>>())?;
            let way = middle.signum();
            let differs = above.iter().filter(|(above, far)| above * way > *far).count();
            Some(Beside { node: *place, times: middle.exp(), differs, compared: above.len() })
        })
        .collect()
}

/// What marks `among`, places in `nodes`, more often than the others.
fn shared(nodes: &[Node], among: &BTreeSet<usize>, words: &[String]) -> Vec<Shared> {
    let mut counts = vec![[0_usize; 2]; words.len()];
    for (place, node) in nodes.iter().enumerate() {
        for mark in &node.marks {
            counts[*mark][usize::from(!among.contains(&place))] += 1;
        }
    }
    let (few, rest) = (among.len(), nodes.len() - among.len());
    // What all have, or none but one, tells nothing.
    let telling: Vec<(usize, [usize; 2])> = counts
        .into_iter()
        .enumerate()
        .filter(|(_, [with, others])| *with > 1 && with + others < nodes.len())
        .collect();
    let mut shared: Vec<(f64, Shared)> = telling
        .iter()
        .map(|(mark, [with, others])| {
            let found = Shared { mark: words[*mark].clone(), among: (*with, few), others: (*others, rest) };
            (at_least(*with, few, with + others, nodes.len()), found)
        })
        .filter(|(chance, _)| chance * (telling.len() as f64) < ERROR)
        .collect();
    shared.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.mark.cmp(&b.1.mark)));
    shared.into_iter().map(|(_, shared)| shared).collect()
}

/// The chance that of `drawn` out of `all`, of which `marked` have a mark, `with` or more have it:
/// the tail of the hypergeometric distribution.
fn at_least(with: usize, drawn: usize, marked: usize, all: usize) -> f64 {
    let choose = |n: usize, k: usize| if k > n { f64::NEG_INFINITY } else { ln_binomial(n as u64, k as u64) };
    let chance = |k: usize| (choose(marked, k) + choose(all - marked, drawn - k) - choose(all, drawn)).exp();
    (with..=drawn.min(marked)).map(chance).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::question::{Gate, Question, Which};
    use doorbell_results::record::sample;
    use doorbell_results::record::verdict::{Finding, Verdict};
    use std::sync::LazyLock;

    /// A gate's result of four CPUs on `host`, whose wake-ups take `times` as long as usual.
    fn gated(host: &str, times: f64, random: &mut fastrand::Rng) -> ResultFile {
        static MEASURED: LazyLock<ResultFile> =
            LazyLock::new(|| sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0));
        let mut result = MEASURED.clone();
        result.machine.host = Some(host.to_owned());
        result.name = Some(host.to_owned());
        let mut noise = || 1.0 + 0.1 * ((0..6).map(|_| random.f64()).sum::<f64>() - 3.0);
        let node = noise();
        let findings = (0..4).map(|cpu| {
            let ns = 20_000.0 * times * node * (1.0 + 0.2 * (noise() - 1.0));
            Finding::new(format!("CPU {cpu}"), "p99.9", Status::Passed, "ns").valued(ns, None)
        });
        result.verdict = Some(Verdict {
            status: Status::Passed,
            reason: String::new(),
            provisional: false,
            findings: findings.collect(),
        });
        result
    }

    fn judged(results: &[ResultFile]) -> Judged {
        let mut fleet = Fleet::begun_by(u64::MAX);
        results.iter().for_each(|result| fleet.add(result).unwrap());
        fleet.judge()
    }

    /// The same node, an hour later.
    fn later(result: &ResultFile) -> ResultFile {
        let mut later = result.clone();
        later.started_at_unix_ns += 3_600_000_000_000;
        later.finished_at_unix_ns += 3_600_000_000_000;
        later
    }

    #[test]
    fn what_failing_nodes_share_is_found_among_all_that_marks_them() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut results: Vec<ResultFile> =
            (0..60).map(|node| gated(&format!("n{node:02}"), 1.0, &mut random)).collect();
        for (node, result) in results.iter_mut().enumerate() {
            let old = node % 12 == 5 || node == 7;
            let revision = if old { "0x21" } else { "0x37" };
            result.machine.processor.microcode = Some(revision.to_owned());
            result.machine.kernel.release = Some(format!("6.12.{}", node % 7));
            if node % 12 == 5 {
                result.verdict.as_mut().unwrap().status = Status::Failed;
            }
        }
        let judged = judged(&results);
        assert_eq!(judged.nodes.iter().filter(|node| node.status == Status::Failed).count(), 5);
        let expected = Shared { mark: "microcode 0x21".to_owned(), among: (5, 5), others: (1, 55) };
        assert_eq!(judged.shared, [expected]);
        assert_eq!(judged.odd, []);
    }

    #[test]
    fn a_slow_node_is_odd_beside_its_kin_and_a_node_of_another_type_is_not() {
        let mut random = fastrand::Rng::with_seed(2);
        let times = |node: usize| match node {
            17 => 2.0,
            100.. => 3.0,
            _ => 1.0,
        };
        let mut results: Vec<ResultFile> =
            (0..110).map(|node| gated(&format!("n{node:03}"), times(node), &mut random)).collect();
        for result in &mut results[100..] {
            result.machine.processor.model_name = Some("Another".to_owned());
        }
        let judged = judged(&results);
        let names: Vec<&str> = judged.odd.iter().map(|odd| judged.nodes[odd.node].name.as_str()).collect();
        assert_eq!(names, ["n017"]);
        assert!((judged.odd[0].times / 2.0 - 1.0).abs() < 0.3, "{:?}", judged.odd);
        assert_eq!((judged.odd[0].differs, judged.odd[0].compared), (4, 4));
    }

    #[test]
    fn of_fleets_of_equal_nodes_few_have_one_that_is_called_odd() {
        let mut random = fastrand::Rng::with_seed(3);
        let called = (0..40).filter(|_| {
            let results: Vec<ResultFile> =
                (0..50).map(|node| gated(&format!("n{node}"), 1.0, &mut random)).collect();
            !judged(&results).odd.is_empty()
        });
        let called = called.count();
        assert!(called <= 4, "{called} of 40");
    }

    #[test]
    fn of_fewer_than_six_of_a_type_nothing_is_said() {
        let mut random = fastrand::Rng::with_seed(4);
        let results: Vec<ResultFile> = (0..5)
            .map(|node| gated(&format!("n{node}"), if node == 0 { 9.0 } else { 1.0 }, &mut random))
            .collect();
        assert_eq!(judged(&results).odd, []);
    }

    #[test]
    fn the_newest_result_of_a_node_counts_and_the_same_run_is_not_taken_twice() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut older = gated("a", 1.0, &mut random);
        let newer = later(&older);
        older.verdict.as_mut().unwrap().status = Status::Failed;
        for order in [[&newer, &older], [&older, &newer]] {
            let mut fleet = Fleet::begun_by(u64::MAX);
            order.iter().for_each(|result| fleet.add(result).unwrap());
            assert_eq!(fleet.add(&older), Err(Refused::Duplicate("a".to_owned())));
            let judged = fleet.judge();
            assert_eq!((judged.nodes.len(), judged.older), (1, 1));
            assert_eq!(judged.nodes[0].status, Status::Passed);
        }
    }

    /// "PASS 2 nodes" of a node whose gate had failed, for a newer
    /// result of it had been asked nothing.
    #[test]
    fn a_result_without_a_verdict_takes_no_verdicts_place() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut failed = gated("a", 1.0, &mut random);
        failed.verdict.as_mut().unwrap().status = Status::Failed;
        let mut asked_nothing = later(&failed);
        asked_nothing.verdict = None;
        let passed = gated("b", 1.0, &mut random);
        let both = judged(&[failed, asked_nothing.clone(), passed.clone()]);
        let statuses: Vec<Status> = both.nodes.iter().map(|node| node.status).collect();
        assert_eq!(statuses, [Status::Failed, Status::Passed]);
        let alone = judged(&[asked_nothing.clone(), passed]);
        assert_eq!(alone.nodes[0].status, Status::Inconclusive, "others gave a verdict");
        assert_eq!(judged(&[asked_nothing]).nodes[0].status, Status::Answered, "nobody did");
    }

    /// "PASS 1 node" of two clones of one image, the first of which had failed.
    #[test]
    fn two_machines_of_one_name_do_not_hide_each_other() {
        let mut random = fastrand::Rng::with_seed(8);
        let first = gated("localhost", 1.0, &mut random);
        let mut at_once = first.clone();
        at_once.started_at_unix_ns += 1;
        let mut of_another_type = later(&first);
        of_another_type.machine.processor.model_name = Some("Another".to_owned());
        for second in [at_once, of_another_type] {
            assert_eq!(judged(&[first.clone(), second.clone()]).nodes[0].status, Status::Inconclusive);
            let mut failed = first.clone();
            failed.verdict.as_mut().unwrap().status = Status::Failed;
            assert_eq!(judged(&[failed, second]).nodes[0].status, Status::Failed);
        }
        let again = later(&first);
        assert_eq!(judged(&[first, again]).nodes[0].status, Status::Passed);
    }

    /// Of two clones that ran at the same time one was forgotten if a newer result came between:
    /// "PASS" or "FAIL" by the order of files.
    #[test]
    fn the_order_in_which_results_are_read_changes_nothing() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut failed = gated("a", 1.0, &mut random);
        failed.verdict.as_mut().unwrap().status = Status::Failed;
        failed.finished_at_unix_ns = failed.started_at_unix_ns + 100;
        let mut clone = gated("a", 1.0, &mut random);
        (clone.started_at_unix_ns, clone.finished_at_unix_ns) =
            (failed.started_at_unix_ns + 50, failed.started_at_unix_ns + 60);
        let newest = later(&clone);
        let orders = [[&failed, &newest, &clone], [&newest, &clone, &failed], [&clone, &failed, &newest]];
        for order in orders {
            let judged = judged(&order.map(ResultFile::clone));
            assert_eq!((judged.nodes[0].status, judged.older), (Status::Failed, 0));
            assert!(judged.nodes[0].reason.contains("two machines"), "{}", judged.nodes[0].reason);
        }
    }

    /// Two nodes that were given no names were called `localhost`,
    /// and the later one hid that the other had failed.
    #[test]
    fn a_run_of_a_host_hides_no_failure_of_another_that_may_have_its_name() {
        let mut random = fastrand::Rng::with_seed(13);
        let mut failed = gated("a", 1.0, &mut random);
        let passed = later(&failed);
        failed.verdict.as_mut().unwrap().status = Status::Failed;
        let mut both = [failed, passed];
        let named = judged(&both);
        assert_eq!((named.nodes[0].status, named.older), (Status::Passed, 1), "the same, for it was named");
        for result in &mut both {
            result.name = None;
        }
        let by_host = judged(&both);
        assert_eq!(by_host.nodes[0].status, Status::Failed);
        assert!(by_host.nodes[0].reason.contains("--name"), "{}", by_host.nodes[0].reason);
    }

    /// "PASS 1 node" of one whose gate of 50 µs had failed, for it passed one of 10 s.
    #[test]
    fn a_gate_answers_no_gate_with_another_limit() {
        let mut random = fastrand::Rng::with_seed(12);
        let asked = |result: &mut ResultFile, limit_ns, quantile| {
            let gate = Gate { limit_ns, which: Which::Quantile(quantile), confidence: 0.95 };
            result.plan.question = Some(Question::Gate(gate));
        };
        let mut failed = gated("a", 1.0, &mut random);
        asked(&mut failed, 50_000, 0.999);
        let mut lax = later(&failed);
        asked(&mut lax, 10_000_000_000, 0.999);
        let again = later(&later(&failed));
        failed.verdict.as_mut().unwrap().status = Status::Failed;
        let both = judged(&[failed.clone(), lax.clone()]);
        assert_eq!((both.nodes[0].status, both.older), (Status::Failed, 0));
        let passed = judged(&[failed, lax, again]);
        assert_eq!((passed.nodes[0].status, passed.older), (Status::Passed, 1));
    }

    /// Each had stood for a node: "unnamed" had been one, and a clock
    /// in the year 2554 outvoted all later results.
    #[test]
    fn a_result_whose_node_or_time_cannot_be_told_is_refused() {
        let mut result = gated("a", 1.0, &mut fastrand::Rng::with_seed(9));
        result.name = None;
        let began = result.started_at_unix_ns;
        let refused = |change: fn(&mut ResultFile)| {
            let mut result = result.clone();
            change(&mut result);
            Fleet::begun_by(began).add(&result)
        };
        assert_eq!(refused(|_| ()), Ok(()));
        assert_eq!(refused(|it| it.machine.host = None), Err(Refused::Nameless));
        assert_eq!(refused(|it| it.name = Some(" ".to_owned())), Ok(()), "the host has a name");
        assert_eq!(refused(|it| it.name = Some("x".repeat(256))), Err(Refused::LongName(256)));
        let wrong = |ns| Err(Refused::WrongClock(ns, "a".to_owned()));
        assert_eq!(refused(|it| it.started_at_unix_ns = u64::MAX), wrong(u64::MAX));
        assert_eq!(refused(|it| it.started_at_unix_ns = 0), wrong(0));
    }

    /// "PASS 2 nodes" where one was asked.
    #[test]
    fn who_was_not_asked_is_named_and_not_counted() {
        let mut random = fastrand::Rng::with_seed(10);
        let mut fleet = Fleet::begun_by(u64::MAX);
        fleet.ask(["a".to_owned()]);
        for host in ["a", "b"] {
            fleet.add(&gated(host, 1.0, &mut random)).unwrap();
        }
        let judged = fleet.judge();
        assert_eq!((judged.nodes.len(), judged.strangers), (1, vec!["b".to_owned()]));
    }

    #[test]
    fn an_interrupted_run_leaves_its_node_open() {
        let mut result = gated("a", 1.0, &mut fastrand::Rng::with_seed(6));
        result.partial = true;
        assert_eq!(judged(&[result]).nodes[0].status, Status::Inconclusive);
    }

    #[test]
    fn the_exact_test_has_the_chances_of_a_known_table() {
        // The lady tasting tea: all four of eight cups told right, 1 of 70; three or more, 17 of 70.
        assert!((at_least(4, 4, 4, 8) - 1.0 / 70.0).abs() < 1e-12);
        assert!((at_least(3, 4, 4, 8) - 17.0 / 70.0).abs() < 1e-12);
    }
}
