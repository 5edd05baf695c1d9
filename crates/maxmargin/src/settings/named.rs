//! Settings by name: the command, settings files and other front ends set some, and the others keep their defaults.

use super::{Settings, Task};
use crate::error::{Code, Error, Result};
use crate::kernel::KernelSettings;
use crate::loss::Loss;
use crate::suggest::nearest;
use crate::task::{ClassWeight, Intercept};
use crate::wish::{COMMON, Choice, Chosen, Margin, Regularisation, STOCHASTIC, Setting, Solver, Stochastic, Value};
use crate::wording::all_of;
use serde_json::Value as Json;

/// The settings that determine the cost of a violated margin.
const OF_THE_LOSS: [&str; 4] = ["c", "lambda", "nu", "loss"];

/// For a stream: the default limit on how far one pair moves the weights, and the default pull toward zero.
const USUAL_STREAM_C: f64 = 0.1;
const USUAL_STREAM_LAMBDA: f64 = 1e-4;

impl Settings {
    /// The settings of a task with some chosen by name and all others at their defaults. They are checked with
    /// [`Settings::validate`].
    ///
    /// ```
    /// use maxmargin::settings::{Choice, Chosen, Settings, Task};
    ///
    /// let chosen = Chosen::from([("loss".to_string(), Choice::Text("logistic".to_string()))]);
    /// let settings = Settings::named(Task::Classify, &chosen)?;
    /// assert_eq!(settings.loss.name(), "logistic");
    /// # Ok::<(), maxmargin::Error>(())
    /// ```
    pub fn named(task: Task, chosen: &Chosen) -> Result<Settings> {
        let known: Vec<&Setting> = task.profile().all_settings().collect();
        let (mut settings, given) = Settings::new(task).laid_over(&known, chosen)?;
        let hard = settings.is_hard_margin();
        if given.iter().any(|setting| setting.name == "margin") && settings.margin == Margin::Soft && hard {
            let message = format!("`{}` trains a hard margin, and ⟦margin⟧ is soft", settings.solver.name());
            return Err(Error::new(Code::BadSetting, message).help("leave ⟦margin⟧ or ⟦solver⟧ out"));
        }
        // The hard margin is the limit of the hinge loss.
        let costs = |setting: &&&Setting| {
            let allowed = settings.margin == Margin::Hard && setting.name == "loss" && settings.loss == Loss::Hinge;
            OF_THE_LOSS.contains(&setting.name) && !allowed
        };
        if let (true, Some(setting)) = (hard, given.iter().find(costs)) {
            let named = setting.reference();
            return Err(Error::new(
                Code::BadSetting,
                format!("{named} sets the cost of a missed margin, and a hard margin allows none"),
            )
            .help(format!("leave {named} out, or use a soft margin: leave {} out", settings.hardened_by())));
        }
        let is_given = |name: &str| given.iter().any(|setting| setting.name == name);
        // Nu, the hard margin and measures of whole outputs are defined for the hinge loss.
        let optimizes = settings.task.optimized().is_some();
        if !is_given("loss") && (hard || optimizes || settings.regularisation.is_nu()) {
            settings.loss = Loss::Hinge;
        }
        if !is_given("intercept") && optimizes {
            settings = settings.with_free(Intercept::Penalised);
        }
        if !is_given("max-passes") {
            settings.max_passes = settings.usual_passes();
        }
        settings.validate()?;
        Ok(settings)
    }

    /// The same for learning from a stream. `kept` holds the settings of the model to continue, if it was trained on a
    /// stream; they stay unless another solver is chosen.
    pub fn streamed(task: Task, chosen: &Chosen, kept: Option<&Settings>) -> Result<Settings> {
        let known: Vec<&Setting> = task.profile().streamed.iter().collect();
        let (wanted, given) = Settings::new(task).laid_over(&known, chosen)?;
        let solver = if given.iter().any(|setting| setting.name == "solver") {
            wanted.solver
        } else {
            kept.map_or_else(|| usual_stream_solver(&known), |kept| kept.solver)
        };
        let base = match kept.filter(|kept| kept.solver == solver) {
            Some(kept) => kept.clone(),
            None => Settings {
                regularisation: match solver {
                    Solver::PassiveAggressive => Regularisation::C(USUAL_STREAM_C),
                    solver if solver.is_paired() => Regularisation::C(USUAL_STREAM_C),
                    _ => Regularisation::Lambda(USUAL_STREAM_LAMBDA),
                },
                max_passes: 1,
                loss: match (solver, Settings::new(task).loss) {
                    // These steps need a margin.
                    (Solver::PassiveAggressive, Loss::Logistic) => Loss::Hinge,
                    (_, loss) => loss,
                },
                ..Settings::new(task).with_solver(solver)
            },
        };
        let (settings, _) = base.laid_over(&known, chosen)?;
        settings.validate()?;
        Ok(settings)
    }

