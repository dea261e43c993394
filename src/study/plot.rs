//! Small diagrams as SVG: lines and marks over two linear axes, with units and a legend.
//!
//! The picture has no background and takes the page's text colour (`currentColor`); as a file of its own it is dark on
//! a light system and light on a dark one. The colours of series are readable on both, and each series has a mark of
//! its own, so that they can be told apart without colours. Numbers are printed with two decimals: the same data give
//! the same bytes.

use std::fmt::Write;

use serde::Serialize;
use watershed_scenario_interface::summary::decimals;

pub use watershed_probe::ladder::escape;

/// A diagram.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit.
    pub y: String,
    /// Levels instead of numbers on the horizontal axis: a point's x is the number of its level, from 0.
    pub levels: Vec<String>,
    /// The greatest value shown; `None`: that of the data.
    pub y_max: Option<f64>,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Points of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// Half-widths of intervals around the points; empty for none.
    pub half_widths: Vec<f64>,
    /// Marks only: points from somewhere else.
    pub marks_only: bool,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;
/// A line of the legend, which stands below the plot in two columns so that it hides nothing.
const LEGEND_LINE: f64 = 22.0;
/// Readable on white and on black.
const COLOURS: [&str; 6] = ["#2a7fd4", "#d9541e", "#2e9e5b", "#a05cc9", "#c28a00", "#d1478c"];

/// A step of 1, 2 or 5 times a power of ten that divides a range into four to ten parts.
fn step(range: f64) -> f64 {
    let mut step = 1e-9;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            if range / (step * factor) <= 10.0 {
                return step * factor;
            }
        }
        step *= 10.0;
    }
}

/// A number on an axis, without a tail of zeros.
fn label(number: f64) -> String {
    decimals(number, 6)
}

impl Plot {
    /// The picture.
    pub fn svg(&self) -> String {
        let points =
            || self.series.iter().flat_map(|series| &series.points).filter(|(x, y)| x.is_finite() && y.is_finite());
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let x_step = step(most(&mut points().map(|point| point.0)).max(1e-6));
        let (x_step, x_max) = if self.levels.is_empty() {
            (x_step, (most(&mut points().map(|point| point.0)).max(1e-6) / x_step).ceil() * x_step)
        } else {
            (1.0, (self.levels.len() as f64 - 1.0).max(1.0))
        };
        let y_most = self.y_max.unwrap_or_else(|| most(&mut points().map(|point| point.1))).max(1e-6);
        let y_step = step(y_most);
        let y_max = (y_most / y_step).ceil() * y_step;
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        // Levels stand in the middle of their shares of the axis.
        let (margin, shares) = if self.levels.is_empty() { (0.0, x_max) } else { (0.5, x_max + 1.0) };
        let at_x = |x: f64| LEFT + (x + margin) / shares * width;
        let at_y = |y: f64| TOP + height - y / y_max * height;

        let mut out = String::new();
        let whole = HEIGHT + LEGEND_LINE * self.series.len().div_ceil(2) as f64 + 6.0;
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {whole}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
             <style>svg {{ color: #222 }} @media (prefers-color-scheme: dark) {{ svg {{ color: #ddd }} }}</style>\n\
             <defs><clipPath id=\"area\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\"/></clipPath></defs>",
            escape(&self.title)
        );
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"currentColor\">{}</text>",
            escape(&self.title)
        );
        self.axes(&mut out, (x_step, x_max), (y_step, y_max), &at_x, &at_y);
        for (index, series) in self.series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let _ = writeln!(out, "<g clip-path=\"url(#area)\" stroke=\"{colour}\" fill=\"{colour}\">");
            if !series.marks_only && series.points.len() > 1 {
                let line: Vec<String> =
                    series.points.iter().map(|(x, y)| format!("{:.2},{:.2}", at_x(*x), at_y(*y))).collect();
                let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke-width=\"2\"/>", line.join(" "));
            }
            for (at, (x, y)) in series.points.iter().enumerate() {
                if let Some(half) = series.half_widths.get(at).filter(|half| **half > 0.0) {
                    let (x, low, high) = (at_x(*x), at_y(y - half), at_y(y + half));
                    let _ = writeln!(out, "<path d=\"M{x:.2} {low:.2}V{high:.2}\" stroke-width=\"1\"/>");
                }
                mark(&mut out, index, series.marks_only, at_x(*x), at_y(*y));
            }
            out.push_str("</g>\n");
            let x = LEFT + (index % 2) as f64 * width / 2.0;
            let y = HEIGHT + LEGEND_LINE * (index / 2) as f64 + 10.0;
            let _ = writeln!(out, "<g stroke=\"{colour}\" fill=\"{colour}\">");
            mark(&mut out, index, series.marks_only, x + 6.0, y - 4.5);
            let _ = writeln!(
                out,
                "</g>\n<text x=\"{}\" y=\"{y}\" fill=\"currentColor\">{}</text>",
                x + 20.0,
                escape(&series.name)
            );
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(
        &self,
        out: &mut String,
        (x_step, x_max): (f64, f64),
        (y_step, y_max): (f64, f64),
        at_x: &dyn Fn(f64) -> f64,
        at_y: &dyn Fn(f64) -> f64,
    ) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let _ = writeln!(out, "<g stroke=\"currentColor\" stroke-opacity=\"0.2\">");
        let ticks = |step: f64, max: f64| (0..=(max / step).round() as u32).map(move |tick| f64::from(tick) * step);
        for x in ticks(x_step, x_max) {
            let _ = writeln!(out, "<path d=\"M{:.2} {TOP}V{bottom}\"/>", at_x(x));
        }
        for y in ticks(y_step, y_max) {
            let _ = writeln!(out, "<path d=\"M{LEFT} {:.2}H{right}\"/>", at_y(y));
        }
        let _ =
            writeln!(out, "</g>\n<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"currentColor\"/>");
        let _ = writeln!(out, "<g fill=\"currentColor\" text-anchor=\"middle\">");
        for (number, x) in ticks(x_step, x_max).enumerate() {
            let name = if self.levels.is_empty() { Some(label(x)) } else { self.levels.get(number).map(|l| escape(l)) };
            if let Some(name) = name {
                let _ = writeln!(out, "<text x=\"{:.2}\" y=\"{}\">{name}</text>", at_x(x), bottom + 20.0);
            }
        }
        let middle = LEFT + (right - LEFT) / 2.0;
        let _ = writeln!(out, "<text x=\"{middle}\" y=\"{}\">{}</text>", bottom + 44.0, escape(&self.x));
        let middle = TOP + (bottom - TOP) / 2.0;
        let _ = writeln!(
            out,
            "<text transform=\"translate(18 {middle}) rotate(-90)\">{}</text>\n</g>\n<g fill=\"currentColor\" text-anchor=\"end\">",
            escape(&self.y)
        );
        for y in ticks(y_step, y_max) {
            let _ = writeln!(out, "<text x=\"{}\" y=\"{:.2}\">{}</text>", LEFT - 8.0, at_y(y) + 4.5, label(y));
        }
        out.push_str("</g>\n");
    }
}

