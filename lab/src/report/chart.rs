//! Line charts with two logarithmic axes, as SVG.
//!
//! plotters draws them in stand-in colours, each of which is then exchanged for a class
//! and the colour it has in light: so one drawing serves light and dark, in a page and as
//! a file of its own. Lines differ by markers and dashes too, not by colour alone.

use std::fmt::Write as _;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Error;

/// A panel's height, in pixels.
const PANEL_HEIGHT: u32 = 330;
const FONT: &str = "sans-serif";
// plotters makes letters a fifth smaller than the size that it is told.
const FONT_SIZE: u32 = 17;
/// Pixels that a character takes on average.
const CHARACTER: f64 = 7.6;
const LEGEND_LINE: u32 = 22;
const LEGEND_SAMPLE: u32 = 40;
const MARGIN: u32 = 10;
const TITLE_HEIGHT: u32 = 30;

/// What plotters says when it fails; its own errors borrow the drawing.
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.to_string())
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look(u8);

impl Look {
    /// What others are compared with.
    pub const BASELINE: Look = Look(0);
    /// The automatic threshold.
    pub const AUTOMATIC: Look = Look(7);

    /// Of the variant at a position among those in rising order of threshold.
    pub fn ordered(position: usize) -> Look {
        Look(1 + u8::try_from(position % 6).unwrap_or(0))
    }

    /// Of variants that have no order.
    pub fn other(position: usize) -> Look {
        Look(8 + u8::try_from(position % 4).unwrap_or(0))
    }

    fn colour(self) -> RGBColor {
        RGBColor(0xFE, 0, self.0)
    }

    /// Of the line between its markers.
    fn line_colour(self) -> RGBColor {
        RGBColor(0xFD, 0, self.0)
    }

    /// The corners of its marker around its place.
    fn corners(self) -> &'static [(i32, i32)] {
        match self.0 {
            0 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
            2 | 8 => &[(0, -6), (5, 4), (-5, 4)],
            3 | 9 => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
            4 | 10 => &[(0, 6), (5, -4), (-5, -4)],
            5 => &[(-5, -2), (5, -2), (5, 2), (-5, 2)],
            6 | 11 => &[(-2, -5), (2, -5), (2, 5), (-2, 5)],
            7 => &[(0, -7), (2, -2), (7, 0), (2, 2), (0, 7), (-2, 2), (-7, 0), (-2, -2)],
            // Round, nearly.
            _ => &[(-2, -5), (2, -5), (5, -2), (5, 2), (2, 5), (-2, 5), (-5, 2), (-5, -2)],
        }
    }

    /// stroke-dasharray; empty for a line without gaps.
    fn dashes(self) -> &'static str {
        match self.0 {
            0 => "7 4",
            2 | 5 | 9 => "9 3",
            3 | 6 | 10 => "3 3",
            7 | 11 => "10 3 2 3",
            _ => "",
        }
    }
}

/// A colour by its place: stand-in, in light, in dark.
struct Ink {
    stand_in: RGBColor,
    light: &'static str,
    dark: &'static str,
}

const TEXT: RGBColor = RGBColor(0xFC, 0, 0);
const MUTED: RGBColor = RGBColor(0xFC, 0, 1);
const GRID: RGBColor = RGBColor(0xFC, 0, 2);
const SURFACE: RGBColor = RGBColor(0xFC, 0, 3);

const INKS: [Ink; 4] = [
    Ink { stand_in: TEXT, light: "#1f2328", dark: "#e6edf3" },
    Ink { stand_in: MUTED, light: "#59636e", dark: "#9198a1" },
    Ink { stand_in: GRID, light: "#dde2e7", dark: "#30363d" },
    Ink { stand_in: SURFACE, light: "#ffffff", dark: "#12171d" },
];

