//! The page: one HTML file.

use std::fmt::Write as _;

use super::charts::Chart;
use super::data::Data;
use super::svg::{escape, is_ours};
use super::tables::{self, Cell, Table};

const STYLE: &str = "
:root{--ink:#1f2328;--soft:#57606a;--line:#d8dee4;--paper:#fff;--box:#f6f8fa;--warn:#fff4d6;--ours:#e5484d}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#30363d;--paper:#0d1117;--box:#161b22;--warn:#3a2d0a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif}
main{max-width:1000px;margin:0 auto;padding:40px 24px 80px}
h1{font-size:34px;line-height:1.2;margin:0 0 6px}h2{font-size:22px;margin:56px 0 4px}
.lead{font-size:18px;color:var(--soft);margin:0 0 24px;max-width:46em}p{max-width:46em}p.how{color:var(--soft);margin:0 0 18px}
nav{margin:20px 0;font-size:14px}nav a{margin-right:14px;white-space:nowrap}a{color:inherit}
.doubts{background:var(--warn);border-radius:8px;padding:12px 18px;margin:18px 0}.doubts ul{margin:4px 0;padding-left:20px}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:14px;width:100%;margin:14px 0}
th{text-align:right;font-weight:500;color:var(--soft);vertical-align:bottom;font-size:12.5px;line-height:1.3;padding:6px 8px;border-bottom:2px solid var(--line)}
td{text-align:right;padding:7px 8px;border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums;vertical-align:top;white-space:nowrap}
th:first-child,td:first-child{text-align:left;font-weight:600}tr.ours td{background:var(--box)}tr.ours td:first-child{box-shadow:inset 4px 0 var(--ours)}
small{display:block;color:var(--soft);font-size:11.5px}table.words td{text-align:left;white-space:normal;font-weight:400}table.words th{text-align:left}
table.words td:first-child{white-space:nowrap;font-weight:600}
svg{width:100%;height:auto;display:block}figure{margin:0;padding:18px 20px;border:1px solid var(--line);border-radius:10px}
details{margin:10px 0}summary{cursor:pointer;font-weight:600}dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;font-size:14px;margin:14px 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
";

/// Writes it.
pub fn write(data: &Data, charts: &[Chart]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>sprat: measured {}</title><style>{STYLE}</style></head><body><main>\n",
        escape(&data.head.date)
    );
    let peers = data.measured().len();
    let _ = writeln!(
        html,
        "<h1>sprat and its peers, measured</h1><p class=\"lead\">{peers} servers on one machine, in turns, by one command. \
         Each first had to answer rightly. Medians over the rounds, with 95&nbsp;% intervals; every raw row is kept beside \
         this page.</p>"
    );
    html.push_str("<nav>");
    for chart in charts {
        let _ = write!(html, "<a href=\"#{}\">{}</a>", chart.name, escape(chart.title));
    }
    html.push_str("<a href=\"#machine\">The machine</a><a href=\"#servers\">The servers</a><a href=\"#rows\">All figures</a></nav>\n");
    let doubts = tables::doubts(data);
    if !doubts.is_empty() {
        html.push_str("<div class=\"doubts\"><b>Before you quote this</b><ul>");
        doubts.iter().for_each(|doubt| {
            let _ = write!(html, "<li>{}</li>", escape(doubt));
        });
        html.push_str("</ul></div>\n");
    }
    html.push_str("<h2>In one table</h2>\n");
    table(&mut html, &tables::summary(data), "");
    if let Some(times) = tables::times_less(data) {
        let _ = write!(
            html,
            "<h2>{}</h2><p class=\"how\">Paired by rounds: above 1 the other needs more.</p>",
            escape(&times.title)
        );
        table(&mut html, &times, "");
    }
    for chart in charts {
        let _ = writeln!(
            html,
            "<h2 id=\"{}\">{}</h2><p class=\"how\">{}</p><figure>{}</figure>",
            chart.name,
            escape(chart.title),
            escape(&chart.text),
            chart.svg
        );
    }
    html.push_str("<h2 id=\"machine\">The machine</h2><dl>");
    for (name, value) in tables::machine(data) {
        let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", escape(&name), escape(&value));
    }
    html.push_str("</dl>\n<h2 id=\"servers\">The servers</h2><p class=\"how\">Each is the best plain version of itself by its own \
                   documentation, one worker; the sources are in <code>benches/peers</code>.</p>\n");
    table(&mut html, &tables::servers(data), "words");
    html.push_str("<h2 id=\"rows\">All figures</h2><p class=\"how\">Medians over rounds, intervals below them. Latencies of modes \
                   other than latency and idle are those of a closed loop.</p>\n");
    for detail in tables::details(data) {
        let _ = write!(html, "<details><summary>{}</summary>", escape(&detail.title));
        table(&mut html, &detail, "");
        html.push_str("</details>\n");
    }
    html.push_str("</main></body></html>\n");
    html
}

fn table(html: &mut String, table: &Table, class: &str) {
    let _ = write!(html, "<div class=\"scroll\"><table class=\"{class}\"><thead><tr>");
    for head in &table.heads {
        let _ = write!(html, "<th>{}</th>", escape(head));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        let ours = row.first().is_some_and(|cell| is_ours(&cell.text));
        html.push_str(if ours { "<tr class=\"ours\">" } else { "<tr>" });
        for Cell { text, interval } in row {
            let _ = write!(html, "<td>{}", escape(text));
            if !interval.is_empty() {
                let _ = write!(html, "<small>{}</small>", escape(interval));
            }
            html.push_str("</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}
