// SPDX-License-Identifier: MIT OR Apache-2.0
//! One row per mechanism with a line for each placement: what a
//! mechanism costs, and what the place costs it.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::{mark, stroke};
use super::scale::Log;
use super::svg::{LETTER, Picture, cut, label, label_as, line};
use crate::unit::{count, time};

/// Distance of two placements of one mechanism.
const STEP: f64 = 11.0;

const BETWEEN: f64 = 9.0;

/// Width of the column with the medians of one placement.
const COLUMN: f64 = 74.0;

/// Placements that have such a column; of more there is room for the lines alone.
const COLUMNS: usize = 4;

#[derive(Debug)]
pub struct PlacementsRow<'curves> {
    pub name: String,
    /// Its samples at each placement, by the placement's place in the
    /// legend; none where it was not run there.
    pub places: Vec<Option<Curve<'curves>>>,
}

impl PlacementsRow<'_> {
    fn height(&self) -> f64 {
        self.places.iter().flatten().count() as f64 * STEP + BETWEEN
    }
}

/// Of `rows` as many as a card has room for; the others are cut off.
pub fn fits(rows: &[PlacementsRow]) -> usize {
    let mut used = 0.0;
    rows.iter().take_while(|row| (used += row.height(), used <= ROOM).1).count()
}

/// How high the rows of a card are together.
const ROOM: f64 = 420.0;

/// Draws it; `quantity` names what was timed, `places` the placements, `title` stands above where a
/// page has none. Where `of` mechanisms are more than there are rows, it says so.
pub fn draw(
    rows: &[PlacementsRow],
    places: &[String],
    quantity: &str,
    title: Option<&str>,
    of: usize,
) -> Picture {
    let (width, left) = (960.0, 190.0);
    let columns = if places.len() > COLUMNS { 0 } else { places.len() };
    let right = width - 22.0 - columns as f64 * COLUMN;
    let head = if title.is_some() { 40.0 } else { 10.0 };
    let top = head + 30.0;
    let bottom = top + rows.iter().map(PlacementsRow::height).sum::<f64>() + 4.0;
    let curves = || rows.iter().flat_map(|row| row.places.iter().flatten());
    let ends = curves().flat_map(|curve| [curve.series.quantile(0.5), curve.series.quantile(0.999)]);
    let x = Log::over(ends.map(|ps| ps as f64), left, right);
    let sentence = format!("{quantity} of {} mechanisms at {} placements", rows.len(), places.len());
    let mut picture = Picture::new(width, bottom + 66.0, sentence);
    if let Some(title) = title {
        picture.push(label_as("title", 12.0, 26.0, &cut(title, width * 0.78)));
    }
    let frame = Frame { width, height: bottom + 66.0, left, right, top: top - 4.0, bottom };
    frame.horizontal(&mut picture, &x.time_ticks(), &format!("{quantity} (time, logarithmic)"));
    let middle = (left + right) / 2.0;
    let part = match rows.len() < of {
        true => format!("the quickest {} of {of} mechanisms · ", rows.len()),
        false => String::new(),
    };
    let note = format!(
        "{part}mark: median · thick line: to the 99th percentile · thin line: to the 99.9th · {} samples",
        count(curves().fold(0, |sum, curve| sum.saturating_add(curve.series.count)))
    );
    picture.push(label_as("note middle", middle, bottom + 56.0, &note));
    legend(&mut picture, rows, places, left, head + 12.0);
    for (index, place) in places.iter().take(columns).enumerate() {
        let at = right + 8.0 + (index + 1) as f64 * COLUMN;
        picture.push(label_as("note end", at, head, "p50"));
        picture.push(label_as("note end", at, head + 14.0, &cut(place, COLUMN - 4.0)).titled(place));
    }
    let mut y = top;
    for row in rows {
        let center = y + row.height() / 2.0;
        picture.push(line("grid faint", 12.0, y, width - 12.0, y));
        picture
            .push(label_as("end", left - 14.0, center + 4.0, &cut(&row.name, left - 26.0)).titled(&row.name));
        let mut down = y + BETWEEN / 2.0 + STEP / 2.0;
        for (place, curve) in row.places.iter().enumerate() {
            let Some(curve) = curve else { continue };
            picture.push(range(curve, &places[place], &x, down));
            if place < columns {
                let at = right + 8.0 + (place + 1) as f64 * COLUMN;
                let median = time(curve.series.quantile(0.5) as f64);
                picture.push(label_as("tick end", at, center + 4.0, &median));
            }
            down += STEP;
        }
        y += row.height();
    }
    picture
}

fn legend(picture: &mut Picture, rows: &[PlacementsRow], places: &[String], left: f64, y: f64) {
    let mut across = left;
    for (index, place) in places.iter().enumerate() {
        let Some(curve) =
            rows.iter().find_map(|row| row.places.get(index)?.as_ref().filter(|curve| !curve.harness))
        else {
            continue;
        };
        picture.push(line(
            &format!("{} thick solid", stroke(curve)),
            across,
            y - 4.0,
            across + 26.0,
            y - 4.0,
        ));
        picture.push(mark(curve, across, y - 4.0));
        picture.push(label(across + 34.0, y, place));
        across += 60.0 + place.chars().count() as f64 * LETTER;
    }
}

fn range(curve: &Curve, place: &str, x: &Log, y: f64) -> super::svg::Element {
    let at = |q: f64| x.at(curve.series.quantile(q) as f64);
    let class = stroke(curve);
    let title = format!(
        "{}, {place}: p50 {}, p99 {}, p99.9 {}, {} samples",
        curve.name,
        time(curve.series.quantile(0.5) as f64),
        curve.series.told(0.99),
        curve.series.told(0.999),
        count(curve.series.count)
    );
    group(curve)
        .titled(&title)
        .child(line(&format!("{class} thick solid"), at(0.5), y, at(0.99).max(at(0.5) + 1.0), y))
        .child(line(&format!("{class} hair solid"), at(0.99), y, at(0.999), y))
        .child(mark(curve, at(0.5), y))
}