/// Of the looks, in light and in dark: the baseline, six in an order that goes from dark
/// violet to orange, the automatic one, and four without an order. Each has a contrast of
/// at least 3 to the surface.
const LOOKS: [(&str, &str); 12] = [
    ("#1f2328", "#e6edf3"),
    ("#5b2a86", "#c7a6f5"),
    ("#3a5fb0", "#86adf5"),
    ("#1b7f8c", "#5cc5d3"),
    ("#2e8b57", "#69cf96"),
    ("#7d8500", "#c6cf4f"),
    ("#c2570c", "#f5a262"),
    ("#c2187a", "#f58ac6"),
    ("#3a5fb0", "#86adf5"),
    ("#c2570c", "#f5a262"),
    ("#2e8b57", "#69cf96"),
    ("#5b2a86", "#c7a6f5"),
];

/// A place of a line, and how far its repetitions reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// On the horizontal axis.
    pub x: f64,
    /// On the vertical axis.
    pub y: f64,
    /// The least and the most of the repetitions.
    pub reach: (f64, f64),
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// In the legend.
    pub label: String,
    /// How it looks.
    pub look: Look,
    /// From left to right.
    pub points: Vec<Point>,
}

/// Lines that are drawn together.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What it shows.
    pub lines: Vec<Line>,
}

/// What an axis measures.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Beside it.
    pub title: &'static str,
    /// A value as its label.
    pub label: fn(f64) -> String,
}

/// A chart: panels with the same axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its file's name, without the ending.
    pub name: String,
    /// Above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Side by side, or one above the other.
    pub panels: Vec<Panel>,
}

impl Chart {
    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.panels.iter().all(|panel| panel.lines.iter().all(|line| line.points.is_empty()))
    }

    /// As a part of a page whose styles include [`styles`].
    ///
    /// # Errors
    ///
    /// Those of plotters.
    pub fn inline(&self, width: u32) -> Result<String, Error> {
        let drawing = self.draw(width)?;
        let label = escape(&self.title);
        Ok(drawing.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1))
    }

    /// As a file.
    ///
    /// # Errors
    ///
    /// Those of plotters.
    pub fn file(&self, width: u32) -> Result<String, Error> {
        let drawing = self.inline(width)?;
        let (head, rest) = drawing.split_once('>').ok_or("plotters drew nothing")?;
        Ok(format!("{head}>\n<title>{}</title>\n<style>{}</style>{rest}", escape(&self.title), styles()))
    }

    fn draw(&self, width: u32) -> Result<String, Error> {
        let legend = self.legend(width);
        let across = if width >= 700 && self.panels.len() > 1 { 2 } else { 1 };
        let down = self.panels.len().div_ceil(across);
        let legend_height = LEGEND_LINE * u32::try_from(legend.len())? + MARGIN;
        let height = TITLE_HEIGHT + legend_height + PANEL_HEIGHT * u32::try_from(down)?;
        let mut svg = String::new();
        self.draw_on(&mut svg, (width, height), (across, down), &legend).map_err(|Failure(error)| error)?;
        Ok(with_classes(&svg))
    }

    fn draw_on(
        &self,
        svg: &mut String,
        size: (u32, u32),
        grid: (usize, usize),
        legend: &[Vec<&Line>],
    ) -> Result<(), Failure> {
        let root = SVGBackend::with_string(svg, size).into_drawing_area();
        root.fill(&SURFACE)?;
        let title = TextStyle::from((FONT, FONT_SIZE + 2).into_font()).color(&TEXT);
        root.draw_text(&self.title, &title, (i32::try_from(MARGIN)?, 8))?;
        let (_, rest) = root.split_vertically(TITLE_HEIGHT);
        let (top, panels) = rest.split_vertically(LEGEND_LINE * u32::try_from(legend.len())? + MARGIN);
        draw_legend(&top, legend)?;
        let (x, y) = self.ranges();
        for (panel, area) in self.panels.iter().zip(panels.split_evenly((grid.1, grid.0))) {
            self.draw_panel(panel, &area, x.clone(), y.clone())?;
        }
        root.present()?;
        Ok(())
    }

    fn draw_panel(
        &self,
        panel: &Panel,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        x: Range<f64>,
        y: Range<f64>,
    ) -> Result<(), Failure> {
        let style = |size, colour: &'static RGBColor| TextStyle::from((FONT, size).into_font()).color(colour);
        let mut chart = ChartBuilder::on(area)
            .margin(MARGIN)
            .margin_right(MARGIN * 2)
            .caption(&panel.title, style(FONT_SIZE, &TEXT))
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(
                x.clone().log_scale().with_key_points(ticks(&x, 1)),
                y.clone().log_scale().with_key_points(ticks(&y, 3)),
            )?;
        chart
            .configure_mesh()
            .x_desc(self.x.title)
            .y_desc(self.y.title)
            .x_label_formatter(&|value| (self.x.label)(*value))
            .y_label_formatter(&|value| (self.y.label)(*value))
            .label_style(style(FONT_SIZE - 2, &MUTED))
            .axis_desc_style(style(FONT_SIZE - 1, &MUTED))
            .axis_style(MUTED)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for line in &panel.lines {
            let places = line.points.iter().map(|point| (point.x, point.y));
            let reach = line.points.iter().filter(|point| point.reach.0 < point.reach.1);
            let reach = reach.map(|point| {
                PathElement::new([(point.x, point.reach.0), (point.x, point.reach.1)], line.look.colour())
            });
            chart.draw_series(reach)?;
            let path =
                PathElement::new(places.clone().collect::<Vec<_>>(), line.look.line_colour().stroke_width(2));
            chart.draw_series([path])?;
            let markers = places.map(|place| EmptyElement::at(place) + marker(line.look, (0, 0)));
            chart.draw_series(markers)?;
        }
        Ok(())
    }

    /// The labels of all panels, each once, in lines that fit.
    fn legend(&self, width: u32) -> Vec<Vec<&Line>> {
        let mut entries: Vec<&Line> = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !entries.iter().any(|known| known.label == line.label) {
                entries.push(line);
            }
        }
        entries.sort_by_key(|line| line.look.0);
        let mut lines: Vec<Vec<&Line>> = vec![Vec::new()];
        let mut used = MARGIN;
        for entry in entries {
            let wanted = entry_width(&entry.label);
            if used + wanted > width && used > MARGIN {
                lines.push(Vec::new());
                used = MARGIN;
            }
            used += wanted;
            lines.last_mut().unwrap_or(&mut Vec::new()).push(entry);
        }
        lines
    }

    /// From the least to the most of all that is drawn, with some room.
    fn ranges(&self) -> (Range<f64>, Range<f64>) {
        let points = || self.panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
        let range = |values: &mut dyn Iterator<Item = f64>, room: f64| {
            let (least, most) = values
                .filter(|value| *value > 0.0)
                .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
            if least > most { 1.0..10.0 } else { least / room..most * room }
        };
        let x = range(&mut points().map(|point| point.x), 1.3);
        let y = range(&mut points().flat_map(|point| [point.y, point.reach.0, point.reach.1]), 1.2);
        (x, y)
    }
}

