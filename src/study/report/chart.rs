//! Diagrams of a report: pieces of HTML with inline SVG. Colours are the page's, so they follow light and dark. Legends
//! are above the picture and numbers outside of its area, so that nothing covers the data.

use std::fmt::Write;

use crate::plot::escape;
use watershed_scenario_interface::summary::decimals;

/// A line or a cloud of points.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The points; on an axis of levels x is the number of the level.
    pub points: Vec<(f64, f64)>,
    /// No line between the points.
    pub marks_only: bool,
    /// What a pointer over a point shows; as many as there are points, or none.
    pub hints: Vec<String>,
}

/// A diagram over two axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The horizontal axis with its unit.
    pub x: String,
    /// The vertical axis with its unit.
    pub y: String,
    /// Levels instead of numbers on the horizontal axis.
    pub levels: Vec<String>,
    /// The vertical axis is logarithmic; values that are not positive are left out.
    pub log_y: bool,
    /// What is drawn.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 52.0;

/// A step of 1, 2 or 5 times a power of ten that divides a range into three to eight parts.
fn step(range: f64) -> f64 {
    let power = 10f64.powf((range / 8.0).max(1e-12).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| range / step <= 8.0).unwrap_or(power)
}

/// A number with a suffix for thousands and millions, as short as it can be.
pub fn short(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    format!("{}{suffix}", decimals(scaled, digits))
}

/// Axes with their ticks: from where to where, and where numbers stand.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    log: bool,
}

impl Axis {
    /// An even axis over these values; it begins at 0 if that leaves at least `share` of it to the data.
    fn even(low: f64, high: f64, share: f64) -> Self {
        let low = if low >= 0.0 && low < share * high || high <= low { low.min(0.0) } else { low };
        let step = step((high - low).max(1e-9));
        let low = (low / step).floor() * step;
        let high = ((high / step).ceil() * step).max(low + step);
        let count = ((high - low) / step).round() as u32;
        Self { low, high, ticks: (0..=count).map(|tick| low + f64::from(tick) * step).collect(), log: false }
    }

    /// A logarithmic axis from a 1, 2 or 5 times a power of ten to another one.
    fn log(low: f64, high: f64) -> Self {
        let all = (-12..=18).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)));
        let all: Vec<f64> = all.collect();
        let from = all.iter().rposition(|tick| *tick <= low * (1.0 + 1e-12)).unwrap_or(0);
        let to = all.iter().position(|tick| *tick >= high * (1.0 - 1e-12)).unwrap_or(all.len() - 1).max(from + 1);
        let span = &all[from..=to];
        let whole = |tick: &f64| (tick.log10() - tick.log10().round()).abs() < 1e-9;
        // Many decades have numbers at powers of ten only.
        let ticks = if span.len() <= 10 { span.to_vec() } else { span.iter().copied().filter(whole).collect() };
        Self { low: span[0], high: span[span.len() - 1], ticks, log: true }
    }

    /// Where a value stands, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// The mark of a series: shapes differ too, for those who do not tell colours apart.
fn mark(series: usize, (x, y): (f64, f64), size: f64, inside: &str) -> String {
    let class = series % 12;
    match series % 4 {
        0 => format!(
            "<circle class=\"mark c{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\">{inside}</circle>",
            4.0 * size
        ),
        1 => {
            let side = 7.4 * size;
            let (left, top) = (x - side / 2.0, y - side / 2.0);
            format!(
                "<rect class=\"mark c{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{side:.1}\" height=\"{side:.1}\">{inside}</rect>"
            )
        }
        2 => {
            let (top, half, height) = (y - 5.2 * size, 4.8 * size, 8.4 * size);
            let width = 2.0 * half;
            format!(
                "<path class=\"mark c{class}\" d=\"M{x:.1} {top:.1}l{half:.1} {height:.1}h-{width:.1}z\">{inside}</path>"
            )
        }
        _ => {
            let (top, half) = (y - 5.2 * size, 5.2 * size);
            format!(
                "<path class=\"mark c{class}\" d=\"M{x:.1} {top:.1}l{half:.1} {half:.1}l-{half:.1} {half:.1}l-{half:.1} -{half:.1}z\">{inside}</path>"
            )
        }
    }
}

