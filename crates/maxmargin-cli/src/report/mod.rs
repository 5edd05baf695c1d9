//! Reports: one self-contained HTML file with facts, tables and plots, used by every command that writes a report. It
//! works offline, runs no script, follows the reader's light or dark mode, can be printed, and fits a phone. The same
//! content gives the same bytes.
//!
//! A new kind of plot is a new file with a type that implements [`Plot`]. Nothing here changes for it.

mod axis;
mod bars;
mod contour;
mod heat_map;
mod histogram;
mod html;
mod line;
mod ranked;
mod svg;

pub use axis::{Axis, Scale};
pub use bars::Bars;
pub use contour::{Contour, Segment, Surface};
pub use heat_map::{Best, HeatMap};
pub use histogram::Histogram;
pub use line::{LinePlot, RocCurve, Series};
pub use ranked::Ranked;
pub use svg::{Anchor, Canvas, Path, escape};

/// Something that can be drawn at any width.
pub trait Plot {
    /// Draws at a width in pixels. A report draws several widths and shows the one that fits.
    fn draw(&self, width: f64) -> Canvas;

    /// A description of the drawing for readers who cannot see it.
    fn summary(&self) -> String;

    /// What the reader should know in addition to the caption: values that are left out or clipped.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The values behind the drawing, if they are few enough to list.
    fn data(&self) -> Option<Table> {
        None
    }

    /// Whether the drawing benefits from a wide page.
    fn stretches(&self) -> bool {
        true
    }
}

/// Rows and columns of text; columns of numbers are aligned to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
    /// The row to highlight.
    pub highlight: Option<usize>,
}

/// A headline number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tile {
    /// Its name.
    pub label: String,
    /// The number, formatted.
    pub value: String,
    /// A short note, or empty.
    pub note: String,
}

impl Tile {
    /// A headline number with a note below it, which may be empty.
    pub fn new(label: impl Into<String>, value: impl Into<String>, note: impl Into<String>) -> Tile {
        Tile { label: label.into(), value: value.into(), note: note.into() }
    }
}

/// The tone of a callout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// The reader should act.
    Warning,
}

enum Content {
    Headline(Vec<Tile>),
    Callout(Tone, String),
    Facts(Vec<(String, String)>),
    Table(Table),
    Text(String),
    Code(String),
    Plot { caption: String, plot: Box<dyn Plot> },
}

struct Section {
    heading: String,
    content: Content,
}

/// A report that is being built: sections in the order in which they are added.
pub struct Report {
    title: String,
    subtitle: String,
    sections: Vec<Section>,
}

impl Report {
    /// An empty report.
    pub fn new(title: impl Into<String>) -> Report {
        Report { title: title.into(), subtitle: String::new(), sections: Vec::new() }
    }

    /// A line below the title: the file, the command, a date if the caller wants one.
    pub fn subtitle(&mut self, subtitle: impl Into<String>) -> &mut Report {
        self.subtitle = subtitle.into();
        self
    }

    /// The few numbers that matter most, in large type.
    pub fn headline(&mut self, tiles: Vec<Tile>) -> &mut Report {
        self.add("", Content::Headline(tiles))
    }

    /// A sentence with a tone: the run converged, or it did not and what to do.
    pub fn callout(&mut self, tone: Tone, heading: impl Into<String>, text: impl Into<String>) -> &mut Report {
        self.add(heading, Content::Callout(tone, text.into()))
    }

    /// Names and values.
    pub fn facts(&mut self, heading: impl Into<String>, rows: Vec<(String, String)>) -> &mut Report {
        self.add(heading, Content::Facts(rows))
    }

    /// A table.
    pub fn table(&mut self, heading: impl Into<String>, header: Vec<String>, rows: Vec<Vec<String>>) -> &mut Report {
        self.add(heading, Content::Table(Table { header, rows, highlight: None }))
    }

    /// A table with one highlighted row.
    pub fn table_with_choice(&mut self, heading: impl Into<String>, table: Table) -> &mut Report {
        self.add(heading, Content::Table(table))
    }

    /// Plain text; an empty line starts a new paragraph.
    pub fn text(&mut self, heading: impl Into<String>, text: impl Into<String>) -> &mut Report {
        self.add(heading, Content::Text(text.into()))
    }

    /// A command to type next, or any text to copy.
    pub fn code(&mut self, heading: impl Into<String>, text: impl Into<String>) -> &mut Report {
        self.add(heading, Content::Code(text.into()))
    }

    /// A plot with a caption that says what it shows.
    pub fn plot(
        &mut self,
        heading: impl Into<String>,
        caption: impl Into<String>,
        plot: impl Plot + 'static,
    ) -> &mut Report {
        self.add(heading, Content::Plot { caption: caption.into(), plot: Box::new(plot) })
    }

    /// The whole HTML document.
    pub fn render(&self) -> String {
        html::document(self)
    }

    fn add(&mut self, heading: impl Into<String>, content: Content) -> &mut Report {
        self.sections.push(Section { heading: heading.into(), content });
        self
    }
}

/// The class of a series, by its number. Colours repeat after six.
fn series_class(number: usize) -> &'static str {
    ["s1", "s2", "s3", "s4", "s5", "s6"][number % 6]
}

#[cfg(test)]
mod tests;
