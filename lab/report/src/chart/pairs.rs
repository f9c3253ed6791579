// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of CPUs: a heat map with the values in its cells.

use super::svg::{Element, Picture, label_as};
use crate::pairs::Matrix;
use crate::unit::{Scale, count, time};

/// CPUs up to which the cells have room for their values; above, hovering and the table tell them.
const WITH_VALUES: usize = 20;

/// What a page has room for across: more CPUs have smaller cells.
const ROOM: f64 = 1040.0;

/// Light (quick) and dark (slow) end of the colours: one hue, so that lightness alone carries the
/// value; both stand off from light paper and from dark.
const QUICK: [f64; 3] = [208.0, 228.0, 245.0];
const SLOW: [f64; 3] = [16.0, 84.0, 158.0];

pub fn draw(matrix: &Matrix, quantity: &str) -> Picture {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let scale = Scale::for_ps(matrix.pairs.iter().map(|pair| pair.p50_ps));
    let values = columns.len().max(rows.len()) <= WITH_VALUES;
    let small = (ROOM / columns.len().max(1) as f64).clamp(4.0, 24.0);
    let (wide, high) = if values { (52.0, 28.0) } else { (small, small) };
    let (left, top) = (64.0, 46.0);
    // A small machine's map still needs room for its heads.
    let width = (left + columns.len() as f64 * wide + 16.0).max(430.0);
    let height = top + rows.len() as f64 * high + 18.0;
    let sentence = format!("{}: median {quantity} of {} pairs of CPUs", matrix.subject, matrix.pairs.len());
    let mut picture = Picture::new(width, height, sentence);
    let head = format!("CPU of the other side; median {quantity}, {}", scale.unit.sign());
    picture.push(label_as("axis-title", left, 14.0, &head));
    picture.push(
        label_as("axis-title middle", 14.0, (top + height - 18.0) / 2.0, "first CPU")
            .with("transform", &format!("rotate(-90 14 {:.0})", (top + height - 18.0) / 2.0)),
    );
    // Heads thin out where they would run into each other.
    let every = if values { 1 } else { (28.0 / small).ceil() as usize };
    for (index, cpu) in columns.iter().enumerate().step_by(every) {
        let x = left + (index as f64 + 0.5) * wide;
        picture.push(label_as("tick middle", x, top - 8.0, &cpu.to_string()));
    }
    for (index, cpu) in rows.iter().enumerate().step_by(every) {
        let y = top + (index as f64 + 0.5) * high + 4.0;
        picture.push(label_as("tick end", left - 8.0, y, &cpu.to_string()));
    }
    for pair in &matrix.pairs {
        let column = columns.binary_search(&pair.to).unwrap_or(0) as f64;
        let row = rows.binary_search(&pair.from).unwrap_or(0) as f64;
        let (x, y) = (left + column * wide, top + row * high);
        let shade = matrix.shade(pair.p50_ps);
        let title = format!(
            "CPU {} to CPU {}: {} ({} samples)",
            pair.from,
            pair.to,
            time(pair.p50_ps),
            count(pair.count)
        );
        let square = Element::new("rect")
            .at("x", x + 0.5)
            .at("y", y + 0.5)
            .at("width", wide - 1.0)
            .at("height", high - 1.0)
            .with("fill", &color(shade));
        if !values {
            picture.push(square.titled(&title));
            continue;
        }
        // The squares have the same colours by day and by night, and so has what stands on them.
        let class = if shade < 0.5 { "square middle" } else { "square dark middle" };
        let value = label_as(class, x + wide / 2.0, y + high / 2.0 + 4.0, &scale.show(pair.p50_ps));
        picture.push(Element::new("g").titled(&title).child(square).child(value));
    }
    picture
}

fn color(shade: f64) -> String {
    let mix = |index: usize| (QUICK[index] + (SLOW[index] - QUICK[index]) * shade).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}