/// A legend whose entries look like the series.
pub fn legend(names: &[&str]) -> String {
    let mut out = String::from("<div class=\"legend\">");
    for (index, name) in names.iter().enumerate() {
        let _ = write!(
            out,
            "<span><svg class=\"key\" viewBox=\"0 0 24 12\" aria-hidden=\"true\"><path class=\"line c{}\" d=\"M0 6H24\"/>{}</svg>{}</span>",
            index % 12,
            mark(index, (12.0, 6.0), 1.0, ""),
            escape(name)
        );
    }
    out + "</div>\n"
}

impl Chart {
    /// The points of a series that can be drawn.
    fn points<'a>(&self, series: &'a Series) -> impl Iterator<Item = (usize, (f64, f64))> + 'a {
        let log = self.log_y;
        let there = move |(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && (!log || *y > 0.0);
        series.points.iter().copied().enumerate().filter(move |(_, point)| there(point))
    }

    /// The diagram as a `figure`.
    pub fn html(&self) -> String {
        let all = || self.series.iter().flat_map(|series| self.points(series)).map(|(_, point)| point);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
        };
        let (x_low, x_high) = range(&mut all().map(|point| point.0));
        let (low, high) = range(&mut all().map(|point| point.1));
        if !x_low.is_finite() || !low.is_finite() {
            return String::new();
        }
        // An axis begins at 0 unless that would press all data into its upper part.
        let y_axis = if self.log_y { Axis::log(low, high) } else { Axis::even(low, high, 0.7) };
        let x_axis = if self.levels.is_empty() {
            Axis::even(x_low, x_high, 0.5)
        } else {
            Axis { low: -0.5, high: self.levels.len() as f64 - 0.5, ticks: Vec::new(), log: false }
        };
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let at_x = |x: f64| LEFT + x_axis.place(x) * width;
        let at_y = |y: f64| TOP + height - y_axis.place(y) * height;

        let mut out = format!("<figure class=\"chart\"><figcaption>{}</figcaption>\n", escape(&self.title));
        if self.series.len() > 1 {
            out += &legend(&self.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>());
        }
        let _ =
            writeln!(out, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title>", escape(&self.title));
        let bottom = HEIGHT - BOTTOM;
        for &value in &y_axis.ticks {
            let y = at_y(value);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                short(value)
            );
        }
        for &value in &x_axis.ticks {
            let _ = writeln!(
                out,
                "<text class=\"middle\" x=\"{:.1}\" y=\"{}\">{}</text>",
                at_x(value),
                bottom + 18.0,
                short(value)
            );
        }
        for number in 0..self.levels.len() {
            let _ = writeln!(out, "<path class=\"grid\" d=\"M{:.1} {TOP}V{bottom}\"/>", at_x(number as f64));
        }
        // Only as many levels are named as have room.
        let longest = self.levels.iter().map(|level| level.chars().count()).max().unwrap_or(1).max(2);
        let room = width / (longest + 1) as f64 / 9.0;
        let every = (self.levels.len() as f64 / room.max(1.0)).ceil().max(1.0) as usize;
        for (number, level) in self.levels.iter().enumerate().step_by(every) {
            let _ = writeln!(
                out,
                "<text class=\"middle\" x=\"{:.1}\" y=\"{}\">{}</text>",
                at_x(number as f64),
                bottom + 18.0,
                escape(level)
            );
        }
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{}\"/>", WIDTH - RIGHT);
        let _ = writeln!(
            out,
            "<text class=\"middle name\" x=\"{:.1}\" y=\"{}\">{}</text>",
            LEFT + width / 2.0,
            HEIGHT - 10.0,
            escape(&self.x)
        );
        let _ = writeln!(
            out,
            "<text class=\"middle name\" transform=\"translate(14 {:.1}) rotate(-90)\">{}</text>",
            TOP + height / 2.0,
            escape(&self.y)
        );
        for (index, series) in self.series.iter().enumerate() {
            if !series.marks_only {
                let line: Vec<String> =
                    self.points(series).map(|(_, (x, y))| format!("{:.1},{:.1}", at_x(x), at_y(y))).collect();
                let _ = writeln!(out, "<polyline class=\"line c{}\" points=\"{}\"/>", index % 12, line.join(" "));
            }
            if series.marks_only || series.points.len() <= 40 {
                for (at, (x, y)) in self.points(series) {
                    let hint =
                        series.hints.get(at).map(|hint| format!("<title>{}</title>", escape(hint))).unwrap_or_default();
                    // Points stand at their x. Of those that coincide the first is the largest, so that none hides another.
                    let there = |other: &Series| self.points(other).any(|(_, point)| point == (x, y));
                    let above = self.series[index + 1..].iter().filter(|other| there(other)).count();
                    let size = 1.0 + 0.6 * above as f64;
                    let _ = writeln!(out, "{}", mark(index, (at_x(x), at_y(y)), size, &hint));
                }
            }
        }
        let _ = writeln!(out, "</svg>{}</figure>", self.embedded());
        out
    }

    /// The series as JSON, from which scripts draw the diagram anew so that it zooms.
    fn embedded(&self) -> String {
        let series = self.series.iter().map(|series| {
            let points: Vec<(f64, f64)> = self.points(series).map(|(_, point)| point).collect();
            serde_json::json!({ "name": series.name, "marks": series.marks_only, "points": points })
        });
        let json = serde_json::json!({
            "x": self.x, "y": self.y, "log": self.log_y, "levels": self.levels, "series": series.collect::<Vec<_>>(),
        });
        format!("<script type=\"application/json\" class=\"series\">{}</script>", super::explore::embedded(&json))
    }
}