fn entry_width(label: &str) -> u32 {
    LEGEND_SAMPLE + (label.chars().count() as f64 * CHARACTER).ceil() as u32 + 2 * MARGIN
}

fn draw_legend(area: &DrawingArea<SVGBackend<'_>, Shift>, lines: &[Vec<&Line>]) -> Result<(), Failure> {
    let style =
        TextStyle::from((FONT, FONT_SIZE).into_font()).color(&TEXT).pos(Pos::new(HPos::Left, VPos::Center));
    let mut y = i32::try_from(LEGEND_LINE / 2)?;
    for line in lines {
        let mut x = i32::try_from(MARGIN)?;
        for entry in line {
            let end = x + i32::try_from(LEGEND_SAMPLE - MARGIN)?;
            let sample = PathElement::new([(x, y), (end, y)], entry.look.line_colour().stroke_width(2));
            area.draw(&sample)?;
            area.draw(&marker(entry.look, ((x + end) / 2, y)))?;
            area.draw_text(&entry.label, &style, (end + 6, y))?;
            x += i32::try_from(entry_width(&entry.label))?;
        }
        y += i32::try_from(LEGEND_LINE)?;
    }
    Ok(())
}

/// The marker of a look at a place in pixels.
fn marker(look: Look, (x, y): (i32, i32)) -> Polygon<(i32, i32)> {
    let corners: Vec<(i32, i32)> = look.corners().iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    Polygon::new(corners, look.colour().filled())
}