    /// These settings with the ones chosen by name, and the list of those.
    fn laid_over<'a>(&self, known: &[&'a Setting], chosen: &Chosen) -> Result<(Settings, Vec<&'a Setting>)> {
        let task = self.task.task();
        let find = |name: &String| {
            let found = known.iter().find(|setting| setting.name == *name || setting.aliases.contains(&name.as_str()));
            found.copied().ok_or_else(|| unknown(task, known, name))
        };
        let mut whole = as_json(self)?;
        let mut given = Vec::new();
        for (name, choice) in chosen {
            let setting = match find(name) {
                Ok(setting) => setting,
                // A setting that the task does not use is accepted if it has its default value.
                Err(_) if self.has_left_out(name, choice, &whole) => continue,
                Err(error) => return Err(error),
            };
            put(&mut whole, setting.place, setting.checked(choice)?);
            if given.iter().any(|other: &&Setting| other.name == setting.name) {
                let message = format!("{} is set twice: `{name}` is another name of it", setting.reference());
                return Err(Error::new(Code::BadSetting, message).help("keep one of them"));
            }
            given.push(setting);
        }
        if given.iter().filter(|setting| setting.place.starts_with("regularisation")).count() > 1 {
            return Err(Error::new(
                Code::BadSetting,
                "more than one of c, lambda and nu is set, and they set the same quantity",
            )
            .help("keep one of them"));
        }
        let settings =
            serde_json::from_value(whole).map_err(|error| Error::new(Code::BadSetting, error.to_string()))?;
        Ok((settings, given))
    }

    /// Whether a common setting that the task does not use is given its default value.
    fn has_left_out(&self, name: &str, choice: &Choice, whole: &Json) -> bool {
        let without = self.task.task().profile().without;
        let setting = COMMON.iter().find(|setting| setting.name == name && without.contains(&name));
        setting
            .is_some_and(|setting| setting.checked(choice).is_ok_and(|value| at(whole, setting.place) == Some(&value)))
    }

    /// The names and values that give these settings again, even if another version has other defaults. Rare settings
    /// are included only if they were set.
    pub fn to_named(&self) -> Result<Chosen> {
        let (own, soft) = (as_json(self)?, !self.is_hard_margin());
        let usual = serde_json::json!({
            "stochastic": Stochastic::default(),
            "kernel": KernelSettings::default(),
            "task": { "class-weight": ClassWeight::default() },
        });
        let mut chosen = Chosen::new();
        for setting in self.task.task().profile().all_settings() {
            let Some(value) = at(&own, setting.place) else { continue };
            if at(&usual, setting.place) == Some(value) || (!soft && OF_THE_LOSS.contains(&setting.name)) {
                continue;
            }
            if let Some(choice) = chosen_of(setting, value) {
                chosen.insert(setting.name.to_string(), choice);
            }
        }
        Ok(chosen)
    }

    /// The first setting of the same task that makes another problem: not the weight of the loss, nor how the problem is
    /// solved.
    pub(crate) fn differs_from(&self, other: &Settings) -> Result<Option<&'static str>> {
        const OF_THE_RUN: [&str; 9] =
            ["c", "lambda", "nu", "tolerance", "max-passes", "max-seconds", "solver", "seed", "kernel-cache"];
        let (own, others) = (as_json(self)?, as_json(other)?);
        let same = |setting: &&Setting| {
            OF_THE_RUN.contains(&setting.name)
                || setting.heading == STOCHASTIC
                || at(&own, setting.place) == at(&others, setting.place)
        };
        Ok(self.task.task().profile().all_settings().find(|setting| !same(setting)).map(|setting| setting.name))
    }

    /// Refuses numbers outside their declared ranges.
    pub(super) fn check_ranges(&self) -> Result<()> {
        let (own, profile) = (as_json(self)?, self.task.task().profile());
        for setting in profile.all_settings().chain(profile.streamed) {
            let Some(value) = at(&own, setting.place) else { continue };
            match (setting.value, value) {
                // JSON cannot represent a number that is not finite.
                (Value::Number(_), Json::Null) => drop(setting.checked(&Choice::Number(f64::NAN))?),
                (Value::Number(_) | Value::Whole(..), value) => {
                    if let Some(choice) = chosen_of(setting, value) {
                        setting.checked(&choice)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The first of the solvers that a task declares for streams.
fn usual_stream_solver(known: &[&Setting]) -> Solver {
    let names = known.iter().find(|setting| setting.name == "solver").map(|setting| setting.value);
    let Some(Value::Name(names)) = names else { return Solver::PassiveAggressive };
    let all = Solver::ALL.into_iter().chain([Solver::PassiveAggressive]).chain(Solver::PAIRED);
    let usual = |solver: &Solver| names().first() == Some(&solver.name());
    all.into_iter().find(usual).unwrap_or(Solver::PassiveAggressive)
}

fn as_json(settings: &Settings) -> Result<Json> {
    serde_json::to_value(settings).map_err(internal)
}

fn internal(error: serde_json::Error) -> Error {
    Error::new(Code::Internal, error.to_string())
}

/// Sets the value at a path such as `kernel.gamma`. At a path such as `regularisation.(c)`, it replaces what was there.
fn put(whole: &mut Json, place: &str, value: Json) {
    match place.split_once('.') {
        Some((key, rest)) => {
            let Some(part) = whole.as_object_mut() else { return };
            let inside = part.entry(key).or_insert_with(|| Json::Object(Default::default()));
            match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
                Some(name) => *inside = serde_json::json!({ name: value }),
                None => put(inside, rest, value),
            }
        }
        None => {
            if let Some(part) = whole.as_object_mut() {
                part.insert(place.to_string(), value);
            }
        }
    }
}

/// The value at a path.
fn at<'a>(whole: &'a Json, place: &str) -> Option<&'a Json> {
    place.split('.').try_fold(whole, |part, key| part.get(key.trim_matches(['(', ')'])))
}

/// A value of the settings in the form that a front end passes.
fn chosen_of(setting: &Setting, value: &Json) -> Option<Choice> {
    Some(match (setting.value, value) {
        (Value::Number(_), value) => Choice::Number(value.as_f64()?),
        (Value::Whole(..), value) => Choice::Whole(value.as_u64()?),
        (Value::Size, value) => Choice::Text(crate::wording::Size(value.as_u64()?).to_string()),
        (Value::Switch, value) => Choice::Switch(value.as_bool()?),
        (Value::Name(_) | Value::Parsed(_) | Value::Label, value) => Choice::Text(value.as_str()?.to_string()),
        (Value::Words, value) => {
            let words = value.as_array()?.iter().map(|word| word.as_str().map(str::to_string));
            Choice::Words(words.collect::<Option<_>>()?)
        }
        (Value::ClassWeights, Json::String(text)) => Choice::Text(text.clone()),
        (Value::ClassWeights, value) => {
            let weights = Choice::Weights(serde_json::from_value(value.get("by-label")?.clone()).ok()?);
            let text = Choice::Text(weights.to_string());
            // The text form cannot hold labels that contain commas or start or end with spaces.
            if setting.checked(&text).is_ok_and(|read| read == *value) { text } else { weights }
        }
    })
}

/// The error for a name that the task does not have.
fn unknown(task: Task, known: &[&Setting], name: &str) -> Error {
    let others: Vec<&str> =
        Task::ALL.into_iter().filter(|other| other.profile().setting(name).is_some()).map(Task::name).collect();
    let named = !others.is_empty() && crate::wording::NAMES.contains(&name);
    let shown = if named { format!("⟦{name}⟧") } else { format!("`{name}`") };
    let error = Error::new(Code::BadSetting, format!("{shown} is not a setting of `{}`", task.name()));
    match (&others[..], nearest(name, known.iter().map(|setting| setting.name))) {
        ([], Some(similar)) => error.help(format!("did you mean `{similar}`?")),
        ([], None) => error.help(format!("leave it out; `maxmargin train {} --help` lists the settings", task.name())),
        (others, _) => error.help(format!("leave it out, or use another task: it is for {}", all_of(others))),
    }
}

#[cfg(test)]
mod tests;
