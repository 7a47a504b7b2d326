//! Pictures of figures as SVG.

use std::path::Path;

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One line of the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub label: String,
    /// Across and up, from left to right.
    pub points: Vec<(f64, f64)>,
    /// What others are compared with: dashed.
    pub is_plain: bool,
}

/// Colours of a page.
struct Palette {
    ground: RGBColor,
    text: RGBColor,
    grid: RGBColor,
    curves: [RGBColor; 5],
}

const LIGHT: Palette = Palette {
    ground: RGBColor(255, 255, 255),
    text: RGBColor(31, 35, 40),
    grid: RGBColor(225, 228, 232),
    curves: [
        RGBColor(9, 105, 218),
        RGBColor(9, 105, 218),
        RGBColor(188, 76, 0),
        RGBColor(188, 76, 0),
        RGBColor(130, 80, 223),
    ],
};
const DARK: Palette = Palette {
    ground: RGBColor(13, 17, 23),
    text: RGBColor(230, 237, 243),
    grid: RGBColor(48, 54, 61),
    curves: [
        RGBColor(88, 166, 255),
        RGBColor(88, 166, 255),
        RGBColor(240, 136, 62),
        RGBColor(240, 136, 62),
        RGBColor(188, 140, 255),
    ],
};

/// What one picture, or one of two side by side, shows.
pub struct Panel {
    /// What stands above it; empty for a picture that has its page's words.
    pub caption: &'static str,
    /// What the axes are of.
    pub axes: (&'static str, &'static str),
    /// Where the first axis begins.
    pub from: f64,
    /// The first axis has a step for each power of ten, not for each number.
    pub is_log: bool,
    pub curves: Vec<Curve>,
    /// Room for the names of the curves at their ends, pixels.
    pub labels: u32,
}

const SIZE: (u32, u32) = (860, 460);
/// Two names are at least so far apart, pixels.
const LINE: f64 = 17.0;

/// Why a picture could not be drawn.
type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws panels side by side, for light and for dark pages: `NAME.svg` and `NAME-dark.svg`.
pub fn draw(panels: &[Panel], folder: &Path, name: &str) -> anyhow::Result<()> {
    for (end, palette) in [("", &LIGHT), ("-dark", &DARK)] {
        let path = folder.join(format!("{name}{end}.svg"));
        render(panels, &path, palette).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    }
    Ok(())
}

/// Groups of bars, one below the other.
pub struct Bars {
    /// What the bars are of, below them.
    pub axis: &'static str,
    /// What the bars of a group stand for, in the order of colours.
    pub kinds: Vec<&'static str>,
    /// A name and a length for each kind that there is one of.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

/// Thickness of a bar, and the air between two groups.
const BAR: i32 = 13;
const AIR: i32 = 12;
/// Where bars begin and where the longest ends: names stand left of them, lengths right.
const BARS: (i32, i32) = (350, 790);
/// Room above the first group, for the names of the kinds, and below the last.
const HEAD: i32 = 44;
const FOOT: i32 = 40;

/// Draws bars, for light and for dark pages: `NAME.svg` and `NAME-dark.svg`.
pub fn draw_bars(bars: &Bars, folder: &Path, name: &str) -> anyhow::Result<()> {
    for (end, palette) in [("", &LIGHT), ("-dark", &DARK)] {
        let path = folder.join(format!("{name}{end}.svg"));
        render_bars(bars, &path, palette).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    }
    Ok(())
}

fn render_bars(bars: &Bars, path: &Path, palette: &Palette) -> Result<(), Failure> {
    let group_height = |lengths: &[Option<f64>]| lengths.iter().flatten().count() as i32 * BAR + AIR;
    let height = HEAD + bars.groups.iter().map(|(_, lengths)| group_height(lengths)).sum::<i32>() + FOOT;
    let root = SVGBackend::new(path, (SIZE.0, height.unsigned_abs())).into_drawing_area();
    root.fill(&palette.ground)?;
    let style = |colour: RGBColor, at: HPos| {
        ("sans-serif", 13).into_font().color(&colour).pos(Pos::new(at, VPos::Center))
    };
    // Every second colour of curves is another one.
    let colours: Vec<RGBColor> = palette.curves.iter().copied().step_by(2).collect();
    let mut left = BARS.0;
    for (kind, colour) in bars.kinds.iter().zip(colours.iter().cycle()) {
        root.draw(&Rectangle::new([(left, 16), (left + 12, 28)], colour.filled()))?;
        root.draw(&Text::new(*kind, (left + 18, 22), style(palette.text, HPos::Left)))?;
        left += 34 + 7 * kind.len() as i32;
    }
    let most = bars.groups.iter().flat_map(|(_, lengths)| lengths).flatten().copied().fold(1e-9, f64::max);
    let mut y = HEAD;
    for (name, lengths) in &bars.groups {
        let middle = y + (group_height(lengths) - AIR) / 2;
        root.draw(&Text::new(name.as_str(), (BARS.0 - 10, middle), style(palette.text, HPos::Right)))?;
        for (length, colour) in lengths.iter().zip(colours.iter().cycle()) {
            let Some(length) = length else { continue };
            let end = BARS.0 + (f64::from(BARS.1 - BARS.0) * length / most) as i32;
            root.draw(&Rectangle::new([(BARS.0, y), (end.max(BARS.0 + 1), y + BAR - 2)], colour.filled()))?;
            let text = format!("{length:.0}");
            root.draw(&Text::new(text, (end + 6, y + BAR / 2 - 1), style(palette.text, HPos::Left)))?;
            y += BAR;
        }
        y += AIR;
    }
    root.draw(&Text::new(bars.axis, (BARS.0, height - FOOT / 2), style(palette.text, HPos::Left)))?;
    root.present()?;
    Ok(())
}

fn render(panels: &[Panel], path: &Path, palette: &Palette) -> Result<(), Failure> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&palette.ground)?;
    for (panel, area) in panels.iter().zip(root.split_evenly((1, panels.len()))) {
        let most = panel.curves.iter().flat_map(|curve| &curve.points).map(|point| point.0);
        let range = panel.from..most.fold(panel.from, f64::max);
        if panel.is_log {
            render_panel(panel, range.log_scale(), &area, palette)?;
        } else {
            render_panel(panel, range, &area, palette)?;
        }
    }
    root.present()?;
    Ok(())
}