/// The mark of a series.
fn mark(out: &mut String, series: usize, hollow: bool, x: f64, y: f64) {
    let fill = if hollow { " fill=\"none\" stroke-width=\"1.8\"" } else { " stroke=\"none\"" };
    let _ = match series % 3 {
        0 => writeln!(out, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"4\"{fill}/>"),
        1 => writeln!(out, "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"8\" height=\"8\"{fill}/>", x - 4.0, y - 4.0),
        _ => writeln!(out, "<path d=\"M{x:.2} {:.2}l5 9h-10z\"{fill}/>", y - 5.0),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(
            [step(0.6), step(1.0), step(88.0), step(7.0), step(500.0)].map(label),
            ["0.1", "0.1", "10", "1", "50"]
        );
        assert_eq!(label(0.30000000000000004), "0.3");
    }

    #[test]
    fn a_plot_has_its_series_axes_and_legend() {
        let series = |name: &str, marks_only| Series {
            name: name.into(),
            points: vec![(0.1, 20.0), (0.2, 25.0), (0.4, 90.0)],
            half_widths: vec![0.5, 0.0, 2.0],
            marks_only,
        };
        let plot = Plot {
            title: "a < b & c".into(),
            x: "offered load (flits a node and cycle)".into(),
            y: "latency (cycles)".into(),
            levels: Vec::new(),
            y_max: Some(80.0),
            series: vec![series("ours", false), series("theirs", true)],
        };
        let svg = plot.svg();
        assert_eq!(svg, plot.svg());
        assert_eq!(svg.matches("<polyline").count(), 1, "marks alone have no line");
        assert_eq!(
            (svg.matches("<circle").count(), svg.matches("<rect x").count()),
            (4, 5),
            "one more each in legend, clip"
        );
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("latency (cycles)") && svg.contains(">theirs<"));
        assert!(svg.contains("prefers-color-scheme: dark") && svg.contains("currentColor"));
        // 0.2 of 0.4 is the middle of the axis, 20 of 80 a quarter of the height from below.
        assert!(svg.contains("points=\"227.50,295.00 385.00,273.75"), "{svg}");
    }

    #[test]
    fn levels_stand_at_equal_distances() {
        let plot = Plot {
            levels: ["1", "16", "256"].map(String::from).to_vec(),
            series: vec![Series { points: vec![(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)], ..Series::default() }],
            ..Plot::default()
        };
        let svg = plot.svg();
        for (x, name) in [("175.00", "1"), ("385.00", "16"), ("595.00", "256")] {
            assert!(svg.contains(&format!("<text x=\"{x}\" y=\"400\">{name}</text>")), "{svg}");
        }
    }
}
