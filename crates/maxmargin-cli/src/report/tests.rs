//! Complete reports: well-formed, safe, reproducible and small.

use super::*;

const NASTY: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"quoted\" & 'single' onload=\"x\"",
    "]]></style></svg><img src=x onerror=alert(1)>",
    "größe_検索_🦀_\u{202e}reversed",
    "\0\u{1}\u{1b}[31m",
    "",
];

fn names() -> Vec<String> {
    NASTY.iter().map(|name| name.to_string()).chain([NASTY[0].repeat(400)]).collect()
}

/// Every section and every plot, with the given texts wherever a text can be.
fn everything(names: &[String]) -> Report {
    let name = |i: usize| names[i % names.len()].clone();
    let numbers = |n: u32| (0..n).map(|i| f64::from(i * 7919 % 101) / 10.0).collect::<Vec<f64>>();
    let values: Vec<(String, f64)> = names.iter().cloned().zip(numbers(99)).collect();
    let points: Vec<(f64, f64)> = numbers(30).into_iter().enumerate().map(|(i, v)| (i as f64, v)).collect();
    let band = points.iter().map(|p| (p.0, p.1 - 1.0, p.1 + 1.0)).collect();
    let mut report = Report::new(name(0));
    report.subtitle(name(1)).headline(names.iter().map(|n| Tile::new(n, n, n)).collect());
    report.callout(Tone::Good, name(2), name(0)).callout(Tone::Warning, name(1), name(3));
    report.facts(name(0), names.iter().map(|n| (n.clone(), n.clone())).collect());
    report.table(name(1), names.to_vec(), vec![names.to_vec(), Vec::new(), vec!["1".into()]]);
    report.text(name(2), name(0)).code(name(2), name(2));
    let lines = LinePlot::new(Axis::linear(name(0)), Axis::log(name(1)))
        .series(Series::new(name(2), points.clone()).markers().dashed())
        .series(Series::new(name(3), points.clone()).band(band))
        .rule(2.0, name(0))
        .mark(3.0, name(2));
    report.plot(name(0), name(2), lines);
    let curve = RocCurve { label: name(0), points: vec![(0.0, 0.0), (0.2, 0.8), (1.0, 1.0)], area: 0.8 };
    report.plot(name(0), name(2), LinePlot::roc(vec![curve]));
    let groups: Vec<(String, Vec<f64>)> = names.iter().map(|n| (n.clone(), numbers(80))).collect();
    report.plot(
        name(1),
        "",
        Histogram::new(name(0), name(1), groups[..groups.len().min(2)].to_vec()).mark(4.0, name(2)),
    );
    report.plot(name(1), "", Histogram::new(name(0), name(1), groups).mark(4.0, name(2)));
    let ranked = Ranked::new(Axis::linear(name(0)), name(1), name(2), values.clone()).mean_label(name(0));
    report.plot(name(1), "", ranked);
    report.plot(name(1), "", Bars::largest(name(0), name(1), values, 5));
    let grid = vec![numbers(names.len() as u32); names.len()];
    let (column, row) = (name(0), name(2));
    let map = HeatMap::new(name(1), (&column, names.to_vec()), (&row, names.to_vec()), grid).best(Best::Highest);
    report.plot(name(1), "", map);
    report
}

/// Checks that every tag is closed in order and every attribute is quoted. A raw `<` or `"` from a name would break
/// this.
fn check_well_formed(document: &str) {
    const EMPTY: [&str; 2] = ["meta", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = document;
    while let Some(start) = rest.find(['<', '>']) {
        assert_eq!(&rest[start..=start], "<", "stray > before {:.80}", &rest[start..]);
        let end = start + rest[start..].find('>').expect("the tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before {:.80}", rest.chars().take(40).collect::<String>());
            continue;
        }
        let name = tag.split([' ', '/']).next().expect("a name");
        let attributes = &tag[name.len()..];
        assert_eq!(attributes.matches('"').count() % 2, 0, "<{tag}>");
        let outside: String = attributes.split('"').step_by(2).collect();
        assert!(
            outside.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || " =-/BV".contains(c)),
            "<{tag}>"
        );
        assert!(!outside.contains(" on") && name != "script", "<{tag}>");
        if name == "style" {
            // The selectors of the style sheet contain >.
            rest = &rest[rest.find("</style>").expect("the style ends")..];
        }
        if !tag.ends_with('/') && !EMPTY.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} left open");
}