/// The end of an axis: a round number, and some air.
fn top(most: f64) -> f64 {
    let step = 10_f64.powf(most.max(1e-6).log10().floor()) / 2.0;
    (most / step).ceil() * step
}

fn render_panel<X>(panel: &Panel, across: X, area: &Area<'_>, palette: &Palette) -> Result<(), Failure>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let curves = &panel.curves;
    let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
    let text = ("sans-serif", 14).into_font().color(&palette.text);
    let mut builder = ChartBuilder::on(area);
    builder.margin(14).margin_right(panel.labels).x_label_area_size(46).y_label_area_size(66);
    if !panel.caption.is_empty() {
        builder.caption(panel.caption, ("sans-serif", 16).into_font().color(&palette.text));
    }
    let mut chart = builder.build_cartesian_2d(across, 0.0..top(most))?;
    let (x, y) = panel.axes;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(palette.grid)
        .light_line_style(TRANSPARENT)
        .axis_style(palette.text)
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&|number| {
            if number.fract() == 0.0 { format!("{number:.0}") } else { String::new() }
        })
        .y_label_formatter(&|number| format!("{number:.0}"))
        .draw()?;
    let colours = || palette.curves.iter().cycle();
    for (curve, colour) in curves.iter().zip(colours()) {
        let points = || curve.points.iter().copied();
        if curve.is_plain {
            chart.draw_series(DashedLineSeries::new(points(), 6, 5, colour.stroke_width(2)))?;
        } else {
            chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
            chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
        }
    }
    // Names at the right ends, pushed apart where they would cover each other.
    let end = |curve: &Curve| curve.points.last().map(|point| chart.backend_coord(point));
    let mut ends: Vec<_> = curves
        .iter()
        .zip(colours())
        .filter_map(|(curve, colour)| Some((end(curve)?, curve, colour)))
        .collect();
    ends.sort_by_key(|((_, y), ..)| *y);
    let (mut free, base) = (f64::MIN, area.get_base_pixel());
    for ((x, y), curve, colour) in ends {
        let place = f64::from(y - base.1).max(free);
        free = place + LINE;
        let style = ("sans-serif", 14).into_font().color(colour).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(curve.label.as_str(), (x - base.0 + 8, place.round() as i32), style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_every_curve_of_every_panel_with_its_name() {
        let folder = std::env::temp_dir().join(format!("strowger-picture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let curve = |label: &str, is_plain| Curve {
            label: label.into(),
            points: vec![(1.0, 700.0), (640.0, 3000.0)],
            is_plain,
        };
        let panel = |caption, is_log| Panel {
            caption,
            axes: ("calls coded at once", "calls that one core carries"),
            from: 1.0,
            is_log,
            curves: vec![curve("in lanes", false), curve("one by one", true)],
            labels: 100,
        };
        draw(&[panel("left", true), panel("right", false)], &folder, "test").unwrap();
        for name in ["test.svg", "test-dark.svg"] {
            let svg = std::fs::read_to_string(folder.join(name)).unwrap();
            for word in ["in lanes", "one by one", "calls coded at once", "left", "right"] {
                assert!(svg.contains(word), "{name} lacks {word}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn bars_have_their_names_and_lengths_and_none_where_nothing_was_measured() {
        let folder = std::env::temp_dir().join(format!("strowger-bars-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let groups = vec![
            ("Playback".to_owned(), vec![Some(3000.0), Some(8000.0), None]),
            ("relay".to_owned(), vec![None, Some(9000.0), Some(400.0)]),
        ];
        let bars = Bars { axis: "calls", kinds: vec!["one", "two", "three"], groups };
        draw_bars(&bars, &folder, "test").unwrap();
        for name in ["test.svg", "test-dark.svg"] {
            let svg = std::fs::read_to_string(folder.join(name)).unwrap();
            for word in ["Playback", "relay", "3000", "9000", "400", "three"] {
                assert!(svg.contains(word), "{name} lacks {word}");
            }
            // The ground, three kinds and four lengths.
            assert_eq!(svg.matches("<rect ").count(), 8, "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (most, end) in [(2860.0, 3000.0), (161_939.0, 200_000.0), (8.3, 8.5), (0.04, 0.04)] {
            assert!((top(most) - end).abs() < 1e-9, "{most}: {}", top(most));
        }
    }
}
