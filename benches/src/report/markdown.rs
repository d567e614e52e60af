//! The summary: Markdown, with the charts beside it.

use std::fmt::Write as _;

use super::charts::Chart;
use super::data::Data;
use super::svg::is_ours;
use super::tables::{self, Cell, Table};

/// Writes it.
pub fn write(data: &Data, charts: &[Chart]) -> String {
    let mut text = String::from("# sprat and its peers, measured\n\n");
    let _ = writeln!(
        text,
        "{} servers on one machine, in turns. Medians over the rounds, 95 % intervals in parentheses. `report.html` is the \
         same with all charts, `rows.jsonl` is every raw row.\n",
        data.measured().len()
    );
    for doubt in tables::doubts(data) {
        let _ = writeln!(text, "> {doubt}\n");
    }
    table(&mut text, &tables::summary(data));
    if let Some(times) = tables::times_less(data) {
        let _ = writeln!(text, "## {}\n", times.title);
        table(&mut text, &times);
    }
    for chart in charts {
        let _ = writeln!(text, "## {}\n\n{}\n\n![{}]({}.svg)\n", chart.title, chart.text, chart.title, chart.name);
    }
    text.push_str("## The machine\n\n");
    for (name, value) in tables::machine(data) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text.push_str("\n## The servers\n\n");
    table(&mut text, &tables::servers(data));
    text
}

fn table(text: &mut String, table: &Table) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(table.heads.clone()));
    text.push_str(&line(
        table.heads.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" }.into()).collect(),
    ));
    for row in &table.rows {
        let ours = row.first().is_some_and(|cell| is_ours(&cell.text));
        let cell = |Cell { text, interval }: &Cell| {
            let text = text.replace('|', "\\|");
            let text = if ours && !text.is_empty() { format!("**{text}**") } else { text };
            if interval.is_empty() { text } else { format!("{text} ({interval})") }
        };
        text.push_str(&line(row.iter().map(cell).collect()));
    }
    text.push('\n');
}
