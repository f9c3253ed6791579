// SPDX-License-Identifier: MIT OR Apache-2.0
//! The median of each trial, one line of marks per variant: how far a figure repeats, and whether
//! an unpinned run is really two populations.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{Shape, fill};
use super::scale::Log;
use super::svg::{Picture, cut, label_as, line};
use crate::unit::time;
use doorbell_results::record::{Record, SideCounters};

/// Height of one variant's line.
const ROW: f64 = 22.0;

/// One variant and the medians of its trials.
#[derive(Debug)]
pub struct TrialsCurve<'curves> {
    pub look: Curve<'curves>,
    /// Each trial: its block, its median in picoseconds, where its sides ran.
    pub trials: Vec<(u32, f64, SeenOn)>,
}

/// Where the sides of a trial were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenOn {
    /// All on one CPU, at the start and at the end.
    OneCpu,
    /// Each on one CPU of its own.
    OwnCpus,
    Moved,
    /// The record does not tell.
    Unknown,
}

impl SeenOn {
    /// What the counters of a trial's sides say.
    pub fn of(record: &Record) -> Self {
        if record.sides.len() < 2 || record.sides.iter().any(|side| side.cpus.is_empty()) {
            return Self::Unknown;
        }
        let stayed = |side: &SideCounters| {
            side.cpus.iter().all(|cpu| *cpu == side.cpus[0]) && side.migrations.unwrap_or(0) == 0
        };
        if !record.sides.iter().all(stayed) {
            Self::Moved
        } else if record.sides.iter().all(|side| side.cpus[0] == record.sides[0].cpus[0]) {
            Self::OneCpu
        } else {
            Self::OwnCpus
        }
    }

    const fn shape(self) -> Shape {
        match self {
            Self::OneCpu => Shape::Square,
            Self::OwnCpus => Shape::Circle,
            Self::Moved => Shape::Triangle,
            Self::Unknown => Shape::Cross,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::OneCpu => "both sides on one CPU",
            Self::OwnCpus => "each side on a CPU of its own",
            Self::Moved => "a side moved",
            Self::Unknown => "CPUs not recorded",
        }
    }
}

pub fn draw(lines: &[TrialsCurve], quantity: &str) -> Picture {
    let frame = Frame::of_rows(200.0, 36.0, lines.len() as f64 * ROW + 4.0);
    let x = Log::over(
        lines.iter().flat_map(|line| line.trials.iter().map(|trial| trial.1)),
        frame.left,
        frame.right,
    );
    let trials: usize = lines.iter().map(|line| line.trials.len()).sum();
    let mut picture = frame.picture(format!("Median {quantity} of each of {trials} trials"));
    frame.horizontal(
        &mut picture,
        &x.time_ticks(),
        &format!("median {quantity} of a trial (time, logarithmic)"),
    );
    let mut key = 14.0;
    for sides in [SeenOn::OneCpu, SeenOn::OwnCpus, SeenOn::Moved, SeenOn::Unknown] {
        if lines.iter().any(|line| line.trials.iter().any(|trial| trial.2 == sides)) {
            picture.push(sides.shape().at(key, 14.0).with("class", "area harness"));
            picture.push(label_as("note", key + 9.0, 18.0, sides.words()));
            key += 30.0 + sides.words().len() as f64 * 6.2;
        }
    }
    for (index, own) in lines.iter().enumerate() {
        let y = frame.top + (index as f64 + 0.7) * ROW;
        picture.push(line("grid faint", frame.left, y, frame.right, y));
        let mut variant = group(&own.look).child(
            label_as("end", frame.left - 12.0, y + 4.0, &cut(&own.look.name, frame.left - 20.0))
                .titled(&own.look.name),
        );
        for &(block, ps, sides) in &own.trials {
            let title = format!("block {block}: median {}, {}", time(ps), sides.words());
            variant.push(sides.shape().at(x.at(ps), y).with("class", &fill(&own.look)).titled(&title));
        }
        picture.push(variant);
    }
    picture
}
