// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chart as a self-contained SVG that follows the reader's light or dark preference.

use crate::model::{Chart, Step};
use std::fmt::Write;

const LANE: usize = 150;
const ROW: usize = 34;
const TOP: usize = 78;
const NUMBER: usize = 34;
/// Width of a character of the 12-pixel sans-serif face, on average;
/// words that would leave the picture are kept in.
const CHARACTER: usize = 7;

const STYLE: &str = "
svg{font:12px system-ui,sans-serif;background:#fff;color:#1c2127}
.line{stroke:#c3cad2}.arrow{stroke:#2463b0;fill:none}.head,.own{fill:#2463b0}
.outside .arrow{stroke:#9a6700;stroke-dasharray:5 3}.outside .head,.outside .own{fill:#9a6700}
text{fill:currentColor}.title{font-weight:600;font-size:14px}.name{font-weight:600;text-anchor:middle}
.number{fill:#7d8590;text-anchor:end}.breaks,.end{fill:#b3261e;font-weight:600}.back{fill:#fff}
@media(prefers-color-scheme:dark){svg{background:#14181d;color:#dfe5ec}.line{stroke:#3a434d}.back{fill:#14181d}
.arrow{stroke:#6cb0ff}.head,.own{fill:#6cb0ff}.outside .arrow{stroke:#e3b341}.outside .head,.outside .own{fill:#e3b341}
.breaks,.end{fill:#ff7b72}}
";

/// The chart as one SVG document without scripts and without references to anything outside it.
#[must_use]
pub fn svg(chart: &Chart) -> String {
    let words =
        |step: &Step| CHARACTER * (step.text.chars().count() + step.breaks.map_or(0, |b| b.len() + 20));
    let lanes = NUMBER + chart.lanes.len() * LANE;
    let right = chart.steps.iter().map(|step| middle(step) + words(step) / 2 + 20).max().unwrap_or(0);
    let sentence = CHARACTER * (chart.end.chars().count() + 14) + NUMBER;
    let title = 9 * chart.title.chars().count() + NUMBER;
    let width = lanes.max(right).max(sentence).max(title);
    let bottom = TOP + chart.steps.len() * ROW;
    let height = bottom + 44;
    let mut out = String::new();
    let mut put = |text: String| writeln!(out, "{text}").expect("writing to a string");
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">"
    ));
    put(format!("<title>{}</title>", escaped(&chart.title)));
    put(format!("<style>{STYLE}</style>"));
    put(format!("<rect class=\"back\" width=\"{width}\" height=\"{height}\"/>"));
    put(format!("<text class=\"title\" x=\"{NUMBER}\" y=\"26\">{}</text>", escaped(&chart.title)));
    for (lane, name) in chart.lanes.iter().enumerate() {
        let x = column(lane);
        put(format!("<text class=\"name\" x=\"{x}\" y=\"56\">{}</text>", escaped(name)));
        put(format!("<line class=\"line\" x1=\"{x}\" y1=\"64\" x2=\"{x}\" y2=\"{bottom}\"/>"));
    }
    for (index, step) in chart.steps.iter().enumerate() {
        put(drawn(index, step));
    }
    let y = bottom + 26;
    put(format!("<text class=\"end\" x=\"{NUMBER}\" y=\"{y}\">In the end: {}.</text>", escaped(&chart.end)));
    put("</svg>".to_owned());
    out
}

fn column(lane: usize) -> usize {
    NUMBER + lane * LANE + LANE / 2
}

/// Where the words of a step are centred.
fn middle(step: &Step) -> usize {
    let from = column(step.from);
    match step.to {
        Some(to) => usize::midpoint(from, column(to)),
        None => from,
    }
}

fn drawn(index: usize, step: &Step) -> String {
    let y = TOP + index * ROW + 20;
    let from = column(step.from);
    let class = if step.interference { " class=\"outside\"" } else { "" };
    let shape = match step.to {
        None => format!("<circle class=\"own\" cx=\"{from}\" cy=\"{y}\" r=\"4\"/>"),
        Some(to) => {
            let to = column(to);
            let back = if from < to { to - 9 } else { to + 9 };
            format!(
                "<line class=\"arrow\" x1=\"{from}\" y1=\"{y}\" x2=\"{back}\" y2=\"{y}\"/><path \
                 class=\"head\" d=\"M{to} {y}L{back} {}L{back} {}Z\"/>",
                y - 4,
                y + 4
            )
        }
    };
    let breaks = step.breaks.map_or(String::new(), |name| {
        format!("<tspan class=\"breaks\" dx=\"8\">{} no longer holds</tspan>", escaped(name))
    });
    // A long sentence over the first lanes is moved to the right as far as the number column needs.
    let characters = step.text.chars().count() + step.breaks.map_or(0, |name| name.len() + 17);
    let x = middle(step).max(NUMBER + 6 + characters * CHARACTER / 2);
    format!(
        "<g{class}><text class=\"number\" x=\"{}\" y=\"{}\">{}</text>{shape}<text \
         text-anchor=\"middle\" x=\"{x}\" y=\"{}\">{}{breaks}</text></g>",
        NUMBER - 8,
        y + 4,
        index + 1,
        y - 8,
        escaped(&step.text),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_out_of_the_document() {
        let chart = Chart {
            title: "<script>".to_owned(),
            lanes: vec!["a&b".to_owned()],
            steps: vec![Step::local(0, "\"<x>\"")],
            end: "lost".to_owned(),
        };
        let text = svg(&chart);
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(!text.contains("<script>") && !text.contains("<x>") && text.contains("a&amp;b"));
        assert_eq!(text.matches("http").count(), 1, "only the name space: {text}");
    }
}
