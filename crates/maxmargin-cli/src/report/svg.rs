//! A small SVG writer. Shapes have CSS classes instead of colours, so that one drawing works in light, dark and print.
//! All user text is escaped here. Coordinates are rounded to a tenth of a pixel to keep files small.

use std::fmt::Write;

/// The size of plot text in pixels; the style sheet uses the same.
pub(super) const TEXT: f64 = 12.0;

/// Escapes a text for HTML and SVG, in content and in quoted attributes. Control characters, which neither allows,
/// become the replacement character.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The approximate width of a text. Fonts are not known here, so the width is estimated from character classes.
pub(super) fn text_width(text: &str) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.32,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.88,
            '0'..='9' => 0.62,
            'A'..='Z' => 0.68,
            '\u{2070}'..='\u{209f}' | '²' | '³' | '¹' => 0.4,
            c if (c as u32) >= 0x1100 => 1.05,
            _ => 0.58,
        })
        .sum();
    ems * TEXT
}

/// Cuts a text to a width in pixels. A cut text ends in an ellipsis.
pub(super) fn fit(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.into();
    }
    let mut short = String::new();
    let mut used = text_width("…");
    for character in text.chars() {
        used += text_width(character.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        short.push(character);
    }
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// A number with the true minus sign, for labels.
pub(super) fn typographic(number: &str) -> String {
    number.replace('-', "−")
}

/// The point of a text that its position refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The left end.
    Start,
    /// The centre.
    Middle,
    /// The right end.
    End,
}

/// The data of a `path` element.
#[derive(Clone, Debug, Default)]
pub struct Path(String);

impl Path {
    /// A path with nothing in it.
    pub fn new() -> Path {
        Path::default()
    }

    /// A line through the points.
    pub fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Path {
        let mut path = Path::new();
        for (x, y) in points {
            path.to(x, y);
        }
        path
    }

    /// Continues to a point. The first call sets the start.
    pub fn to(&mut self, x: f64, y: f64) {
        self.0.push(if self.0.is_empty() { 'M' } else { 'L' });
        push_coordinate(&mut self.0, x);
        self.0.push(' ');
        push_coordinate(&mut self.0, y);
    }

    /// Continues at a point without a line to it.
    pub fn jump(&mut self, x: f64, y: f64) {
        self.0.push('M');
        push_coordinate(&mut self.0, x);
        self.0.push(' ');
        push_coordinate(&mut self.0, y);
    }

    /// Closes the outline.
    pub fn close(&mut self) {
        if !self.0.is_empty() {
            self.0.push('Z');
        }
    }

    /// Whether nothing was drawn.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A drawing that is being built. The origin is at the top left, and the unit is the pixel.
#[derive(Clone, Debug)]
pub struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    /// An empty drawing.
    pub fn new(width: f64, height: f64) -> Canvas {
        Canvas { width, height, body: String::new() }
    }

    /// Opens a group; `end` closes it.
    pub fn begin(&mut self, class: &str) {
        let _ = write!(self.body, "<g class=\"{class}\">");
    }

    /// Closes the group that was opened last.
    pub fn end(&mut self) {
        self.body.push_str("</g>");
    }

