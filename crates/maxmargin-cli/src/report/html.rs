//! The document around the sections: head, style sheet, the cards and their arrangement in pairs on a wide page.

use std::fmt::Write;

use super::svg::escape;
use super::{Content, Plot, Report, Section, Table, Tone};

const STYLE: &str = include_str!("style.css");

/// The widths at which a plot is drawn, each with its class. The style sheet shows the one that fits the width of the
/// column.
const WIDTHS: [(&str, f64); 3] = [("narrow", 340.0), ("medium", 540.0), ("wide", 1080.0)];

/// Tables with more rows may break across printed pages.
const LONG: usize = 18;

pub(super) fn document(report: &Report) -> String {
    let mut out = String::with_capacity(64 << 10);
    let title = escape(&report.title);
    // The policy forbids scripts and external content, whatever a name in the data contains.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"maxmargin {}\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n",
        env!("CARGO_PKG_VERSION")
    );
    if !report.subtitle.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", escape(&report.subtitle));
    }
    out.push_str("</header>\n<main>\n");
    for (section, full) in report.sections.iter().zip(full_width(&report.sections)) {
        push_section(&mut out, section, full);
    }
    let _ =
        write!(out, "</main>\n<footer>Made by maxmargin {}</footer>\n</body>\n</html>\n", env!("CARGO_PKG_VERSION"));
    out
}

/// Decides which sections take the whole width. Neighbouring sections of half width are side by side, plots with plots
/// and text with text. If their number is odd, the one that benefits most gets its own row, so that no gap is left.
fn full_width(sections: &[Section]) -> Vec<bool> {
    let mut full: Vec<bool> = sections.iter().map(|section| !takes_half(section)).collect();
    let mut start = 0;
    while start < sections.len() {
        if full[start] {
            start += 1;
            continue;
        }
        let drawn = |i: usize| matches!(sections[i].content, Content::Plot { .. });
        let breaks = |&i: &usize| full[i] || drawn(i) != drawn(start);
        let end = (start..sections.len()).find(breaks).unwrap_or(sections.len());
        if (end - start) % 2 == 1 {
            // Only every second position leaves pairs on both sides.
            let stretches = |i: &usize| matches!(&sections[*i].content, Content::Plot { plot, .. } if plot.stretches());
            let alone = (start..end).step_by(2).find(stretches).unwrap_or(end - 1);
            full[alone] = true;
        }
        start = end;
    }
    full
}

fn takes_half(section: &Section) -> bool {
    match &section.content {
        Content::Headline(_) | Content::Callout(..) | Content::Code(_) => false,
        Content::Facts(_) | Content::Plot { .. } | Content::Text(_) => true,
        Content::Table(table) => table.header.len() <= 5,
    }
}

fn push_section(out: &mut String, section: &Section, full: bool) {
    let heading = escape(&section.heading);
    match &section.content {
        Content::Headline(tiles) => {
            out.push_str("<dl class=\"card full tiles\">\n");
            for tile in tiles {
                let (label, value) = (escape(&tile.label), escape(&tile.value));
                let _ = write!(out, "<div class=\"tile\"><dt>{label}</dt><dd class=\"value\">{value}</dd>");
                if !tile.note.is_empty() {
                    let _ = write!(out, "<dd class=\"note\">{}</dd>", escape(&tile.note));
                }
                out.push_str("</div>\n");
            }
            out.push_str("</dl>\n");
            return;
        }
        Content::Callout(tone, text) => {
            let (class, role) = match tone {
                Tone::Good => ("good", "note"),
                Tone::Warning => ("warning", "alert"),
            };
            let lead = if heading.is_empty() { String::new() } else { format!("<strong>{heading}</strong> ") };
            let _ = writeln!(out, "<div class=\"callout {class}\" role=\"{role}\"><p>{lead}{}</p></div>", escape(text));
            return;
        }
        _ => {}
    }
    let width = if full { " full" } else { "" };
    let long = matches!(&section.content, Content::Table(table) if table.rows.len() > LONG);
    let _ = write!(out, "<section class=\"card{width}{}\">", if long { " long" } else { "" });
    if !heading.is_empty() {
        let _ = write!(out, "<h2>{heading}</h2>");
    }
    out.push('\n');
    match &section.content {
        Content::Facts(rows) => {
            out.push_str("<dl class=\"facts\">\n");
            for (name, value) in rows {
                let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
            }
            out.push_str("</dl>\n");
        }
        Content::Table(table) => push_table(out, table, &heading),
        Content::Text(text) => {
            for paragraph in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
                let _ = writeln!(out, "<p class=\"prose\">{}</p>", escape(paragraph));
            }
        }
        Content::Code(text) => {
            let _ = writeln!(out, "<pre tabindex=\"0\"><code>{}</code></pre>", escape(text));
        }
        Content::Plot { caption, plot } => push_plot(out, plot.as_ref(), caption, &heading),
        Content::Headline(_) | Content::Callout(..) => {}
    }
    out.push_str("</section>\n");
}

