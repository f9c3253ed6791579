// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every variant in one line: from its shortest to its longest time, with the median and the tail
//! marked. Readable with two variants and with two hundred.

use super::curve::Curve;
use super::frame::{Frame, group};
use super::palette::stroke;
use super::scale::Log;
use super::svg::{Element, Path, Picture, cut, label_as, line};
use crate::unit::{count, time};

/// Height of one variant's line.
const ROW: f64 = 22.0;

/// Variants that were run under the same conditions.
#[derive(Debug)]
pub struct Group<'figures> {
    /// The conditions; empty where there is only one group.
    pub name: String,
    /// The variants, in the order they are drawn.
    pub curves: Vec<Curve<'figures>>,
}

/// Draws it; `quantity` names what was timed, `title` stands above (a page has its own headings and
/// gives none), and `limit` is what times are held against, picoseconds.
pub fn draw(groups: &[Group], quantity: &str, title: Option<&str>, limit: Option<f64>) -> Picture {
    let variants: usize = groups.iter().map(|group| group.curves.len()).sum();
    let heads = groups.iter().filter(|group| !group.name.is_empty()).count();
    let head = if title.is_some() { 34.0 } else { 8.0 };
    let key = head + 20.0;
    let top = key + 14.0;
    let bottom = top + (variants + heads) as f64 * ROW + 6.0;
    let (width, left, right) = (960.0, 250.0, 806.0);
    let all = || groups.iter().flat_map(|group| &group.curves);
    let ends = all().flat_map(|curve| [curve.series.min_ps as f64, curve.series.max_ps as f64]);
    let x = Log::over(ends.chain(limit), left, right);
    let mut picture = Picture::new(width, bottom + 48.0, format!("{quantity}: range of {variants} variants"));
    if let Some(title) = title {
        picture.push(label_as("title", 12.0, 26.0, &cut(title, width * 0.78)));
    }
    how_to_read(&mut picture, left, key);
    // Where the limit is named no tick is.
    let free = |at: f64| limit.is_none_or(|ps| (x.at(ps) - at).abs() > 66.0);
    let mut ticks = x.time_ticks();
    ticks.iter_mut().filter(|tick| !free(tick.at)).for_each(|tick| tick.label.clear());
    let frame = Frame { width, height: bottom + 48.0, left, right, top: top - 4.0, bottom };
    frame.horizontal(&mut picture, &ticks, &format!("{quantity} (time, logarithmic)"));
    picture.push(label_as("note end", right + 70.0, key, "p50"));
    picture.push(label_as("note end", right + 144.0, key, "p99"));

    if let Some(ps) = limit {
        let at = x.at(ps);
        picture.push(line("limit", at, top - 4.0, at, bottom).titled(&format!("limit: {}", time(ps))));
        picture.push(label_as("limit middle", at, bottom + 17.0, &format!("limit {}", time(ps))));
    }
    let mut y = top;
    for conditions in groups {
        if !conditions.name.is_empty() {
            y += ROW;
            picture.push(
                label_as("head", 12.0, y - 6.0, &cut(&conditions.name, width - 24.0))
                    .titled(&conditions.name),
            );
        }
        for curve in &conditions.curves {
            y += ROW;
            picture.push(row(curve, &x, y - ROW / 2.0, left, right));
        }
    }
    picture
}

fn row(curve: &Curve, x: &Log, y: f64, left: f64, right: f64) -> Element {
    let series = curve.series;
    let at = |q: f64| x.at(series.quantile(q) as f64);
    let (low, p50, p99, p999, high) =
        (x.at(series.min_ps as f64), at(0.5), at(0.99), at(0.999), x.at(series.max_ps as f64));
    let class = stroke(curve);
    let show = |q: f64| series.told(q);
    let title = format!(
        "{}: shortest {}, p50 {}, p90 {}, p99 {}, p99.9 {}, longest {}, {} samples",
        curve.name,
        time(series.min_ps as f64),
        show(0.5),
        show(0.9),
        show(0.99),
        show(0.999),
        time(series.max_ps as f64),
        count(series.count)
    );
    let dot = Element::new("circle")
        .with("class", &class.replace("line", "area"))
        .at("cx", p50)
        .at("cy", y)
        .at("r", 5.0);
    let hit = Element::new("rect")
        .with("class", "hit")
        .at("x", 0.0)
        .at("y", y - ROW / 2.0)
        .at("width", right)
        .at("height", ROW);
    let across = |from: f64, to: f64| {
        let mut path = Path::from(from, y);
        path.line(to, y);
        path
    };
    let mut hair = across(low, p50);
    hair.jump(p999, y);
    hair.line(high, y);
    hair.jump(high, y - 5.0);
    hair.line(high, y + 5.0);
    group(curve)
        .titled(&title)
        .child(hit)
        .child(label_as("end", left - 12.0, y + 4.0, &cut(&curve.name, left - 24.0)))
        .child(hair.element(&format!("{class} hair solid")))
        .child(across(p50, p99.max(p50 + 1.0)).element(&format!("{class} thick solid")))
        .child(across(p99, p999).element(&format!("{class} solid")))
        .child(dot)
        .child(label_as("tick end", right + 70.0, y + 4.0, &show(0.5)))
        .child(label_as("tick end", right + 144.0, y + 4.0, &show(0.99)))
}

/// A line of the same shape with its parts named.
fn how_to_read(picture: &mut Picture, left: f64, y: f64) {
    let y = y - 4.0;
    let parts = [("shortest", 0.0), ("p50", 70.0), ("p99", 130.0), ("p99.9", 180.0), ("longest", 238.0)];
    let place = |index: usize| left + parts[index].1;
    let class = "line harness";
    picture.push(line(&format!("{class} hair solid"), place(0), y, place(1), y));
    picture.push(line(&format!("{class} thick solid"), place(1), y, place(2), y));
    picture.push(line(&format!("{class} solid"), place(2), y, place(3), y));
    picture.push(line(&format!("{class} hair solid"), place(3), y, place(4), y));
    picture.push(line(&format!("{class} thin solid"), place(4), y - 5.0, place(4), y + 5.0));
    picture.push(
        Element::new("circle").with("class", "area harness").at("cx", place(1)).at("cy", y).at("r", 5.0),
    );
    for (index, (name, _)) in parts.iter().enumerate() {
        picture.push(label_as("note middle", place(index), y - 9.0, name));
    }
}
