//! `maxmargin compact MODEL -o SMALL`

use crate::args::CompactArguments;
use crate::commands::train::ensure_results;
use crate::console::Console;
use crate::format;
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::{Compaction, Scorer};
use maxmargin::run::Cancel;
use maxmargin_io::{load_model, save_model};
use serde_json::json;

/// The defaults: a tenth of the vectors, or enough vectors to keep the scores within a hundredth of the model's norm.
const USUAL_SHARE: usize = 10;
const USUAL_DISTANCE: f64 = 0.01;

pub(crate) fn run(arguments: &CompactArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    if let Some(distance) = arguments.distance.filter(|distance| !(distance.is_finite() && *distance >= 0.0)) {
        return Err(Error::new(
            Code::BadSetting,
            format!("--distance is {distance}, and must be zero or a positive number"),
        )
        .help("give a share of the model's norm such as 0.01"));
    }
    ensure_results(&[Some(&arguments.output)], &[Some(arguments.model.as_str())])?;
    let model = load_model(&arguments.model)?;
    let vectors = |scorer: &Scorer| match scorer {
        Scorer::Expansion(expansion) => Some(expansion.count() as u64),
        _ => None,
    };
    let before = vectors(&model.scorer);
    let to = match (arguments.vectors, arguments.distance) {
        (None, None) => Compaction {
            vectors: (before.unwrap_or(1) as usize).div_ceil(USUAL_SHARE).max(1),
            distance: USUAL_DISTANCE,
        },
        // If only one of the two is given, the other does not limit.
        (vectors, distance) => Compaction {
            vectors: vectors.map_or(usize::MAX, |vectors| vectors as usize),
            distance: distance.unwrap_or(0.0),
        },
    };
    let small = model.compact(to, cancel).map_err(|error| error.in_file(&arguments.model))?;
    let after = vectors(&small.scorer);
    let size = save_model(&small, &arguments.output)?;
    let Some(compacted) = &small.compacted else {
        return Err(Error::new(Code::Internal, "a compacted model does not say so"));
    };
    console.object(|| {
        json!({ "vectors": { "before": before, "after": after }, "norm": compacted.norm, "distance": compacted.distance,
            "bytes": size, "file": arguments.output })
    })?;
    if console.talks() {
        let counted = |count: Option<u64>| match count {
            Some(count) => format::counted(count, "support vector", "support vectors"),
            None => "weights".to_string(),
        };
        console.show(&format!("{} → {}", counted(before), counted(after)))?;
        console.show(&format!(
            "scores differ by at most {} · √k(x, x), {} % of the model's norm {}",
            // Rounded up, because it is a bound.
            format::significant(1.005 * compacted.distance, 3),
            format::significant(100.0 * compacted.distance / compacted.norm.max(f64::MIN_POSITIVE), 2),
            format::significant(compacted.norm, 4)
        ))?;
        console.show(&format!(
            "saved {} ({})          next: maxmargin evaluate {} test-data",
            arguments.output,
            format::bytes(size),
            format::shell_word(&arguments.output)
        ))?;
    }
    Ok(())
}
