//! A page for every code, and completions for shells.

use crate::workbench::Workbench;

#[test]
fn every_code_has_a_page() {
    let bench = Workbench::new();
    let codes = bench.json("explain");
    let codes = codes.as_object().expect("an object");
    assert!(codes.len() > 40);
    for (code, title) in codes {
        let title = title.as_str().expect("a title");
        let page = bench.ok(&format!("explain {code}")).shows(&format!("{code}: {title}\n")).stdout;
        assert!(page.contains("Example") && page.contains("What to do"), "{page}");
    }
    let listed = bench.ok("explain").stdout;
    assert_eq!(listed.lines().count(), codes.len());
}

#[test]
fn codes_may_be_typed_in_short_and_unknown_ones_are_refused() {
    let bench = Workbench::new();
    let page = bench.ok("explain MM0203").stdout;
    for short in ["mm0203", "203", "0203"] {
        assert_eq!(bench.ok(&format!("explain {short}")).stdout, page);
    }
    let object = bench.json("explain MM0203");
    assert_eq!(object["code"], "MM0203");
    bench.refused("explain MM9999", "MM0406").says("`maxmargin explain` lists all codes");
}

#[test]
fn completions_are_printed_for_every_shell() {
    let bench = Workbench::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        bench.ok(&format!("completions {shell}")).shows("maxmargin").shows("evaluate");
    }
    bench.refused("completions tcsh", "MM0405");
}
