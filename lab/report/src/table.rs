// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for the terminal: aligned, no wider than it, one stated unit each.

use super::style::{Role, Style, width};

#[derive(Debug, Clone)]
pub struct Column {
    pub(super) head: String,
    /// Whether it holds numbers: these are flush right, words left.
    pub(super) is_number: bool,
    /// Columns with the smallest keep are left out first when the
    /// terminal is too narrow; `u8::MAX` never goes.
    keep: u8,
}

impl Column {
    /// The same column, left out before those with a greater `keep`
    /// when the terminal is too narrow.
    pub fn keep(mut self, keep: u8) -> Self {
        self.keep = keep;
        self
    }
}

/// A column of numbers that always stays.
pub fn number(head: impl Into<String>) -> Column {
    Column { head: head.into(), is_number: true, keep: u8::MAX }
}

/// The same of words.
pub fn word(head: impl Into<String>) -> Column {
    Column { is_number: false, ..number(head) }
}

#[derive(Debug, Clone)]
pub struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
    /// The variant that each row belongs to on a page, and whether that is the harness; empty where
    /// rows belong to none.
    pub(super) variants: Vec<(String, bool)>,
}

/// Letters of a cell of words that is still no sentence.
const SENTENCE: usize = 60;

impl Table {
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new(), variants: Vec::new() }
    }

    /// Adds a row; one text per column, missing ones are empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    /// A further column, of which `cells` has what stands in each row.
    pub fn append(&mut self, column: Column, cells: impl IntoIterator<Item = String>) {
        self.columns.push(column);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }

    /// The columns of a terminal that it takes, with the gap before a further one.
    pub(super) fn room(&self) -> usize {
        let widest = |place: usize| {
            let cells = self.rows.iter().map(|row| width(&row[place]));
            cells.fold(width(&self.columns[place].head), usize::max) + 2
        };
        (0..self.columns.len()).map(widest).sum()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Its rows as a page has them: the variant, whether that is the harness, and the cells, each
    /// with its class. Numbers have none, and a sentence may be broken over lines.
    pub(super) fn on_a_page(&self) -> impl Iterator<Item = (&str, bool, Vec<(&str, &'static str)>)> {
        let class = |cell: &str, column: &Column| match cell.chars().count() {
            _ if column.is_number => "",
            0..=SENTENCE => "w",
            _ => "w long",
        };
        self.rows.iter().enumerate().map(move |(place, row)| {
            let (variant, harness) = self.variants.get(place).map_or(("", false), |(id, own)| (id, *own));
            let cells = row.iter().zip(&self.columns);
            (variant, harness, cells.map(|(cell, column)| (cell.as_str(), class(cell, column))).collect())
        })
    }

    /// The first `rows` rows in the columns for which there is room, with how many more there are.
    pub fn brief(&self, rows: usize, style: &Style) -> String {
        let more = self.rows.len().saturating_sub(rows);
        let shown = Self { rows: self.rows.iter().take(rows).cloned().collect(), ..self.clone() };
        let mut out = shown.lines(style).0;
        if more > 0 {
            out.push_str(&style.paint(Role::Aside, &format!("and {more} more\n")));
        }
        out
    }

    /// The table as text, each line ended; columns that found no room are named below it.
    pub fn render(&self, style: &Style) -> String {
        let (mut out, left_out) = self.lines(style);
        if !left_out.is_empty() {
            let note = format!("(no room for: {}; widen the terminal or use --json)", left_out.join(", "));
            for line in style.wrap(&note, 0).lines() {
                out.push_str(&style.paint(Role::Aside, line));
                out.push('\n');
            }
        }
        out
    }

    /// Head and rows as text, and the columns that found no room.
    fn lines(&self, style: &Style) -> (String, Vec<String>) {
        let clean = |text: &String| style.text(text);
        let heads: Vec<String> = self.columns.iter().map(|column| clean(&column.head)).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(clean).collect()).collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|index| rows.iter().map(|row| width(&row[index])).fold(width(&heads[index]), usize::max))
            .collect();
        let full: Vec<usize> = (0..heads.len()).filter(|&index| self.says_something(index)).collect();
        let shown = self.fitting(full.clone(), &widths, style.width);

        let line = |cells: &[String]| {
            let mut out = String::new();
            for (place, &index) in shown.iter().enumerate() {
                let pad = " ".repeat(widths[index].saturating_sub(width(&cells[index])));
                if place > 0 {
                    out.push_str("  ");
                }
                let [before, after] = match self.columns[index].is_number {
                    true => [&pad, &cells[index]],
                    false => [&cells[index], &pad],
                };
                out.push_str(before);
                out.push_str(after);
            }
            out.truncate(out.trim_end().len());
            out
        };
        let mut out = style.paint(Role::Heading, &line(&heads));
        out.push('\n');
        for row in &rows {
            out.push_str(&line(row));
            out.push('\n');
        }
        let left_out = full.into_iter().filter(|index| !shown.contains(index) && !heads[*index].is_empty());
        let left_out = left_out.map(|index| heads[index].clone()).collect();
        (out, left_out)
    }

    /// Whether some row has something in a column.
    pub(super) fn says_something(&self, index: usize) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| !["", "-"].contains(&row[index].as_str()))
    }

    /// Those of the columns `shown` for which there is room.
    fn fitting(&self, mut shown: Vec<usize>, widths: &[usize], room: usize) -> Vec<usize> {
        let total = |shown: &[usize]| {
            shown.iter().map(|&index| widths[index]).sum::<usize>() + 2 * shown.len().saturating_sub(1)
        };
        while total(&shown) > room {
            let candidate = shown
                .iter()
                .enumerate()
                .filter(|(_, index)| self.columns[**index].keep < u8::MAX)
                .min_by_key(|(_, index)| self.columns[**index].keep);
            let Some((place, _)) = candidate else { break };
            shown.remove(place);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![
            word("mechanism"),
            number("p50"),
            number("p90").keep(1),
            number("count").keep(2),
        ]);
        table.row(vec!["futex-shared".into(), "8.31".into(), "9.02".into(), "10,000".into()]);
        table.row(vec!["spin".into(), "0.12".into(), "0.13".into(), "10,000".into()]);
        table
    }

    #[test]
    fn words_are_flush_left_and_numbers_right() {
        assert_eq!(
            table().render(&Style::PLAIN),
            "mechanism      p50   p90   count\n\
             futex-shared  8.31  9.02  10,000\n\
             spin          0.12  0.13  10,000\n"
        );
    }

    #[test]
    fn a_narrow_terminal_loses_the_least_needed_column_and_is_told() {
        let narrow = table().render(&Style { width: 27, ..Style::PLAIN });
        assert_eq!(
            narrow,
            "mechanism      p50   count\n\
             futex-shared  8.31  10,000\n\
             spin          0.12  10,000\n\
             (no room for: p90; widen\n\
             the terminal or use --json)\n"
        );
        let tiny = table().render(&Style { width: 5, ..Style::PLAIN });
        assert!(tiny.starts_with("mechanism      p50\n"), "columns that must stay stay:\n{tiny}");
    }

    #[test]
    fn a_column_in_which_no_row_has_anything_is_not_there() {
        let mut table = table();
        table.rows.iter_mut().for_each(|row| row[2] = "-".into());
        assert!(table.render(&Style::PLAIN).starts_with("mechanism      p50   count\n"));
    }

    #[test]
    fn a_brief_table_has_its_first_rows_and_the_number_of_the_others() {
        assert_eq!(
            table().brief(1, &Style { width: 27, ..Style::PLAIN }),
            "mechanism      p50   count\nfutex-shared  8.31  10,000\nand 1 more\n"
        );
    }

    #[test]
    fn only_the_head_is_painted_and_paint_takes_no_room() {
        let painted = table().render(&Style { color: true, ..Style::PLAIN });
        assert!(painted.starts_with("\u{1b}[1mmechanism      p50   p90   count\u{1b}[0m\nfutex"));
    }
}
