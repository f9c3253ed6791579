// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sequence chart: who did what to whom, in order. Pure data; nothing here draws.

/// Those of two user vectors whose bits are set.
pub(super) const fn vectors(bits: u8) -> &'static str {
    match bits {
        0 => "nothing",
        1 => "v0",
        2 => "v1",
        _ => "v0 and v1",
    }
}

/// One step of an interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of the lane that acts.
    pub from: usize,
    /// Index of the lane that is acted upon, if it is another.
    pub to: Option<usize>,
    /// What happens, in a few words.
    pub text: String,
    /// Not a step of the protocol but something done to it:
    /// preemption, migration, a signal, a time-out.
    pub interference: bool,
    /// Name of the invariant that holds before this step and not after it.
    pub breaks: Option<&'static str>,
}

impl Step {
    /// A step of one lane by itself.
    pub fn local(from: usize, text: impl Into<String>) -> Self {
        Self { from, to: None, text: text.into(), interference: false, breaks: None }
    }

    /// A step of one lane that another lane feels.
    pub fn towards(from: usize, to: usize, text: impl Into<String>) -> Self {
        Self { to: (to != from).then_some(to), ..Self::local(from, text) }
    }
}

/// Lanes and the steps between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// What the chart shows.
    pub title: String,
    /// Lane names, from left to right.
    pub lanes: Vec<String>,
    /// Steps, from top to bottom. Every lane index is below `lanes.len()`.
    pub steps: Vec<Step>,
    /// What went wrong after the last step.
    pub end: String,
}

impl Chart {
    /// The same chart without the lanes that no step touches.
    #[must_use]
    pub fn without_idle_lanes(self) -> Self {
        let used = |lane: usize| self.steps.iter().any(|s| s.from == lane || s.to == Some(lane));
        let kept: Vec<usize> = (0..self.lanes.len()).filter(|&lane| used(lane)).collect();
        let place = |lane: usize| kept.iter().position(|&k| k == lane).expect("every lane of a step is kept");
        let steps = self.steps.iter().map(|step| Step {
            from: place(step.from),
            to: step.to.map(place),
            ..step.clone()
        });
        Self {
            lanes: kept.iter().map(|&lane| self.lanes[lane].clone()).collect(),
            steps: steps.collect(),
            title: self.title,
            end: self.end,
        }
    }
}
