//! Checks for structured outputs: whether the search finds the most violated output, and whether losses, features and
//! encoded outputs are what solvers rely on.
//!
//! The weights to try are zero, random ones of four sizes, and those of a first step from zero. The outputs that all
//! searches find for an example are compared with each other at all weights, together with the truth. So a search is only
//! compared with outputs that the structure itself calls outputs. This is no proof: a search that is wrong in the same way
//! everywhere is not found. Compare it with a list of all outputs where they are few.
//!
//! Cost: for each of at most [`MOST_EXAMPLES`] examples some 40 searches.

use crate::error::{Code, Error};
use crate::random::Random;
use crate::structured::{Encoded, Examples, Features, Oracle, Plane, Rescale, Scores, Structure};

/// The purpose of these random numbers.
const POINTS: u64 = 0x6f72_6163;

/// So many examples are tried, evenly spaced.
const MOST_EXAMPLES: usize = 20;

/// The sizes of random weights, each tried twice.
const SIZES: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

/// The largest difference between two ways to compute the same number, relative to the size of its terms.
const ROUNDING: f64 = 1e-9;

/// Numbers of an output that a message shows.
const SHOWN: usize = 12;

/// Scores of all rows, and shared scores.
struct Point {
    name: String,
    rows: Vec<f64>,
    shared: Vec<f64>,
}

