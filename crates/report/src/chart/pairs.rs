// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of CPUs: a heat map with the values in its cells.

use super::svg::{Element, Picture, label_as};
use crate::pairs::Matrix;
use crate::unit::{Scale, count, time};

/// CPUs up to which the cells have room for their values; above, hovering and the table tell them.
const WITH_VALUES: usize = 40;

/// Light (quick) and dark (slow) end of the colours: one hue, so that lightness alone carries the value.
const QUICK: [f64; 3] = [232.0, 242.0, 250.0];
const SLOW: [f64; 3] = [8.0, 48.0, 107.0];

pub fn draw(matrix: &Matrix, quantity: &str) -> Picture {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let scale = Scale::for_ps(matrix.pairs.iter().map(|pair| pair.p50_ps));
    let values = columns.len().max(rows.len()) <= WITH_VALUES;
    let (wide, high) = if values { (56.0, 28.0) } else { (12.0, 12.0) };
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
    let every = if values { 1 } else { 4 };
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
        let mut cell = Element::new("g").titled(&title).child(
            Element::new("rect")
                .at("x", x + 0.5)
                .at("y", y + 0.5)
                .at("width", wide - 1.0)
                .at("height", high - 1.0)
                .with("fill", &color(shade)),
        );
        if values {
            let ink = if shade < 0.5 { "#10161c" } else { "#ffffff" };
            cell.push(
                Element::new("text")
                    .with("class", "square middle")
                    .at("x", x + wide / 2.0)
                    .at("y", y + high / 2.0 + 4.0)
                    .with("fill", ink)
                    .text(&scale.show(pair.p50_ps)),
            );
        }
        picture.push(cell);
    }
    picture
}

fn color(shade: f64) -> String {
    let mix = |index: usize| (QUICK[index] + (SLOW[index] - QUICK[index]) * shade).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}
