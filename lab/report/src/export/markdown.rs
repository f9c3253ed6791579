// SPDX-License-Identifier: MIT OR Apache-2.0
//! Markdown for an issue or a wiki: a table per quantity with its
//! definition, then everything that is no figure.

use std::io::{self, Write};

use crate::axis;
use crate::command_line::command;
use crate::export::Format;
use crate::figures::{Figures, scale};
use crate::quantities::columns;
use crate::warnings::{self, Cause};
use crate::wording::{beside, bound, foreign};
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_results::written::{inert, letters};
use doorbell_verdict::provisional::provisional;

pub const MARKDOWN: Format = Format {
    name: "markdown",
    about: "a table per quantity for an issue or a wiki, with definitions, warnings and the command",
    export: markdown,
};

fn markdown(result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    let figures = Figures::of(result);
    let name = result.name.as_ref().map_or_else(String::new, |name| format!(": {}", escape(name)));
    writeln!(out, "## doorbell {}{name}\n", escape(&result.plan.experiment))?;
    // A command may contain anything but a line end; backquotes in it would end the code.
    let command = inert(&command(&result.command_line).replace(['`', '\r', '\n'], " "));
    writeln!(
        out,
        "`{command}`, version {}, {}{}\n",
        escape(&result.tool_version),
        crate::wording::date(result.started_at_unix_ns),
        if result.partial { ", **partial: interrupted**" } else { "" }
    )?;
    if let Some(bound) = bound(result) {
        writeln!(out, "**{}**\n", escape(&bound))?;
    }
    if let Some(foreign) = foreign(result) {
        writeln!(out, "**{}**\n", escape(&foreign))?;
    }
    if let Some(found) = provisional(result) {
        writeln!(out, "**{}**\n", escape(&crate::answer::provisional(found)))?;
    }
    if let Some(beside) = beside(result) {
        writeln!(out, "{}\n", escape(&beside))?;
    }
    for quantity in figures.quantities() {
        table(&figures, quantity, out)?;
    }
    let axes = axis::varying(figures.absent.iter().map(|absent| absent.configuration));
    for absent in &figures.absent {
        let label = escape(&axis::label(absent.configuration, &axes));
        writeln!(out, "- **{}**: {label}: {}", absent.name, escape(&absent.reasons.join("; ")))?;
    }
    for group in warnings::Group::of(result) {
        let warning = group.warning;
        let (effect, cure) = (escape(&warning.effect), escape(&warning.cure));
        let causes = escape(&group.causes.iter().map(Cause::sentence).collect::<Vec<_>>().join("; "));
        writeln!(out, "- **warning {}**: {causes}. Effect: {effect}. Cure: {cure}.", escape(&warning.name))?;
    }
    Ok(())
}

fn table(figures: &Figures, quantity: Quantity, out: &mut dyn Write) -> io::Result<()> {
    let rows = figures.having(|_| quantity);
    let scale = scale(&rows);
    let sign = scale.unit.sign();
    writeln!(out, "### {} ({sign})\n", quantity.name())?;
    writeln!(out, "{}\n", crate::wording::sentence(quantity.definition()))?;
    let common = axis::common(rows.iter().map(|(row, _)| row.configuration()));
    if !common.is_empty() {
        writeln!(out, "All: {}.\n", escape(&common))?;
    }
    let table = columns(&rows, scale).table(&rows);
    let line =
        |cells: &mut dyn Iterator<Item = String>| cells.map(|cell| format!("| {cell} ")).collect::<String>();
    writeln!(out, "{}|", line(&mut table.columns.iter().map(|column| escape(&column.head))))?;
    let ruled = table.columns.iter().map(|column| if column.is_number { "---:" } else { "---" });
    writeln!(out, "{}|", line(&mut ruled.map(str::to_owned)))?;
    for row in &table.rows {
        writeln!(out, "{}|", line(&mut row.iter().map(|cell| escape(cell))))?;
    }
    writeln!(
        out,
        "\nCPU: CPU time of a wake-up (the notifier's call and the waiter's time) or an operation.\n"
    )
}

/// `text` with everything that Markdown or HTML would take for markup made plain.
pub fn escape(text: &str) -> String {
    let mut plain = String::new();
    for (letter, obeyed) in letters(text) {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' => plain.extend(['\\', letter]),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '&' => plain.push_str("&amp;"),
            '\n' | '\r' | '\t' => plain.push(' '),
            letter if obeyed => {
                plain.push('\\');
                plain.extend(letter.escape_unicode());
            }
            _ => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::{Outcome, sample};

    fn exported(result: &ResultFile) -> String {
        let mut text = Vec::new();
        markdown(result, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_result_becomes_a_table_per_quantity_with_its_definition() {
        let configurations = [sample::configuration("futex"), sample::configuration("eventfd")];
        insta::assert_snapshot!(exported(&sample::result(&configurations, 2, |_, _| 16_000.0)));
    }

    #[test]
    fn what_has_no_figures_is_named_below_and_never_in_a_table() {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        result.records[0].outcome = Outcome::Failed { cause: "a <b> | c\nd".to_owned() };
        let text = exported(&result);
        assert!(text.contains("**failed**") && text.contains("a &lt;b&gt; \\| c d"), "{text}");
        assert!(!text.contains("| p50"));
    }

    #[test]
    fn a_hostile_name_is_shown_and_not_obeyed() {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        result.name = Some("<script>[x](y)".to_owned());
        result.command_line = vec!["`rm`".to_owned()];
        let text = exported(&result);
        assert!(text.contains("&lt;script&gt;\\[x\\](y)") && text.contains("`' rm '`"), "{text}");
    }
}