/// Parts of a whole as one bar with a legend that names each part, its number and its share.
pub fn stack(title: &str, unit: &str, parts: &[(&str, u64)]) -> String {
    let total: u64 = parts.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return String::new();
    }
    let mut out = format!(
        "<figure class=\"stack\"><figcaption>{}: {total} {unit}</figcaption>\n<div class=\"bar\">",
        escape(title)
    );
    let shown = || parts.iter().filter(|(_, count)| *count > 0).enumerate();
    for (index, (name, count)) in shown() {
        let _ =
            write!(out, "<i class=\"c{}\" style=\"flex:{count}\" title=\"{}: {count}\"></i>", index % 12, escape(name));
    }
    out.push_str("</div>\n<div class=\"legend\">");
    for (index, (name, count)) in shown() {
        let share = *count as f64 / total as f64 * 100.0;
        let _ = write!(out, "<span><i class=\"c{}\"></i>{} {count} ({share:.1} %)</span>", index % 12, escape(name));
    }
    out.push_str("</div></figure>\n");
    out
}

/// Horizontal bars, longest as wide as the figure.
pub fn bars(title: &str, rows: &[(String, f64, String)]) -> String {
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    if rows.is_empty() || most <= 0.0 {
        return String::new();
    }
    let mut out = format!("<figure class=\"bars\"><figcaption>{}</figcaption><table>\n", escape(title));
    for (name, value, text) in rows {
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"wide\"><i class=\"c0\" style=\"width:{:.1}%\"></i></td><td>{}</td></tr>",
            escape(name),
            value / most * 100.0,
            escape(text)
        );
    }
    out.push_str("</table></figure>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_steps_round() {
        let numbers = [0.0, 0.5, 7.0, 12.5, 640.0, 2568.0, 43_000.0, 6_974_880.0];
        assert_eq!(numbers.map(short).join(" "), "0 0.5 7 12.5 640 2568 43k 6.97M");
        assert_eq!([7.0, 0.3, 900.0, 16.0].map(|range| short(step(range))).join(" "), "1 0.05 200 2");
    }

    #[test]
    fn a_chart_has_axes_names_and_all_points_inside() {
        let series = |name: &str| Series {
            name: name.into(),
            points: vec![(0.0, 3.0), (1.0, 9.0), (2.0, 4.5)],
            ..Series::default()
        };
        let chart = Chart {
            title: "a < b".into(),
            x: "stages".into(),
            y: "latency (cycles)".into(),
            levels: vec!["1".into(), "2".into(), "3".into()],
            log_y: false,
            series: vec![series("one"), series("two")],
        };
        let html = chart.html();
        assert!(html.contains("a &lt; b") && html.contains("latency (cycles)") && html.contains(">two<"), "{html}");
        // Three points each, and one in the legend; the second series has squares.
        assert_eq!((html.matches("<polyline").count(), html.matches("class=\"mark").count()), (2, 8));
        assert_eq!((html.matches("<circle").count(), html.matches("<rect").count()), (4, 4));
        let plot = html.split("role=\"img\"").nth(1).unwrap();
        for part in plot.split("cx=\"").skip(1) {
            let x: f64 = part.split('"').next().unwrap().parse().unwrap();
            assert!((LEFT..=WIDTH - RIGHT).contains(&x));
        }
        assert_eq!(Chart::default().html(), "", "no data, no diagram");
    }

    #[test]
    fn points_stand_at_their_x_and_hide_none_of_the_same_height() {
        let series =
            |name: &str| Series { name: name.into(), points: vec![(0.0, 5.0), (1.0, 7.0)], ..Series::default() };
        let (levels, series) = (vec!["8".into(), "16".into()], vec![series("one"), series("two"), series("three")]);
        let html = Chart { levels, series, ..Chart::default() }.html();
        let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
        // Lines of the grid, circles and squares have the same centres.
        let grid: Vec<f64> = (html.split("class=\"grid\" d=\"M").skip(1))
            .filter_map(|part| part.split_once(' ').filter(|(_, rest)| rest.starts_with("12V"))?.0.parse().ok())
            .collect();
        let plot = html.split("role=\"img\"").nth(1).unwrap();
        let centres: Vec<f64> = plot.split("cx=\"").skip(1).map(number).collect();
        assert_eq!(centres, grid);
        let squares: Vec<f64> = (plot.split("<rect").skip(1))
            .map(|part| {
                let of = |key: &str| number(part.split(&format!(" {key}=\"")).nth(1).unwrap());
                of("x") + of("width") / 2.0
            })
            .collect();
        assert!(squares.len() == 2 && squares.iter().zip(&grid).all(|(x, at)| (x - at).abs() < 0.11), "{squares:?}");
        // The first of three that coincide is the largest, the last as large as if it were alone.
        let radius = number(plot.split(" r=\"").nth(1).unwrap());
        let side = number(plot.split(" width=\"").nth(1).unwrap());
        assert!(radius > 8.0 && (10.0..14.0).contains(&side), "{radius} {side}");
    }

    #[test]
    fn a_logarithmic_axis_has_equal_steps_for_equal_factors() {
        let axis = Axis::log(95.0, 11_061.0);
        assert_eq!((axis.low, axis.high), (50.0, 20_000.0));
        assert!((axis.place(1000.0) - axis.place(100.0) - (axis.place(10_000.0) - axis.place(1000.0))).abs() < 1e-12);
        assert_eq!(axis.ticks, [50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0]);
        let wide = Axis::log(1.0, 1e6);
        assert_eq!(wide.ticks, [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        let series =
            Series { name: "a".into(), points: vec![(0.0, 0.0), (1.0, 10.0), (2.0, 100.0)], ..Series::default() };
        let html = Chart { log_y: true, series: vec![series], ..Chart::default() }.html();
        assert_eq!(html.matches("class=\"mark").count(), 2, "nothing has a logarithm");
    }

    #[test]
    fn a_stack_names_its_parts_with_their_shares() {
        let html = stack("latency", "cycles", &[("climb", 30), ("nothing", 0), ("reduce", 10)]);
        assert!(html.contains("climb 30 (75.0 %)") && html.contains("flex:10") && !html.contains("nothing"), "{html}");
    }
}
