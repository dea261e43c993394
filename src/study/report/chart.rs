//! Diagrams of a report: pieces of HTML with inline SVG. Colours are the page's, so they follow light and dark; legends stand
//! above the picture and numbers outside of its area, so that nothing covers the data.

use std::fmt::Write;

use super::escape;

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
    /// What is drawn.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
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
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

impl Chart {
    /// The diagram as a `figure`.
    pub fn html(&self) -> String {
        let all =
            || self.series.iter().flat_map(|series| &series.points).filter(|(x, y)| x.is_finite() && y.is_finite());
        let (mut x_low, mut x_high) =
            all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
        let (mut low, high) =
            all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, y)| (low.min(*y), high.max(*y)));
        if !x_low.is_finite() || !low.is_finite() {
            return String::new();
        }
        // An axis begins at 0 unless that would press all data into its upper part.
        low = if low >= 0.0 && low < 0.7 * high || high <= low { low.min(0.0) } else { low };
        let y_step = step((high - low).max(1e-9));
        let (y_low, y_high) = (
            (low / y_step).floor() * y_step,
            ((high / y_step).ceil() * y_step).max((low / y_step).floor() * y_step + y_step),
        );
        let x_step = step((x_high - x_low).max(1e-9));
        if self.levels.is_empty() {
            x_low = if x_low >= 0.0 && x_low < 0.5 * x_high { 0.0 } else { (x_low / x_step).floor() * x_step };
            x_high = ((x_high / x_step).ceil() * x_step).max(x_low + x_step);
        } else {
            (x_low, x_high) = (-0.5, self.levels.len() as f64 - 0.5);
        }
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let at_x = |x: f64| LEFT + (x - x_low) / (x_high - x_low) * width;
        let at_y = |y: f64| TOP + height - (y - y_low) / (y_high - y_low) * height;

        let mut out = format!("<figure class=\"chart\"><figcaption>{}</figcaption>\n", escape(&self.title));
        if self.series.len() > 1 {
            out.push_str("<div class=\"legend\">");
            for (index, series) in self.series.iter().enumerate() {
                let _ = write!(out, "<span><i class=\"c{}\"></i>{}</span>", index % 6, escape(&series.name));
            }
            out.push_str("</div>\n");
        }
        let _ =
            writeln!(out, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title>", escape(&self.title));
        let bottom = HEIGHT - BOTTOM;
        let ticks = ((y_high - y_low) / y_step).round() as u32;
        for tick in 0..=ticks {
            let value = y_low + f64::from(tick) * y_step;
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
        if self.levels.is_empty() {
            for tick in 0..=((x_high - x_low) / x_step).round() as u32 {
                let value = x_low + f64::from(tick) * x_step;
                let _ = writeln!(
                    out,
                    "<text class=\"middle\" x=\"{:.1}\" y=\"{}\">{}</text>",
                    at_x(value),
                    bottom + 18.0,
                    short(value)
                );
            }
        } else {
            // Only as many levels are named as have room.
            let room =
                width / self.levels.iter().map(|level| level.chars().count()).max().unwrap_or(1).max(2) as f64 / 8.0;
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
            let class = index % 6;
            if !series.marks_only {
                let line: Vec<String> =
                    series.points.iter().map(|(x, y)| format!("{:.1},{:.1}", at_x(*x), at_y(*y))).collect();
                let _ = writeln!(out, "<polyline class=\"line c{class}\" points=\"{}\"/>", line.join(" "));
            }
            if series.marks_only || series.points.len() <= 40 {
                for (at, (x, y)) in series.points.iter().enumerate() {
                    let hint =
                        series.hints.get(at).map(|hint| format!("<title>{}</title>", escape(hint))).unwrap_or_default();
                    let _ = writeln!(
                        out,
                        "<circle class=\"mark c{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\">{hint}</circle>",
                        at_x(*x),
                        at_y(*y)
                    );
                }
            }
        }
        out.push_str("</svg></figure>\n");
        out
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
            series: vec![series("one"), series("two")],
        };
        let html = chart.html();
        assert!(html.contains("a &lt; b") && html.contains("latency (cycles)") && html.contains(">two<"), "{html}");
        assert_eq!((html.matches("<polyline").count(), html.matches("<circle").count()), (2, 6));
        for part in html.split("cx=\"").skip(1) {
            let x: f64 = part.split('"').next().unwrap().parse().unwrap();
            assert!((LEFT..=WIDTH - RIGHT).contains(&x));
        }
        assert_eq!(Chart::default().html(), "", "no data, no diagram");
    }

    #[test]
    fn a_stack_names_its_parts_with_their_shares() {
        let html = stack("latency", "cycles", &[("climb", 30), ("nothing", 0), ("reduce", 10)]);
        assert!(html.contains("climb 30 (75.0 %)") && html.contains("flex:10") && !html.contains("nothing"), "{html}");
    }
}