    /// The tooltip of the open group.
    pub fn title(&mut self, text: &str) {
        let _ = write!(self.body, "<title>{}</title>", escape(text));
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.open("line", class, &[("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)]);
        self.body.push_str("/>");
    }

    /// A path, unless it is empty.
    pub fn path(&mut self, path: &Path, class: &str) {
        if !path.is_empty() {
            let _ = write!(self.body, "<path class=\"{class}\" d=\"{}\"/>", path.0);
        }
    }

    /// A path whose line has the given opacity, from 0 to 1, unless it is empty.
    pub fn shaded_path(&mut self, path: &Path, class: &str, strength: f64) {
        if !path.is_empty() {
            let strength = strength.clamp(0.0, 1.0);
            let _ = write!(self.body, "<path class=\"{class}\" stroke-opacity=\"{strength:.2}\" d=\"{}\"/>", path.0);
        }
    }

    /// A disc.
    pub fn dot(&mut self, x: f64, y: f64, radius: f64, class: &str) {
        self.open("circle", class, &[("cx", x), ("cy", y), ("r", radius)]);
        self.body.push_str("/>");
    }

    /// A rectangle.
    pub fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        self.open("rect", class, &[("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))]);
        self.body.push_str("/>");
    }

    /// A rectangle whose colour has the given opacity, from 0 to 1.
    pub fn shaded(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str, strength: f64) {
        self.open("rect", class, &[("x", x), ("y", y), ("width", width.max(0.0)), ("height", height.max(0.0))]);
        let _ = write!(self.body, " fill-opacity=\"{:.2}\"/>", strength.clamp(0.0, 1.0));
    }

    /// A text on one line; `y` is its baseline.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        self.open("text", class, &[("x", x), ("y", y)]);
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => self.body.push_str(" text-anchor=\"middle\""),
            Anchor::End => self.body.push_str(" text-anchor=\"end\""),
        }
        let _ = write!(self.body, ">{}</text>", escape(text));
    }

    /// A text cut to a width. If it is cut, the full text is its tooltip.
    pub fn text_within(&mut self, width: f64, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let short = fit(text, width);
        if short == text {
            self.text(x, y, anchor, class, text);
        } else {
            self.begin("cut");
            self.title(text);
            self.text(x, y, anchor, class, &short);
            self.end();
        }
    }

    /// The complete element, with a text for screen readers.
    pub fn finish(&self, class: &str, alternative: &str) -> String {
        let mut size = String::new();
        push_coordinate(&mut size, self.width);
        size.push(' ');
        push_coordinate(&mut size, self.height);
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {size}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">{}</svg>",
            escape(alternative),
            self.body
        )
    }

    fn open(&mut self, name: &str, class: &str, attributes: &[(&str, f64)]) {
        let _ = write!(self.body, "<{name}");
        if !class.is_empty() {
            let _ = write!(self.body, " class=\"{class}\"");
        }
        for (key, value) in attributes {
            let _ = write!(self.body, " {key}=\"");
            push_coordinate(&mut self.body, *value);
            self.body.push('"');
        }
    }
}

fn push_coordinate(out: &mut String, value: f64) {
    let value = if value.is_finite() { value.clamp(-1e5, 1e5) } else { 0.0 };
    let tenths = (value * 10.0).round() as i64;
    if tenths < 0 {
        out.push('-');
    }
    let _ = write!(out, "{}", tenths.abs() / 10);
    if tenths % 10 != 0 {
        let _ = write!(out, ".{}", tenths.abs() % 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_user_text_is_harmless() {
        assert_eq!(escape("<script>alert('x')</script>"), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
        assert_eq!(escape("a \"b\" & c\0\u{7f}"), "a &quot;b&quot; &amp; c\u{fffd}\u{fffd}");
        assert_eq!(escape("größe 検索"), "größe 検索");
    }

    #[test]
    fn coordinates_are_short_and_always_finite() {
        let mut out = String::new();
        for value in [1.0, -0.04, -0.06, 12.345, f64::NAN, f64::INFINITY, 1e300] {
            push_coordinate(&mut out, value);
            out.push(' ');
        }
        assert_eq!(out, "1 0 -0.1 12.3 0 0 100000 ");
    }

    #[test]
    fn cut_text_fits_its_width_and_keeps_the_whole_as_a_tooltip() {
        let long = "検索".repeat(100);
        let short = fit(&long, 80.0);
        assert!(text_width(&short) <= 80.0 && short.ends_with('…'), "{short}");
        let mut canvas = Canvas::new(10.0, 10.0);
        canvas.text_within(80.0, 0.0, 0.0, Anchor::End, "name", &long);
        assert!(canvas.finish("plot", "x").contains(&format!("<title>{long}</title>")));
    }
}
