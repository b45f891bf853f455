//! Tables for people: columns as wide as their content, at most as wide as the terminal.

use super::shell::HEADER;

/// Side on which a column's cells are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Rows under a header.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Renders with a styled header, two spaces between columns, none at the end of a line. The
    /// widest left-aligned column gives way if the whole is wider than `width`.
    pub(super) fn render(&self, width: usize) -> String {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(idx, (title, _))| {
                let cells = self.rows.iter().filter_map(|row| row.get(idx));
                let widest = cells.map(|cell| cell.chars().count()).max();
                widest.unwrap_or(0).max(title.chars().count())
            })
            .collect();
        self.narrow(&mut widths, width);
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|(title, _)| (*title).to_owned())
            .collect();
        let mut text = format!("{HEADER}{}{HEADER:#}\n", self.line(&titles, &widths));
        for row in &self.rows {
            text += &self.line(row, &widths);
            text.push('\n');
        }
        text
    }

    fn narrow(&self, widths: &mut [usize], width: usize) {
        let total: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let Some(excess) = total.checked_sub(width).filter(|&n| n > 0) else {
            return;
        };
        let left = self
            .columns
            .iter()
            .zip(widths)
            .filter(|((_, align), _)| *align == Align::Left);
        if let Some((_, widest)) = left.max_by_key(|(_, width)| **width) {
            *widest = widest.saturating_sub(excess).max(12);
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut text = String::new();
        for (idx, ((_, align), &width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = shorten(cells.get(idx).map_or("", String::as_str), width);
            let padding = " ".repeat(width - cell.chars().count());
            if idx > 0 {
                text += "  ";
            }
            match align {
                Align::Left => text.extend([cell, padding]),
                Align::Right => text.extend([padding, cell]),
            }
        }
        text.trim_end().to_owned()
    }
}

fn shorten(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("#", Align::Right), ("what", Align::Left)]);
        table.push(vec!["1".to_owned(), "a".to_owned()]);
        table.push(vec!["10".to_owned(), "a long description".to_owned()]);
        table
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            plain(&table().render(80)),
            " #  what\n 1  a\n10  a long description\n"
        );
    }

    #[test]
    fn the_widest_text_gives_way_at_the_width() {
        let text = plain(&table().render(18));
        assert_eq!(text, " #  what\n 1  a\n10  a long descri…\n");
        assert!(text.lines().all(|line| line.chars().count() <= 18));
    }
}