/// A search of a structure.
type Search = fn(&dyn Structure, usize, Scores<'_>, &mut Vec<u32>) -> crate::error::Result<()>;

/// What a search maximises.
type Aim = fn(&Plane, Scores<'_>) -> f64;

/// The searches, with what they maximise.
const SEARCHES: [(&str, Search, Aim); 2] = [
    (
        "most_violated",
        |structure, example, at, output| structure.most_violated(example, at, output),
        |plane, at| plane.value(at),
    ),
    (
        "most_violated_by_slack",
        |structure, example, at, output| structure.most_violated_by_slack(example, at, output),
        |plane, at| plane.loss * (1.0 + plane.product(at)),
    ),
];

/// Looks at an output of an example.
type Look<'a> = &'a dyn Fn(usize, &[u32]) -> Result<(), String>;

/// A structure under test.
struct Tried<'a> {
    structure: &'a dyn Structure,
    examples: Vec<usize>,
    points: Vec<Point>,
    /// The outputs found so far of each of the examples, with their planes.
    known: Vec<Vec<(Vec<u32>, Plane)>>,
    /// Looks at an output that was found, before its plane is asked for.
    admit: Look<'a>,
    /// How an output is shown.
    show: &'a dyn Fn(&[u32]) -> String,
}

fn fails(example: usize, what: &str, error: &Error) -> String {
    format!("example {example}: {what} fails: {}", error.message())
}

/// The first numbers of an output.
fn numbers(output: &[u32]) -> String {
    let shown: Vec<String> = output.iter().take(SHOWN).map(u32::to_string).collect();
    let more = if output.len() > SHOWN { ", …" } else { "" };
    format!("[{}{more}]", shown.join(", "))
}

/// Examples that are tried, evenly spaced.
fn chosen(examples: usize) -> Vec<usize> {
    let count = examples.min(MOST_EXAMPLES);
    (0..count).map(|at| at * examples / count).collect()
}

impl Tried<'_> {
    fn scores(&self, example: usize, point: usize) -> Scores<'_> {
        let (rows, outputs) = (self.structure.rows(example), self.structure.outputs());
        let Point { rows: scores, shared, .. } = &self.points[point];
        Scores { rows: &scores[rows.start * outputs..rows.end * outputs], shared }
    }

    fn prepare(&self, point: usize) -> Result<(), String> {
        let Point { name, shared, .. } = &self.points[point];
        self.structure.prepare(shared).map_err(|error| format!("prepare fails at {name}: {}", error.message()))
    }

    /// The output of a search, or none if the structure does not have that search.
    fn found(&self, search: usize, example: usize, point: usize) -> Result<Option<Vec<u32>>, String> {
        let (name, search, _) = SEARCHES[search];
        let mut output = Vec::new();
        match search(self.structure, example, self.scores(example, point), &mut output) {
            Ok(()) => Ok(Some(output)),
            Err(error) if error.code() == Code::Unsupported && name != SEARCHES[0].0 => Ok(None),
            Err(error) => Err(fails(example, name, &error)),
        }
    }

    /// Adds an output to the known ones.
    fn learn(&mut self, at: usize, output: Vec<u32>) -> Result<(), String> {
        let example = self.examples[at];
        if self.known[at].iter().any(|known| known.0 == output) {
            return Ok(());
        }
        (self.admit)(example, &output)?;
        let plane = self.plane(example, &output)?;
        self.known[at].push((output, plane));
        Ok(())
    }

    fn plane(&self, example: usize, output: &[u32]) -> Result<Plane, String> {
        let structure = self.structure;
        let mut plane = Plane::default();
        structure.plane(example, output, &mut plane).map_err(|error| fails(example, "the plane", &error))?;
        let shown = || (self.show)(output);
        let Plane { loss, rows, shared } = &plane;
        if !(loss.is_finite() && *loss >= 0.0) {
            return Err(format!("example {example}: the loss of {} is {loss}, and must be zero or more", shown()));
        }
        let most = structure.largest_loss();
        if *loss > most * (1.0 + ROUNDING) {
            return Err(format!("example {example}: the loss of {} is {loss}, and the largest is {most}", shown()));
        }
        let scores = structure.rows(example).len() * structure.outputs();
        for (what, entries, count) in [("row", rows, scores), ("shared", shared, structure.shared())] {
            if entries.iter().any(|entry| entry.0 as usize >= count || !entry.1.is_finite()) {
                let entry = entries.iter().find(|entry| entry.0 as usize >= count || !entry.1.is_finite());
                return Err(format!(
                    "example {example}: a {what} slope of {} is {entry:?}, with {count} scores",
                    shown()
                ));
            }
            if !entries.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(format!("example {example}: the {what} slopes of {} do not rise in position", shown()));
            }
        }
        Ok(plane)
    }

    /// Searches at all points, and keeps what is found. Then adds the points of a first step from zero, and searches there.
    fn explore(&mut self) -> Result<(), String> {
        let mut next = 0;
        for stage in 0..2 {
            for point in next..self.points.len() {
                self.prepare(point)?;
                for at in 0..self.examples.len() {
                    for search in 0..SEARCHES.len() {
                        if let Some(output) = self.found(search, self.examples[at], point)? {
                            self.learn(at, output)?;
                        }
                    }
                }
            }
            next = self.points.len();
            if stage == 0 {
                self.add_steps();
            }
        }
        Ok(())
    }

    /// Points of steps against the mean of the first planes, as solvers take them.
    fn add_steps(&mut self) {
        let (mut rows, mut shared) = (vec![0.0; self.points[0].rows.len()], vec![0.0; self.points[0].shared.len()]);
        let (share, outputs) = (1.0 / self.examples.len().max(1) as f64, self.structure.outputs());
        for (example, known) in self.examples.iter().zip(&self.known) {
            let Some((_, plane)) = known.first() else { continue };
            let first = self.structure.rows(*example).start * outputs;
            plane.rows.iter().for_each(|&(place, slope)| rows[first + place as usize] -= slope);
            plane.shared.iter().for_each(|&(place, slope)| shared[place as usize] -= share * slope);
        }
        for size in [0.1, 1.0] {
            let scaled = |values: &[f64]| values.iter().map(|value| size * value).collect();
            let name = format!("the weights of a step of {size} from zero");
            self.points.push(Point { name, rows: scaled(&rows), shared: scaled(&shared) });
        }
    }

    /// Searches at all points again: the answers are the same, and no known output is better.
    fn compare(&self) -> Result<(), String> {
        for point in 0..self.points.len() {
            self.prepare(point)?;
            let name = &self.points[point].name;
            for (&example, known) in self.examples.iter().zip(&self.known) {
                let at = self.scores(example, point);
                for (search, (searched, _, value)) in SEARCHES.iter().enumerate() {
                    let Some(output) = self.found(search, example, point)? else { continue };
                    let shown = (self.show)(&output);
                    let Some((_, own)) = known.iter().find(|known| known.0 == output) else {
                        return Err(format!(
                            "example {example}: {searched} changes its answer at {name}: it is now {shown}"
                        ));
                    };
                    let again = self.found(search, example, point)?;
                    if let Some(again) = again.filter(|again| *again != output) {
                        let again = (self.show)(&again);
                        return Err(format!(
                            "example {example}: {searched} changes its answer at {name}: first {shown}, then {again}"
                        ));
                    }
                    let (found, allowed) = (value(own, at), allowed(own, at));
                    if found < -allowed {
                        return Err(format!(
                            "example {example}: at {name}, {searched} returns {shown}, which is worse than the truth: \
                             it has {found}, and the truth 0"
                        ));
                    }
                    let better = known.iter().find(|(_, other)| value(other, at) > found + allowed);
                    if let Some((better, plane)) = better {
                        let (better, best) = ((self.show)(better), value(plane, at));
                        return Err(format!(
                            "example {example}: at {name}, {searched} returns {shown} with {found}, and {better} has {best}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

/// What rounding may change in a value.
fn allowed(plane: &Plane, at: Scores<'_>) -> f64 {
    let of = |entries: &[(u32, f64)], scores: &[f64]| -> f64 {
        entries.iter().map(|&(place, slope)| (slope * scores[place as usize]).abs()).sum()
    };
    ROUNDING * (1.0 + plane.loss) * (1.0 + of(&plane.rows, at.rows) + of(&plane.shared, at.shared))
}

/// The weights to try: zero and random ones. Those of a first step follow later.
fn points(rows: usize, shared: usize) -> Vec<Point> {
    let mut points = vec![Point { name: "zero weights".to_string(), rows: vec![0.0; rows], shared: vec![0.0; shared] }];
    for (number, size) in SIZES.iter().chain(&SIZES).enumerate() {
        let mut random = Random::new(0, POINTS, number as u64);
        let mut draw = |count: usize| (0..count).map(|_| size * random.normal()).collect();
        let name = format!("random weights of size {size}");
        points.push(Point { name, rows: draw(rows), shared: draw(shared) });
    }
    points
}

/// Rows of examples are in order and do not overlap. Returns where they end.
fn check_rows(structure: &dyn Structure) -> Result<usize, String> {
    let mut end = 0;
    for example in 0..structure.examples() {
        let (rows, weight) = (structure.rows(example), structure.weight(example));
        if rows.start < end || rows.end < rows.start {
            return Err(format!(
                "example {example} has rows {rows:?}, and the rows up to {end} belong to earlier ones"
            ));
        }
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(format!("the weight of example {example} is {weight}, and must be zero or more"));
        }
        end = rows.end;
    }
    Ok(end)
}

/// Checks a structure in score space. Searches return the same for the same scores, and nothing worse than the truth or than
/// what they return elsewhere. Losses are zero or more, and slopes are finite, in order and in range.
pub fn check_structure(structure: &dyn Structure) -> Result<(), String> {
    let rows = check_rows(structure)? * structure.outputs();
    let mut tried = Tried {
        structure,
        examples: chosen(structure.examples()),
        points: points(rows, structure.shared()),
        known: vec![Vec::new(); structure.examples().min(MOST_EXAMPLES)],
        admit: &|_, _| Ok(()),
        show: &numbers,
    };
    tried.explore()?;
    tried.compare()
}

/// Checks an oracle on examples. Joint features have finite entries in range, and losses are zero at the truth and never
/// negative. Outputs are decoded to themselves. The searches return the same for the same weights, and nothing worse than
/// the truth or than what they return elsewhere; so does the prediction.
pub fn check_oracle<O: Oracle + 'static>(examples: &Examples<O>) -> Result<(), String> {
    let tried = chosen(examples.len());
    let coded = |output: &O::Output| {
        let mut numbers = Vec::new();
        output.encode(&mut numbers);
        numbers
    };
    let oracle = examples.oracle();
    let show = |output: &[u32]| match O::Output::decode(output) {
        Some(decoded) => oracle.words(&decoded).unwrap_or_else(|| numbers(output)),
        None => numbers(output),
    };
    let admit = |example: usize, output: &[u32]| {
        let Some(decoded) = O::Output::decode(output) else {
            return Err(format!("example {example}: an output is encoded as {}, and not decoded", numbers(output)));
        };
        let again = coded(&decoded);
        if again != output {
            let (first, then) = (numbers(output), numbers(&again));
            return Err(format!("example {example}: an output is encoded as {first}, and once decoded as {then}"));
        }
        let features = || examples.features(example, &decoded).map_err(|error| error.message().into_owned());
        if features()? != features()? {
            return Err(format!("example {example}: joint_feature changes its answer for {}", show(output)));
        }
        Ok(())
    };
    for &example in &tried {
        let truth = examples.example(example).1;
        admit(example, &coded(truth))?;
        let loss = oracle.loss(truth, truth).map_err(|error| fails(example, "the loss", &error))?;
        if loss != 0.0 {
            return Err(format!("example {example}: the loss of the truth is {loss}, and must be 0"));
        }
    }
    let structure = examples.structure(Rescale::Margin, None);
    let mut tried = Tried {
        structure: &*structure,
        known: vec![Vec::new(); tried.len()],
        examples: tried,
        points: points(examples.len(), examples.dimension()),
        admit: &admit,
        show: &show,
    };
    tried.explore()?;
    for point in 0..tried.points.len() {
        tried.prepare(point)?;
        for at in 0..tried.examples.len() {
            let example = tried.examples[at];
            let predicted = oracle.predict(examples.example(example).0, &tried.points[point].shared);
            tried.learn(at, coded(&predicted.map_err(|error| fails(example, "predict", &error))?))?;
        }
    }
    tried.compare()?;
    check_predictions(examples, &tried, &coded)
}

/// Checks that no known output has a larger score than the prediction.
fn check_predictions<O: Oracle + 'static>(
    examples: &Examples<O>,
    tried: &Tried<'_>,
    coded: &dyn Fn(&O::Output) -> Vec<u32>,
) -> Result<(), String> {
    let oracle = examples.oracle();
    let features = |example: usize, output: &[u32]| -> Result<Features, String> {
        match O::Output::decode(output) {
            Some(decoded) => examples.features(example, &decoded).map_err(|error| error.message().into_owned()),
            None => Err(format!("example {example}: {} is not decoded", numbers(output))),
        }
    };
    for (point, Point { name, shared, .. }) in tried.points.iter().enumerate() {
        tried.prepare(point)?;
        for (&example, known) in tried.examples.iter().zip(&tried.known) {
            let (x, truth) = examples.example(example);
            let predict = || oracle.predict(x, shared).map_err(|error| fails(example, "predict", &error));
            let predicted = coded(&predict()?);
            (tried.admit)(example, &predicted)?;
            let (shown, again) = ((tried.show)(&predicted), coded(&predict()?));
            if again != predicted {
                let again = (tried.show)(&again);
                return Err(format!(
                    "example {example}: predict changes its answer at {name}: first {shown}, then {again}"
                ));
            }
            let (score, size) = (features(example, &predicted)?.score(shared), examples.truth(example).size(shared));
            let truth = coded(truth);
            for other in known.iter().map(|known| &known.0).chain([&truth]) {
                let other_features = features(example, other)?;
                let best = other_features.score(shared);
                let allowed = ROUNDING * (1.0 + size + other_features.size(shared));
                if best > score + allowed {
                    let other = (tried.show)(other);
                    return Err(format!(
                        "example {example}: at {name}, predict returns {shown} with score {score}, and {other} has {best}"
                    ));
                }
            }
        }
    }
    Ok(())
}
