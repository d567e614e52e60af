//! Charts as SVG text: lines over a scale, and bars with labels. Small, readable, light and dark.

use std::fmt::Write as _;

use crate::stats::Median;

/// How values are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From zero.
    Linear,
    /// By powers of ten.
    Log,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// The server.
    pub name: String,
    /// Place and value.
    pub points: Vec<(f64, Median)>,
}

/// A chart of lines.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Above it.
    pub title: String,
    /// What the horizontal axis is.
    pub x: String,
    /// What the vertical axis is.
    pub y: String,
    /// Marks of the horizontal axis, and their texts.
    pub ticks: Vec<(f64, String)>,
    /// Of the horizontal axis.
    pub x_scale: Scale,
    /// Of the vertical axis.
    pub y_scale: Scale,
    /// How values of the vertical axis are written.
    pub number: fn(f64) -> String,
    /// The lines.
    pub series: Vec<Series>,
}

/// A bar: a server, a median, and the part of it that is drawn darker.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The server.
    pub name: String,
    /// Its length, with the interval.
    pub value: Median,
    /// The first part of it, such as user space of all CPU.
    pub part: Option<f64>,
}

/// Bars of one measure, in panels side by side.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Above it.
    pub title: String,
    /// What the two parts of a bar are, if it has two.
    pub parts: Option<(&'static str, &'static str)>,
    /// How values are written.
    pub number: fn(f64) -> String,
    /// Each with its own scale from zero.
    pub panels: Vec<(String, Vec<Bar>)>,
}

const WIDTH: f64 = 900.0;
/// Of more lines only ours has its interval drawn; the page's tables have all of them.
const BANDS_MAX: usize = 8;
const STYLE: &str = "<style>\
text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#24292f}.s{font-size:12px;fill:#57606a}\
.t{font-size:15px;font-weight:600}.g{stroke:#d0d7de;stroke-width:1}.w{stroke:#24292f;stroke-width:1.2;opacity:.55}\
.c{stroke:#fff;stroke-width:4;fill:none}.b{fill:none;stroke-linejoin:round;stroke-linecap:round}.o{font-weight:700}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.g{stroke:#3d444d}.w{stroke:#e6edf3}.c{stroke:#0d1117}}\
</style>";

fn open(height: f64, title: &str) -> String {
    let label = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">{STYLE}\
         <text class=\"t\" x=\"0\" y=\"18\">{label}</text>"
    )
}