#[test]
fn hostile_names_stay_text_and_the_document_well_formed() {
    let document = everything(&names()).render();
    check_well_formed(&document);
    assert!(!document.contains("<script") && !document.contains("<img"));
    assert!(!document.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    assert!(document.contains("größe_検索_🦀"));
}

#[test]
fn the_same_report_renders_to_the_same_bytes() {
    assert_eq!(everything(&names()).render(), everything(&names()).render());
}

#[test]
fn a_report_needs_nothing_from_elsewhere() {
    let document = everything(&["plain".to_string()]).render();
    let addresses = document.matches("http://").count() + document.matches("https://").count();
    assert_eq!(addresses, document.matches("http://www.w3.org/2000/svg").count());
    assert!(!document.contains("url(") && !document.contains("@import") && !document.contains("src="));
}

#[test]
fn every_drawing_has_a_text_alternative() {
    let document = everything(&["plain".to_string()]).render();
    let drawings = document.matches("<svg").count();
    assert!(drawings > 15);
    assert_eq!(document.matches("role=\"img\" aria-label=\"").count(), drawings);
    assert!(!document.contains("aria-label=\"\""));
}

#[test]
fn a_million_points_and_values_stay_light() {
    let wave = |i: u32| (f64::from(i) * 1e-3).sin() + f64::from(i.wrapping_mul(2_654_435_761) % 1000) * 1e-3;
    let points: Vec<(f64, f64)> = (0..1_000_000).map(|i| (f64::from(i), wave(i))).collect();
    let band = points.iter().map(|p| (p.0, p.1 - 0.1, p.1 + 0.1)).collect();
    let values: Vec<f64> = points.iter().map(|p| p.1).collect();
    let mut report = Report::new("large");
    let line = LinePlot::new(Axis::linear("row"), Axis::linear("score"));
    report.plot("line", "", line.series(Series::new("score", points).markers().band(band)));
    let groups = vec![("a".into(), values.clone()), ("b".into(), values.clone()), ("c".into(), values.clone())];
    report.plot("histogram", "", Histogram::new("score", "rows", groups));
    let items: Vec<(String, f64)> = values.iter().enumerate().map(|(i, &v)| (i.to_string(), v)).take(100_000).collect();
    report.plot("ranked", "", Ranked::new(Axis::linear("score"), "row", "rows", items.clone()));
    report.plot("bars", "", Bars::largest("weight", "features", items, 30));
    let document = report.render();
    check_well_formed(&document);
    for drawing in document.split("<svg").skip(1) {
        let size = drawing.find("</svg>").expect("the drawing ends");
        assert!(size < 100_000, "{size} bytes");
    }
    assert!(document.len() < 600_000, "{}", document.len());
}

#[test]
fn an_empty_report_is_a_document_too() {
    let mut report = Report::new("");
    check_well_formed(&report.render());
    report.headline(vec![]).facts("", vec![]).table("", vec![], vec![]).text("", "").code("", "");
    report.plot("", "", LinePlot::roc(vec![])).plot("", "", Bars::new("", vec![]));
    report.plot("", "", HeatMap::new("", ("", vec![]), ("", vec![]), vec![]));
    check_well_formed(&report.render());
}

#[test]
fn columns_of_numbers_are_aligned_right() {
    let mut report = Report::new("t");
    let rows = vec![vec!["a1".into(), "0.716 ± 0.031".into()], vec!["2b".into(), "-3.0e-7".into()]];
    report.table("t", vec!["name".into(), "value".into()], rows);
    let document = report.render();
    assert!(document.contains("<th scope=\"col\">name</th><th scope=\"col\" class=\"number\">value</th>"));
    assert!(document.contains("<td>a1</td><td class=\"number\">0.716 ± 0.031</td>"));
}

#[test]
fn an_odd_number_of_half_sections_leaves_no_hole() {
    let line = || LinePlot::new(Axis::linear("x"), Axis::linear("y"));
    let mut report = Report::new("t");
    report.facts("facts", vec![]).facts("more", vec![]).plot("line", "", line());
    assert_eq!(report.render().matches("card full\"").count(), 1);
    report.plot("line", "", line());
    assert_eq!(report.render().matches("card full\"").count(), 0);
    report.facts("facts", vec![]);
    assert_eq!(report.render().matches("card full\"").count(), 1);
}
