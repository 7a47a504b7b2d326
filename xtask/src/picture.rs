//! Calls that a core carries against calls at once, as SVG.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One line of the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub label: String,
    /// Calls at once, and calls a core.
    pub points: Vec<(f64, f64)>,
    /// Of plain code, which does not gain by company: dashed.
    pub is_plain: bool,
}

/// Colours of a page.
pub struct Palette {
    ground: RGBColor,
    text: RGBColor,
    grid: RGBColor,
    curves: [RGBColor; 5],
}

pub const LIGHT: Palette = Palette {
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
pub const DARK: Palette = Palette {
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

const SIZE: (u32, u32) = (860, 460);
/// Room for the names of the curves at their ends.
const LABELS: u32 = 200;
/// Two names are at least so far apart, pixels.
const LINE: f64 = 17.0;

/// Draws the curves into a file.
pub fn draw(curves: &[Curve], path: &Path, palette: &Palette) -> anyhow::Result<()> {
    render(curves, path, palette).map_err(|why| anyhow!("{}: {why}", path.display()))
}

fn render(curves: &[Curve], path: &Path, palette: &Palette) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&palette.ground)?;
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|point| point.0).fold(1.0, f64::max);
    // Whole thousands, and some air.
    let top = (all().map(|point| point.1).fold(1.0, f64::max) / 1000.0).ceil() * 1000.0;
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .margin_right(LABELS)
        .x_label_area_size(46)
        .y_label_area_size(62)
        .build_cartesian_2d((1.0..most).log_scale(), 0.0..top)?;
    let text = ("sans-serif", 14).into_font().color(&palette.text);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(palette.grid)
        .light_line_style(TRANSPARENT)
        .axis_style(palette.text)
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .x_desc("calls coded at once")
        .y_desc("calls that one core carries")
        .x_label_formatter(&|streams| format!("{streams:.0}"))
        .y_label_formatter(&|calls| format!("{calls:.0}"))
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
    let mut free = f64::MIN;
    for ((x, y), curve, colour) in ends {
        let place = f64::from(y).max(free);
        free = place + LINE;
        let style = ("sans-serif", 14).into_font().color(colour).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(curve.label.as_str(), (x + 8, place.round() as i32), style))?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_every_curve_with_its_name() {
        let path = std::env::temp_dir().join(format!("strowger-picture-{}.svg", std::process::id()));
        let curve = |label: &str, is_plain| Curve {
            label: label.into(),
            points: vec![(1.0, 700.0), (640.0, 3000.0)],
            is_plain,
        };
        draw(&[curve("in lanes", false), curve("one by one", true)], &path, &DARK).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(
            svg.contains("in lanes") && svg.contains("one by one") && svg.contains("calls coded at once")
        );
        std::fs::remove_file(&path).unwrap();
    }
}