/// Round values within a range: powers of ten, with 2 and 5 times these where `more` and
/// where there are few decades.
fn ticks(range: &Range<f64>, more: usize) -> Vec<f64> {
    let (low, high) = (range.start.log10().floor() as i32, range.end.log10().ceil() as i32);
    let decades = range.end.log10() - range.start.log10();
    let steps: &[f64] = match more {
        3 if decades < 1.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        3 if decades < 3.5 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let all = (low..=high).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    all.filter(|tick| range.contains(tick)).collect()
}

/// Classes and colours for stand-ins.
fn with_classes(svg: &str) -> String {
    let mut svg = svg.to_owned();
    let mut exchange = |stand_in: RGBColor, class: &str, colour: &str, more: &str| {
        let RGBColor(red, green, blue) = stand_in;
        let stand_in = format!("{red:02X}{green:02X}{blue:02X}");
        svg = svg
            .replace(&format!("fill=\"#{stand_in}\""), &format!("class=\"f{class}\" fill=\"{colour}\""))
            .replace(
                &format!("stroke=\"#{stand_in}\""),
                &format!("class=\"s{class}\" stroke=\"{colour}\"{more}"),
            );
    };
    for (position, ink) in INKS.iter().enumerate() {
        exchange(ink.stand_in, &format!("i{position}"), ink.light, "");
    }
    for (position, (light, _)) in LOOKS.iter().enumerate() {
        let look = Look(u8::try_from(position).unwrap_or(0));
        let dashes = match look.dashes() {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        exchange(look.colour(), &position.to_string(), light, "");
        exchange(look.line_colour(), &position.to_string(), light, &dashes);
    }
    svg
}

/// What makes charts fit for dark surroundings; on paper they are light.
pub fn styles() -> String {
    let mut rules = String::new();
    let inks = INKS.iter().enumerate().map(|(position, ink)| (format!("i{position}"), ink.dark));
    let looks = LOOKS.iter().enumerate().map(|(position, (_, dark))| (position.to_string(), *dark));
    for (class, dark) in inks.chain(looks) {
        let _ = write!(rules, ".f{class}{{fill:{dark}}}.s{class}{{stroke:{dark}}}");
    }
    format!("@media screen and (prefers-color-scheme:dark){{{rules}}}")
}

/// Text as it stands in HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{Axis, Chart, Line, Look, Panel, Point, ticks};

    fn chart(panels: usize) -> Chart {
        let axis = Axis { title: "axis", label: |value| value.to_string() };
        let point = |x: f64, y: f64| Point { x, y, reach: (y * 0.9, y * 1.1) };
        let line = |position| Line {
            label: format!("threshold {position}"),
            look: Look::ordered(position),
            points: vec![point(1e-6, 0.1), point(1e-2, 5.0)],
        };
        let panel = Panel { title: "A & B".into(), lines: (0..3).map(line).collect() };
        Chart {
            name: "chart".into(),
            title: "A <chart>".into(),
            x: axis,
            y: axis,
            panels: vec![panel; panels],
        }
    }

    #[test]
    fn no_stand_in_is_left() {
        let svg = chart(2).file(900).unwrap();
        for stand_in in ["#FC00", "#FD00", "#FE00"] {
            assert!(!svg.contains(stand_in), "{stand_in}");
        }
        assert!(svg.contains("<title>A &lt;chart&gt;</title>") && svg.contains("A &amp; B"), "{svg}");
        assert_eq!(
            svg.matches("<polygon").count(),
            3 * (2 * 2 + 1),
            "markers of all lines, and in the legend"
        );
    }

    #[test]
    fn panels_stand_above_each_other_where_there_is_no_room() {
        let height = |width| {
            let svg = chart(2).inline(width).unwrap();
            let (_, rest) = svg.split_once("height=\"").unwrap();
            rest.split_once('"').unwrap().0.parse::<u32>().unwrap()
        };
        assert!(height(380) > height(900) + 300);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(&(8e-7..0.013), 1).len(), 5);
        assert_eq!(ticks(&(15.0..280.0), 3), [20.0, 50.0, 100.0, 200.0]);
    }
}
