// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections: what a plan says that its result is told in, beside what stands around every result.
//!
//! A section is a type of the trait [`Section`]. Adding one is adding
//! a file and one line in `sections.rs`.

use super::figures::Figures;
use super::sentence::Sentence;
use super::style::Style;
use super::subsection::{self, Subsection};
use doorbell_results::record::ResultFile;

/// A way to tell a result, or a part of it.
pub trait Section: Sync {
    /// The name by which plans ask for it.
    fn name(&self) -> &'static str;

    /// What it tells on a terminal and on a page alike.
    fn subsections(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let _ = (result, figures);
        Vec::new()
    }

    /// The same on a terminal, where that is told in another way than on a page.
    fn details(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        self.subsections(result, figures)
    }

    /// Its details as text.
    fn text(&self, result: &ResultFile, figures: &Figures, style: &Style) -> String {
        subsection::text(&self.details(result, figures), style)
    }

    /// What it says in the first lines: the answer, and the few figures behind it.
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection>;

    /// The same in sentences alone, for a card or another program.
    fn sentences(&self, result: &ResultFile, figures: &Figures) -> Vec<Sentence> {
        leads(self.answer(result, figures))
    }

    /// Whether it tells the figure called `name`; every other figure beside the series is told by
    /// its name in tables of their own.
    fn tells(&self, name: &str) -> bool {
        let _ = name;
        false
    }
}

/// The sentences of `subsections`; what may be open is the first of each.
pub fn leads(subsections: Vec<Subsection>) -> Vec<Sentence> {
    let said = |told: Subsection| {
        let open = told.open;
        told.lead
            .into_iter()
            .enumerate()
            .map(move |(place, text)| Sentence { text, open: open && place == 0 })
    };
    subsections.into_iter().flat_map(said).collect()
}