impl Lines {
    /// Draws it.
    pub fn draw(&self) -> String {
        let (left, right, plot_height) = (78.0, WIDTH - 12.0, 330.0);
        let (legend, legend_height) = legend(self.series.iter().map(|series| &*series.name), 34.0);
        let (top, bottom) = (48.0 + legend_height, 48.0 + legend_height + plot_height);
        let mut svg = open(bottom + 46.0, &self.title);
        svg.push_str(&legend);
        let values: Vec<f64> = self.series.iter().flat_map(|s| s.points.iter().map(|(_, m)| m.value)).collect();
        let (low, high, marks) = axis(&values, self.y_scale);
        let y_of = |value: f64| bottom - plot_height * place(value, low, high, self.y_scale);
        for mark in marks {
            let y = y_of(mark);
            let _ = write!(svg, "<line class=\"g\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
            let text = (self.number)(mark);
            let _ = write!(
                svg,
                "<text class=\"s\" text-anchor=\"end\" x=\"{:.0}\" y=\"{:.1}\">{text}</text>",
                left - 8.0,
                y + 4.0
            );
        }
        let xs: Vec<f64> = self.ticks.iter().map(|(x, _)| *x).collect();
        let (x_low, x_high) = (xs.iter().copied().fold(f64::MAX, f64::min), xs.iter().copied().fold(0.0, f64::max));
        let x_of = |x: f64| left + 14.0 + (right - left - 34.0) * place(x, x_low, x_high, self.x_scale);
        let mut text_end = 0.0;
        for (x, text) in &self.ticks {
            let at = x_of(*x);
            let half = text.len() as f64 * 3.6;
            if at - half < text_end + 4.0 {
                continue; // no room for this one
            }
            text_end = at + half;
            let _ = write!(
                svg,
                "<text class=\"s\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{text}</text>",
                bottom + 18.0
            );
        }
        let _ = write!(
            svg,
            "<text class=\"s\" text-anchor=\"middle\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            f64::midpoint(left, right),
            bottom + 38.0,
            escape(&self.x)
        );
        let _ = write!(svg, "<text class=\"s\" x=\"0\" y=\"{:.0}\">{}</text>", top - 10.0, escape(&self.y));
        // The floor and ours are drawn last, above the others.
        let mut order: Vec<&Series> = self.series.iter().collect();
        order.sort_by_key(|series| is_ours(&series.name));
        for series in order {
            let color = color(&series.name);
            let width = if is_ours(&series.name) { 3.5 } else { 1.8 };
            let dash = if series.name == "floor" { " stroke-dasharray=\"6 5\"" } else { "" };
            // The bands of many would hide each other's lines.
            if self.series.len() <= BANDS_MAX || is_ours(&series.name) {
                let mut band: Vec<(f64, f64)> = series.points.iter().map(|(x, m)| (x_of(*x), y_of(m.high))).collect();
                band.extend(series.points.iter().rev().map(|(x, m)| (x_of(*x), y_of(m.low))));
                let band = points(band.into_iter());
                let _ = write!(svg, "<polygon points=\"{band}\" fill=\"{color}\" opacity=\".13\"/>");
            }
            let line = points(series.points.iter().map(|(x, m)| (x_of(*x), y_of(m.value))));
            let _ = write!(
                svg,
                "<polyline class=\"b\" points=\"{line}\" stroke=\"{color}\" stroke-width=\"{width}\"{dash}/>"
            );
            for (x, m) in &series.points {
                let (cx, cy) = (x_of(*x), y_of(m.value));
                let tip = format!(
                    "{}: {} ({} to {})",
                    series.name,
                    (self.number)(m.value),
                    (self.number)(m.low),
                    (self.number)(m.high)
                );
                let _ = write!(
                    svg,
                    "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"{width:.1}\" fill=\"{color}\"><title>{}</title></circle>",
                    escape(&tip)
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Bars {
    /// Draws it.
    pub fn draw(&self) -> String {
        let columns = if self.panels.len() == 1 { 1 } else { 2 };
        let panel_width = (WIDTH - 28.0 * (columns - 1) as f64) / columns as f64;
        let rows: Vec<usize> =
            self.panels.chunks(columns).map(|row| row.iter().map(|(_, bars)| bars.len()).max().unwrap_or(0)).collect();
        let legend_height = if self.parts.is_some() { 22.0 } else { 0.0 };
        let has_names = self.panels.iter().any(|(name, _)| !name.is_empty());
        let name_height = if has_names { 26.0 } else { 8.0 };
        let height: f64 =
            32.0 + legend_height + rows.iter().map(|n| name_height + *n as f64 * BAR_STEP + 12.0).sum::<f64>();
        let mut svg = open(height, &self.title);
        if let Some((first, second)) = self.parts {
            let _ = write!(
                svg,
                "<rect x=\"0\" y=\"32\" width=\"14\" height=\"11\" fill=\"#6e7781\"/><text class=\"s\" x=\"20\" y=\"42\">{first}</text>\
                 <rect x=\"120\" y=\"32\" width=\"14\" height=\"11\" fill=\"#6e7781\" opacity=\".5\"/><text class=\"s\" x=\"140\" y=\"42\">{second}</text>"
            );
        }
        let mut y = 32.0 + legend_height;
        for (row, panels) in self.panels.chunks(columns).enumerate() {
            for (column, (name, bars)) in panels.iter().enumerate() {
                let x = column as f64 * (panel_width + 28.0);
                let _ = write!(svg, "<text class=\"s\" x=\"{x}\" y=\"{:.0}\">{}</text>", y + 16.0, escape(name));
                self.draw_panel(&mut svg, x, y + name_height, panel_width, bars);
            }
            y += name_height + rows[row] as f64 * BAR_STEP + 12.0;
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_panel(&self, svg: &mut String, left: f64, top: f64, width: f64, bars: &[Bar]) {
        let longest = scale_end(bars);
        let (bar_left, bar_width) = (left + NAME_WIDTH, width - NAME_WIDTH - VALUE_WIDTH);
        for (at, bar) in bars.iter().enumerate() {
            let y = top + at as f64 * BAR_STEP;
            let class = if is_ours(&bar.name) { "o" } else { "" };
            let _ = write!(
                svg,
                "<text class=\"{class}\" text-anchor=\"end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
                bar_left - 8.0,
                y + 14.0,
                escape(&bar.name)
            );
            let color = color(&bar.name);
            let is_cut = bar.value.value > longest;
            let length = |value: f64| (bar_width * value / longest).clamp(0.0, bar_width);
            let whole = length(bar.value.value).max(1.0);
            // A bar that is cut keeps its parts in proportion.
            let part = bar.part.map_or(whole, |part| whole * part / bar.value.value.max(1e-12)).min(whole);
            let opacity = if bar.part.is_some() { ".5" } else { "1" };
            let _ = write!(
                svg,
                "<rect x=\"{bar_left:.1}\" y=\"{:.1}\" width=\"{whole:.1}\" height=\"15\" fill=\"{color}\" opacity=\"{opacity}\" rx=\"2\"/>",
                y + 2.0
            );
            if bar.part.is_some() {
                let _ = write!(
                    svg,
                    "<rect x=\"{bar_left:.1}\" y=\"{:.1}\" width=\"{part:.1}\" height=\"15\" fill=\"{color}\" rx=\"2\"/>",
                    y + 2.0
                );
            }
            let (low, high) = (bar_left + length(bar.value.low), bar_left + length(bar.value.high));
            if is_cut {
                let x = bar_left + bar_width * 0.85;
                let _ = write!(svg, "<path class=\"c\" d=\"M{x:.1} {y:.1}l5 10l-5 10\"/>", y = y - 0.5);
            } else if high - low > 1.0 {
                let middle = y + 9.5;
                let _ = write!(
                    svg,
                    "<path class=\"w\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v6M{high:.1} {:.1}v6\"/>",
                    middle - 3.0,
                    middle - 3.0
                );
            }
            let text_at = bar_left + whole.max(high - bar_left) + 7.0;
            let _ = write!(
                svg,
                "<text class=\"s {class}\" x=\"{text_at:.1}\" y=\"{:.1}\">{}</text>",
                y + 14.0,
                (self.number)(bar.value.value)
            );
        }
    }
}

/// Where the scale of a panel ends. Bars far beyond the others are cut, or the others could not be told apart.
fn scale_end(bars: &[Bar]) -> f64 {
    let mut ends: Vec<f64> = bars.iter().map(|bar| bar.value.high.max(bar.value.value)).collect();
    ends.sort_by(f64::total_cmp);
    let middle = ends.get(ends.len() / 2).copied().unwrap_or(1.0);
    ends.into_iter().rfind(|end| *end <= middle * 5.0).unwrap_or(middle).max(1e-12)
}

const BAR_STEP: f64 = 21.0;
const NAME_WIDTH: f64 = 104.0;
const VALUE_WIDTH: f64 = 78.0;

/// Names with their colours, wrapped; and how high that is.
fn legend<'a>(names: impl Iterator<Item = &'a str>, top: f64) -> (String, f64) {
    let (mut svg, mut x, mut y) = (String::new(), 0.0, top);
    for name in names {
        let width = 34.0 + name.len() as f64 * 7.6;
        if x + width > WIDTH {
            (x, y) = (0.0, y + 19.0);
        }
        let class = if is_ours(name) { "o" } else { "" };
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"16\" height=\"5\" rx=\"2\" fill=\"{}\"/>",
            y + 2.0,
            color(name)
        );
        let _ =
            write!(svg, "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 21.0, y + 9.0, escape(name));
        x += width;
    }
    (svg, y - top + 30.0)
}

/// The ends of an axis, and its marks.
fn axis(values: &[f64], scale: Scale) -> (f64, f64, Vec<f64>) {
    let high = values.iter().copied().fold(0.0, f64::max).max(1e-9);
    if scale == Scale::Log {
        let low = values.iter().copied().filter(|v| *v > 0.0).fold(high, f64::min);
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let marks = (first..=last.max(first + 1)).map(|power| 10f64.powi(power)).collect();
        return (10f64.powi(first), 10f64.powi(last.max(first + 1)), marks);
    }
    let step = nice_step(high / 5.0);
    let count = (high / step).ceil();
    (0.0, count * step, (0..=count as u32).map(|n| f64::from(n) * step).collect())
}

/// 1, 2 or 5 times a power of ten, at least this.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= least * 0.999).unwrap_or(power * 10.0)
}

/// From 0 to 1.
fn place(value: f64, low: f64, high: f64, scale: Scale) -> f64 {
    let part = match scale {
        Scale::Linear => (value - low) / (high - low),
        Scale::Log => (value.max(low).ln() - low.ln()) / (high.ln() - low.ln()),
    };
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
}

fn points(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// What this report is about.
pub fn is_ours(name: &str) -> bool {
    name == "sprat"
}

/// The same colour for a server in all charts.
pub fn color(name: &str) -> &'static str {
    match name {
        "sprat" => "#e5484d",
        "floor" => "#8b949e",
        "hyper" => "#2f81f7",
        "axum" => "#7cb7ff",
        "actix-web" => "#1b5fa8",
        "may_minihttp" => "#e3a008",
        "tiny_http" => "#a5765a",
        "node-http" => "#57ab5a",
        "express" => "#2f6f3e",
        "bun" => "#d687d6",
        "elysia" => "#9a4fc4",
        "deno" => "#6b7f8c",
        "java-cached" => "#f08a5d",
        "java-fixed" => "#b8532b",
        "go" => "#12b5b0",
        "nginx" => "#3f8f6b",
        _ => "#777777",
    }
}

/// Text as HTML and SVG take it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_at_zero_and_ends_above_the_highest() {
        assert_eq!(axis(&[7.0, 93.0], Scale::Linear), (0.0, 100.0, vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0]));
        assert_eq!(axis(&[30.0, 2000.0], Scale::Log), (10.0, 10_000.0, vec![10.0, 100.0, 1000.0, 10_000.0]));
    }

    #[test]
    fn charts_of_nothing_are_still_drawn() {
        let bars = Bars {
            title: "a < b".into(),
            parts: None,
            number: |n| n.to_string(),
            panels: vec![(String::new(), Vec::new())],
        };
        assert!(bars.draw().contains("a &lt; b"));
        let median = Median { value: 0.0, low: 0.0, high: 0.0, count: 1 };
        let series = Series { name: "x".into(), points: vec![(1.0, median)] };
        let lines = Lines {
            title: String::new(),
            x: String::new(),
            y: String::new(),
            ticks: vec![(1.0, "1".into())],
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            number: |n| n.to_string(),
            series: vec![series],
        };
        assert!(!lines.draw().contains("NaN"));
    }
}