fn push_plot(out: &mut String, plot: &dyn Plot, caption: &str, heading: &str) {
    let summary = plot.summary();
    out.push_str("<figure>\n");
    if plot.stretches() {
        for (class, width) in WIDTHS {
            out.push_str(&plot.draw(width).finish(&format!("plot {class}"), &summary));
            out.push('\n');
        }
    } else {
        for (class, width) in &WIDTHS[..1] {
            out.push_str(&plot.draw(*width).finish(&format!("plot {class}"), &summary));
        }
        // A square plot is never wider than its column, so one drawing is enough for both larger widths.
        out.push_str(&plot.draw(WIDTHS[1].1).finish("plot square", &summary));
        out.push('\n');
    }
    let mut words = vec![caption.to_string()];
    words.extend(plot.notes());
    words.retain(|w| !w.is_empty());
    if !words.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(&words.join(" ")));
    }
    out.push_str("</figure>\n");
    if let Some(table) = plot.data() {
        out.push_str("<details><summary>Values</summary>\n");
        push_table(out, &table, heading);
        out.push_str("</details>\n");
    }
}

fn push_table(out: &mut String, table: &Table, heading: &str) {
    let label = if heading.is_empty() { "Table" } else { heading };
    let _ = write!(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n<table>\n");
    let columns = table.rows.iter().map(Vec::len).chain([table.header.len()]).max().unwrap_or(0);
    let numeric: Vec<&str> = (0..columns)
        .map(|column| {
            let mut cells = table.rows.iter().filter_map(|row| row.get(column)).filter(|c| !c.is_empty()).peekable();
            if cells.peek().is_some() && cells.all(|cell| looks_numeric(cell)) { " class=\"number\"" } else { "" }
        })
        .collect();
    if !table.header.is_empty() {
        out.push_str("<thead><tr>");
        for (column, class) in numeric.iter().enumerate() {
            let name = table.header.get(column).map_or("", String::as_str);
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(name));
        }
        out.push_str("</tr></thead>\n");
    }
    out.push_str("<tbody>\n");
    for (number, row) in table.rows.iter().enumerate() {
        out.push_str(if table.highlight == Some(number) { "<tr class=\"chosen\">" } else { "<tr>" });
        for (column, class) in numeric.iter().enumerate() {
            let _ = write!(out, "<td{class}>{}</td>", escape(row.get(column).map_or("", String::as_str)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// Whether a cell looks like a number, possibly with a unit or an uncertainty.
fn looks_numeric(cell: &str) -> bool {
    let cell = cell.trim();
    let body = cell.trim_start_matches(['-', '−', '+', '<', '±', '~', ' ']);
    matches!(cell, "–" | "-" | "NaN" | "inf" | "-inf")
        || (body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && body.split_whitespace().all(|word| {
                let digits = word.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '±' || c == '-');
                digits || matches!(word, "s" | "ms" | "min" | "h" | "%" | "byte" | "bytes" | "KB" | "MB" | "GB" | "TB")
            }))
}
