//! The tour.

use crate::workbench::Workbench;

#[test]
fn the_demo_writes_a_report_that_opens_offline() {
    let bench = Workbench::new();
    let ran = bench.ok("demo");
    let report = bench.text("report.html");
    assert_self_contained(&report);
    assert!(report.matches("<svg").count() >= 5, "plots of both tasks");
    assert!(bench.path("maxmargin-demo").is_dir());
    assert!(ran.stdout.contains("report.html") || ran.stderr.contains("report.html"));
    let before = report;
    bench.ok("demo -q");
    assert_eq!(bench.text("report.html").matches("<svg").count(), before.matches("<svg").count());
}

#[test]
fn the_demo_goes_where_it_is_told_and_says_so_in_json() {
    let bench = Workbench::new();
    bench.json("demo --report tour.html --folder tour --seed 7");
    assert!(bench.path("tour.html").is_file() && bench.path("tour").is_dir());
    bench.refused("demo --report nowhere/tour.html", "MM0108");
}

/// Checks that the HTML loads nothing external.
pub(crate) fn assert_self_contained(html: &str) {
    assert!(html.contains("<svg") && html.contains("<style"));
    for outside in ["<link", "<script src", "src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(outside), "the report loads {outside}");
    }
}
