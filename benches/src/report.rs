//! Rows in, one page and one summary out.
//!
//! The page is one file that needs nothing else: hand-made SVG, light and dark. The summary is Markdown beside SVG files,
//! for a repository's pages. Both show medians over rounds with 95 % intervals, what it was measured on, and what failed.

pub mod charts;
pub mod data;
mod markdown;
mod page;
mod svg;
mod tables;

use std::path::Path;

/// Writes `report.html`, `summary.md` and the charts beside the `rows.jsonl` of this folder.
pub fn write(folder: &Path) -> Result<(), String> {
    let data = data::Data::read(&folder.join("rows.jsonl"))?;
    let charts = charts::all(&data);
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    put("report.html", &page::write(&data, &charts))?;
    put("summary.md", &markdown::write(&data, &charts))?;
    for chart in &charts {
        put(&format!("{}.svg", chart.name), &chart.svg)?;
    }
    Ok(())
}
