//! Errors in the form that the user sees.

use crate::console::plain;
use crate::dialect::Flags;
use ::console::Style;
use maxmargin::error::Error;
use maxmargin::wording::render;
use std::fmt::Write;

/// Code, message, place, the line with the token marked, and the remedy.
pub(crate) fn error(error: &Error, colours: bool) -> String {
    let style = |style: Style| style.force_styling(colours);
    let (red, blue, bold, dim) = (
        style(Style::new().red().bold()),
        style(Style::new().blue().bold()),
        style(Style::new().bold()),
        style(Style::new().dim()),
    );
    let mut text = format!(
        "{} {}",
        red.apply_to(format!("error[{}]:", error.code())),
        bold.apply_to(plain(&error.message_in(&Flags)))
    );
    if let Some(place) = error.place() {
        let _ = write!(text, "\n   {}", blue.apply_to(plain(&place.to_string())));
        if let Some(excerpt) = &place.excerpt {
            let gap: usize =
                ::console::measure_text_width(&excerpt.text.chars().take(excerpt.start).collect::<String>());
            let token: String = excerpt.text.chars().skip(excerpt.start).take(excerpt.length).collect();
            let marks = "^".repeat(::console::measure_text_width(&token).max(1));
            let _ = write!(text, "\n   {}", plain(&excerpt.text));
            let _ = write!(
                text,
                "\n   {}{} {}",
                " ".repeat(gap),
                red.apply_to(marks),
                plain(&render(&excerpt.expected, &Flags))
            );
        }
    }
    if let Some(help) = error.remedy_in(&Flags) {
        let _ = write!(text, "\n   {} {}", blue.apply_to("help:"), plain(&help));
    }
    let _ = write!(text, "\n   {}", dim.apply_to(format!("`maxmargin explain {}` says more", error.code())));
    text
}
