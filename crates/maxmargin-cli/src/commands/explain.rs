//! `maxmargin explain CODE`: a page about each error.

use crate::args::ExplainArguments;
use crate::console::Console;
use maxmargin::error::{Code, Error, Result};
use maxmargin::settings::Solver;
use maxmargin::solve::{Support, support_table};
use maxmargin::suggest::{edit_distance, nearest};
use serde_json::json;

/// The pages, one per code, each under a heading `## MM0101 title`.
const PAGES: &str = include_str!("../pages/errors.md");

/// The page of a code, without its heading.
pub(crate) fn page(code: Code) -> Option<&'static str> {
    let start = PAGES.find(&format!("\n## {code} "))? + 1;
    let body = &PAGES[start..];
    let end = body[1..].find("\n## ").map_or(body.len(), |next| next + 1);
    Some(body[..end].split_once('\n')?.1.trim())
}

/// The placeholder in the page of MM0401 for the table of tasks and solvers.
const SUPPORT: &str = "{support}";

/// Which solver solves what, as the program decides it: a block of lines for each task and loss.
fn support() -> String {
    let mut blocks: Vec<(String, Vec<&str>, [String; 2])> = Vec::new();
    for Support { task, loss, weights, kernel } in support_table() {
        let names = |solvers: &[Solver]| solvers.iter().map(|solver| solver.name()).collect::<Vec<_>>().join(", ");
        let solvers = [names(&weights), names(&kernel)];
        match blocks.iter_mut().find(|(other, _, taken)| *other == task && *taken == solvers) {
            Some((_, losses, _)) => losses.push(loss.name()),
            None => blocks.push((task, vec![loss.name()], solvers)),
        }
    }
    let mut lines = Vec::new();
    for (task, losses, [weights, kernel]) in blocks {
        lines.push(format!("- {task}, with {}:", losses.join(" or ")));
        let of = |what: &str, solvers: String| (!solvers.is_empty()).then(|| format!("  - {what}: {solvers}"));
        lines.extend(of("for weights", weights).into_iter().chain(of("through a kernel", kernel)));
    }
    lines.join("\n")
}

pub(crate) fn run(arguments: &ExplainArguments, console: &Console) -> Result<()> {
    let Some(asked) = &arguments.code else {
        console.object(|| Code::ALL.iter().map(|code| (code.to_string(), json!(code.title()))).collect())?;
        if !console.json() {
            for code in Code::ALL {
                console.print(&format!("{code}  {}", code.title()))?;
            }
        }
        return Ok(());
    };
    let wanted = asked.trim().to_ascii_uppercase();
    let wanted = if wanted.starts_with("MM") { wanted } else { format!("MM{wanted:0>4}") };
    let code = Code::ALL.iter().copied().find(|code| code.to_string() == wanted).ok_or_else(|| {
        let codes = Code::ALL.iter().map(ToString::to_string);
        let near = nearest(&wanted, codes).filter(|near| edit_distance(near, &wanted) <= 1);
        let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
        Error::new(Code::UnknownCode, format!("there is no error code `{asked}`"))
            .help(format!("{near}`maxmargin explain` lists all codes"))
    })?;
    let page = page(code).ok_or_else(|| Error::new(Code::Internal, format!("{code} has no page")))?;
    let page = page.replace(SUPPORT, &support());
    console.object(|| json!({ "code": code.to_string(), "title": code.title(), "page": page }))?;
    if !console.json() {
        console.print(&format!("{code}: {}\n\n{page}", code.title()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_to_solvers_shows_the_support_matrix() {
        let guide = include_str!("../../../../docs/solvers.md");
        assert!(guide.contains(&support()), "docs/solvers.md should show:\n{}", support());
        assert!(PAGES.contains(SUPPORT));
    }

    #[test]
    fn every_code_has_a_page_with_an_example_and_a_remedy() {
        for &code in Code::ALL {
            let page = page(code).unwrap_or_else(|| panic!("{code} has no page"));
            assert!(page.contains("Example") && page.contains("What to do"), "{code}:\n{page}");
        }
        let headings = PAGES.matches("\n## MM").count();
        assert_eq!(headings, Code::ALL.len(), "a page without a code");
    }
}
