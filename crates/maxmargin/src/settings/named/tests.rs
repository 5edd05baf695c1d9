//! Every declared setting can be set by name and read back by name, and is refused where it does not belong.

use super::*;
use crate::data::Scale;
use crate::kernel::{Approximation, KernelKind, KernelSettings};
use crate::random::Random;
use crate::settings::{ClassifySettings, CompareSettings, Method, RankSettings, Stochastic};
use crate::task::{ClassWeight, Intercept, PairWeight, WeightAs};
use crate::wish::{COMMON, EarlyStopping, Range, Sample, Schedule};
use std::collections::BTreeSet;

fn text(value: &str) -> Choice {
    Choice::Text(value.to_string())
}

fn chosen<const N: usize>(parts: [(&str, Choice); N]) -> Chosen {
    parts.map(|(name, choice)| (name.to_string(), choice)).into()
}

/// A value other than the default, and other settings that it needs. Every setting needs a line here to be tested.
fn example(task: Task, name: &str) -> (Choice, Chosen) {
    let (sgd, gaussian) = (|| chosen([("solver", text("sgd"))]), || chosen([("kernel", text("gaussian"))]));
    let polynomial = || chosen([("kernel", text("polynomial"))]);
    let alone = Chosen::new;
    match name {
        "loss" if matches!(task, Task::Rank | Task::Multilabel) => (text("hinge"), alone()),
        "loss" => (text("squared-hinge"), alone()),
        "c" | "lambda" | "kappa" => (Choice::Number(0.25), alone()),
        "form" => (text("explicit"), alone()),
        "nu" if task == Task::OneClass => (Choice::Number(0.25), alone()),
        "nu" => (Choice::Number(0.25), chosen([("loss", text("hinge"))])),
        "solver" => (text(if task == Task::OneClass { "smo" } else { "newton" }), alone()),
        "margin" => (text("hard"), chosen([("loss", text("hinge"))])),
        "scale" => (text("standard"), alone()),
        "tolerance" => (Choice::Number(0.125), alone()),
        "max-passes" | "seed" => (Choice::Whole(7), alone()),
        "max-seconds" => (Choice::Number(2.5), alone()),
        "kernel" => (text("gaussian"), alone()),
        "gamma" => (Choice::Number(0.25), gaussian()),
        "degree" => (Choice::Whole(2), polynomial()),
        "coef0" => (Choice::Number(-0.5), polynomial()),
        "approximate" => (text("nystrom:20"), gaussian()),
        "kernel-cache" => (text("3MiB"), gaussian()),
        "budget" => (Choice::Whole(20), gaussian().into_iter().chain(sgd()).collect()),
        "schedule" => (text("inverse"), sgd()),
        "rate" => (Choice::Number(0.25), sgd()),
        "batch" => (Choice::Whole(3), sgd()),
        "polish" => (Choice::Switch(true), alone()),
        "project" => (Choice::Switch(true), sgd()),
        "early-stopping" => (text("subsamples"), sgd()),
        "judge-every" => {
            let beside = chosen([("early-stopping", text("validation"))]);
            (Choice::Whole(30), beside.into_iter().chain(sgd()).collect())
        }
        "sample" => (text("queries"), sgd()),
        "intercept" if matches!(task, Task::Classify | Task::Multilabel) => (text("none"), alone()),
        "multilabel" => (text("one-vs-rest"), alone()),
        "step" => (text("two-labels"), alone()),
        "class-weight" => (text("spam=5,ham=0.5"), alone()),
        "positive" => (text("ham"), alone()),
        "multiclass" => (text("weston-watkins"), chosen([("loss", text("hinge"))])),
        "probability" => (text("isotonic"), alone()),
        "code" => (text("bch:15"), alone()),
        "decoding" => (text("hinge"), chosen([("multiclass", text("one-vs-rest"))])),
        "pair-weight" => (text("per-query"), alone()),
        "targets-are" => (text("clicks"), alone()),
        "optimize" if task == Task::Rank => (text("ndcg@5"), chosen([("loss", text("hinge"))])),
        "optimize" => (text("f1"), chosen([("intercept", text("penalised"))])),
        "order-score" => (text("sum"), chosen([("loss", text("hinge")), ("optimize", text("map"))])),
        "weight-as" if matches!(task, Task::Rank | Task::Compare) => (text("margin"), alone()),
        "weight-as" => (text("copies"), alone()),
        "cost-matrix" => (text("label,a,b\na,0,2\nb,1,0\n"), alone()),
        "loss-scale" => (text("length"), alone()),
        "siblings" => (Choice::Whole(2), alone()),
        "parents" => (Choice::Switch(true), alone()),
        "method" => (text("rank2"), alone()),
        "threshold" => (text("penalised"), alone()),
        "ties-from-grades" => (Choice::Switch(true), alone()),
        _ => panic!("no example of `{name}` for `{}`", task.name()),
    }
}

/// The settings after one was chosen, with its value put back to what it was before.
fn put_back(after: &Settings, before: &Settings, setting: &Setting) -> Settings {
    let (mut whole, before) = (as_json(after).expect("JSON"), as_json(before).expect("JSON"));
    // A path in brackets replaces what was there before, which has another name.
    let place = setting.place.split(".(").next().expect("a place");
    let (outer, key) = place.rsplit_once('.').unwrap_or(("", place));
    let pointer = |place: &str| place.split('.').filter(|key| !key.is_empty()).map(|key| format!("/{key}")).collect();
    let (outer, inner): (String, String) = (pointer(outer), pointer(place));
    let part = whole.pointer_mut(&outer).and_then(Json::as_object_mut).expect("the place is there");
    match before.pointer(&inner) {
        Some(value) => part.insert(key.to_string(), value.clone()),
        None => part.remove(key),
    };
    serde_json::from_value(whole).expect("settings")
}

fn refused(outcome: Result<Settings>, what: &str) -> Error {
    let error = outcome.err().unwrap_or_else(|| panic!("{what} was not refused"));
    assert_eq!((error.code(), error.code().number()), (Code::BadSetting, 402), "{what}: {error}");
    error
}

#[test]
fn every_setting_is_set_by_its_names_and_changes_nothing_else() {
    for task in Task::ALL {
        for setting in task.profile().all_settings() {
            let (choice, mut beside) = example(task, setting.name);
            if setting.name != "max-passes" {
                // Otherwise the number of passes depends on the solver and the kernel.
                beside.insert("max-passes".to_string(), Choice::Whole(50));
            }
            let before = Settings::named(task, &beside).expect("what stands beside it");
            for name in [setting.name].iter().chain(setting.aliases) {
                let what = format!("{name} of {}", task.name());
                let mut all = beside.clone();
                all.insert(name.to_string(), choice.clone());
                let after = Settings::named(task, &all).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_ne!(after, before, "{what}");
                let expected = setting.checked(&choice).expect("a value");
                let json = as_json(&after).expect("JSON");
                // The amount of memory is not part of what identifies settings.
                let cache = after.kernel.cache.map(Json::from).filter(|_| setting.name == "kernel-cache");
                assert_eq!(cache.as_ref().or(at(&json, setting.place)), Some(&expected), "{what}");
                assert_eq!(put_back(&after, &before, setting), before, "{what}");
            }
        }
    }
}

#[test]
fn every_setting_of_a_stream_is_set_by_its_name_and_changes_nothing_else() {
    for setting in Task::Compare.profile().streamed {
        let (choice, beside) = match setting.name {
            // The solver decides whether c or lambda is used.
            "solver" => continue,
            "lambda" | "rate" => (Choice::Number(0.25), chosen([("solver", text("averaged-sgd"))])),
            "judge-every" => (Choice::Whole(30), chosen([("early-stopping", text("validation"))])),
            name => (example(Task::Compare, name).0, Chosen::new()),
        };
        let before = Settings::streamed(Task::Compare, &beside, None).expect("a stream");
        let mut all = beside.clone();
        all.insert(setting.name.to_string(), choice.clone());
        let after = Settings::streamed(Task::Compare, &all, None).unwrap_or_else(|e| panic!("{}: {e}", setting.name));
        assert_ne!(after, before, "{}", setting.name);
        let expected = setting.checked(&choice).expect("a value");
        assert_eq!(at(&as_json(&after).expect("JSON"), setting.place), Some(&expected), "{}", setting.name);
        assert_eq!(put_back(&after, &before, setting), before, "{}", setting.name);
    }
}

#[test]
fn a_stream_goes_on_as_it_was_unless_another_solver_is_chosen() {
    let task = Task::Compare;
    let streamed = |chosen: &Chosen, kept: Option<&Settings>| Settings::streamed(task, chosen, kept).expect("a stream");
    let usual = streamed(&Chosen::new(), None);
    assert_eq!((usual.solver, usual.regularisation), (Solver::PassiveAggressive, Regularisation::C(0.1)));
    assert_eq!(usual.max_passes, 1);
    let kept = streamed(&chosen([("c", Choice::Number(0.5)), ("kappa", Choice::Number(2.0))]), None);
    assert_eq!(streamed(&Chosen::new(), Some(&kept)), kept);
    let same = chosen([("solver", text("passive-aggressive"))]);
    assert_eq!(streamed(&same, Some(&kept)), kept);
    let squared = streamed(&chosen([("loss", text("squared-hinge"))]), Some(&kept));
    assert_eq!(squared, Settings { loss: Loss::SquaredHinge, ..kept.clone() });
    let other = chosen([("solver", text("sgd"))]);
    assert_eq!(streamed(&other, Some(&kept)), streamed(&other, None));
    assert_eq!(streamed(&other, None).regularisation, Regularisation::Lambda(1e-4));
    refused(Settings::streamed(task, &chosen([("lambda", Choice::Number(0.5))]), Some(&kept)), "lambda");
    refused(Settings::streamed(Task::OneClass, &same, None), "a stream of one class");
}

#[test]
fn names_are_told_apart_and_common_ones_that_are_left_out_exist() {
    for task in Task::ALL {
        let profile = task.profile();
        for settings in [profile.all_settings().collect::<Vec<_>>(), profile.streamed.iter().collect()] {
            let names = settings.iter().flat_map(|setting| [setting.name].into_iter().chain(setting.aliases.to_vec()));
            let names: Vec<&str> = names.collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        }
        for name in profile.without {
            assert!(COMMON.iter().any(|setting| setting.name == *name), "{name}");
            assert!(profile.setting(name).is_none(), "{name}");
        }
    }
}

/// Settings equal what their names give, also after the names went through a file. The memory for kernel rows is not
/// kept.
fn assert_round_trip(settings: &Settings) {
    let task = settings.task.task();
    let named = settings.to_named().expect("names");
    let again = Settings::named(task, &named).unwrap_or_else(|error| panic!("{named:?}: {error}"));
    let mut kept = settings.clone();
    kept.kernel.cache = None;
    assert_eq!(again, kept, "{named:?}");
    let file = serde_json::to_string(&named).expect("JSON");
    let read: Chosen = serde_json::from_str(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(Settings::named(task, &read).expect("settings"), kept, "{file}");
}

#[test]
fn settings_are_made_again_from_their_names() {
    for task in Task::ALL {
        let named = Settings::new(task).to_named().expect("names");
        // Rare settings are included only if they were set.
        for name in ["tolerance", "max-passes", "seed", "solver", "scale"] {
            assert!(named.contains_key(name), "{name} of {}", task.name());
        }
        for name in ["kernel", "gamma", "class-weight", "positive", "pair-weight", "method", "rate", "sample"] {
            assert!(!named.contains_key(name), "{name} of {}", task.name());
        }
        assert_round_trip(&Settings::new(task));
    }
    let kernel = |kind| KernelSettings { kind, ..KernelSettings::default() };
    let gaussian = || kernel(KernelKind::Gaussian);
    let by_label = |weights: &[(&str, f64)]| {
        let weights = weights.iter().map(|(label, weight)| (label.to_string(), *weight)).collect();
        Settings::of(ClassifySettings { class_weight: ClassWeight::ByLabel(weights), ..Default::default() })
    };
    let classify = || Settings::new(Task::Classify);
    let rank = || Settings::new(Task::Rank);
    let compare = || Settings::new(Task::Compare);
    let one_class = || Settings::new(Task::OneClass);
    let many = Stochastic {
        schedule: Some(Schedule::InverseSquareRoot),
        rate: Some(0.1 + 0.2),
        batch: 32,
        project: true,
        early_stopping: EarlyStopping::Validation,
        ..Stochastic::default()
    };
    for settings in [
        Settings { tolerance: 1e-300, seed: u64::MAX, ..classify() },
        Settings { tolerance: 0.0, max_passes: 0, ..classify() },
        Settings { regularisation: Regularisation::C(f64::MIN_POSITIVE), ..classify() },
        Settings { regularisation: Regularisation::Lambda(1.0), ..classify() },
        Settings { regularisation: Regularisation::Nu(1.0), ..classify() },
        Settings { loss: Loss::Logistic, scale: Scale::MaxAbs, ..classify() }.with_solver(Solver::Newton),
        Settings { stochastic: many.clone(), ..classify().with_solver(Solver::AveragedSgd) },
        // The default number of passes of another solver.
        Settings { max_passes: 1000, ..classify().with_solver(Solver::Sgd) },
        Settings { max_passes: 1000, kernel: gaussian(), ..classify() },
        Settings { max_passes: 100_000, kernel: gaussian(), ..classify() },
        Settings { kernel: KernelSettings { cache: Some(1_000_003), ..gaussian() }, ..classify() },
        Settings { kernel: KernelSettings { cache: Some(3 << 30), gamma: Some(1e-7), ..gaussian() }, ..classify() },
        Settings {
            kernel: KernelSettings {
                degree: Some(4),
                coef0: Some(-1.5),
                gamma: Some(0.3),
                ..kernel(KernelKind::Polynomial)
            },
            ..classify().with_solver(Solver::Lasvm)
        },
        Settings {
            kernel: KernelSettings { approximate: Some(Approximation::Fourier { features: 64 }), ..gaussian() },
            ..classify()
        },
        Settings {
            kernel: KernelSettings { budget: Some(9), ..gaussian() },
            ..classify().with_solver(Solver::Pegasos).with_free(Intercept::Penalised)
        },
        Settings::of(ClassifySettings {
            positive: Some("1".to_string()),
            class_weight: ClassWeight::Balanced,
            ..Default::default()
        }),
        Settings::of(ClassifySettings { positive: Some("true".to_string()), ..Default::default() }),
        by_label(&[("1", 0.1 + 0.2), ("-1", 0.0)]),
        by_label(&[("spam, or so", 2.0), ("a=b", 1e-9), (" ham ", 3.0)]),
        classify().with_solver(Solver::QuadraticProgram),
        Settings { loss: Loss::Hinge, ..rank().with_solver(Solver::QuadraticProgram) },
        Settings { loss: Loss::Hinge, regularisation: Regularisation::Nu(0.3), max_passes: 100_000, ..rank() },
        Settings {
            stochastic: Stochastic { sample: Some(Sample::Queries), ..many },
            ..Settings::of(RankSettings { pair_weight: PairWeight::PerQuery, ..Default::default() })
                .with_solver(Solver::Sgd)
        },
        Settings::of(RankSettings { weight_as: WeightAs::Copies, ..Default::default() }),
        Settings { scale: Scale::MinMaxPerQuery, ..rank() },
        compare().with_free(Intercept::Penalised),
        compare().with_solver(Solver::LinearProgram),
        Settings::of(CompareSettings { ties_from_grades: true, ..Default::default() }),
        Settings { regularisation: Regularisation::C(4.0), ..compare().with_method(Method::BradleyTerry) },
        Settings { regularisation: Regularisation::C(1.0), ..one_class() },
        Settings { regularisation: Regularisation::Lambda(0.1), kernel: gaussian(), ..one_class() },
        one_class().with_solver(Solver::Smo),
    ] {
        settings.validate().unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        assert_round_trip(&settings);
    }
    for method in Method::ALL {
        assert_round_trip(&compare().with_method(method));
    }
}

#[test]
fn whatever_is_accepted_by_name_is_made_again_from_its_names() {
    for task in Task::ALL {
        let settings: Vec<&Setting> = task.profile().all_settings().collect();
        let mut random = Random::new(11, 0, 0);
        let mut accepted = 0;
        for _ in 0..4000 {
            let mut all = Chosen::new();
            for _ in 0..1 + random.below(5) {
                let setting = settings[random.below(settings.len() as u64) as usize];
                let (choice, beside) = example(task, setting.name);
                all.extend(beside);
                // One of the names at random, if the setting takes names.
                let choice = match setting.value {
                    Value::Name(names) => text(names()[random.below(names().len() as u64) as usize]),
                    _ => choice,
                };
                all.insert(setting.name.to_string(), choice);
            }
            match Settings::named(task, &all) {
                Ok(settings) => {
                    accepted += 1;
                    assert_round_trip(&settings);
                }
                Err(error) => assert_eq!(error.code(), Code::BadSetting, "{all:?}: {error}"),
            }
        }
        assert!(accepted > 300, "{}: {accepted}", task.name());
    }
}

#[test]
fn a_name_of_another_task_is_refused_with_the_tasks_that_have_it() {
    let mut looked_at = 0;
    for task in Task::ALL {
        let of_others = Task::ALL.into_iter().flat_map(|other| other.profile().all_settings());
        let names = of_others.flat_map(|setting| [setting.name].into_iter().chain(setting.aliases.to_vec()));
        for name in names.filter(|name| task.profile().setting(name).is_none()).collect::<BTreeSet<_>>() {
            let what = format!("{name} of {}", task.name());
            // For any value.
            for choice in [text("none"), Choice::Whole(1), Choice::Switch(true)] {
                let error = refused(Settings::named(task, &chosen([(name, choice)])), &what);
                assert_eq!(error.message(), format!("`{name}` is not a setting of `{}`", task.name()));
                let owners = Task::ALL.into_iter().filter(|other| other.profile().setting(name).is_some());
                let owners: Vec<&str> = owners.map(Task::name).collect();
                let remedy = error.remedy().expect("a remedy");
                assert!(
                    remedy.ends_with(&format!("it is for {}", crate::wording::all_of(&owners))),
                    "{what}: {remedy}"
                );
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 20, "{looked_at}");
    let remedy = |task, name| {
        let error = refused(Settings::named(task, &chosen([(name, Choice::Whole(1))])), name);
        error.remedy().expect("a remedy").to_string()
    };
    assert!(remedy(Task::Rank, "intercept").ends_with("it is for classify, compare and multilabel"));
    assert!(remedy(Task::Classify, "threshold").ends_with("it is for compare"));
    assert!(remedy(Task::OneClass, "loss").ends_with("it is for classify, rank, compare, ordinal and multilabel"));
    assert!(remedy(Task::Compare, "nu").ends_with("it is for classify and rank and one-class"));
    assert_eq!(remedy(Task::Classify, "lamda"), "did you mean `lambda`?");
    assert!(remedy(Task::OneClass, "what-nobody-knows").contains("maxmargin train one-class --help"));
}

/// Values that a setting must refuse.
fn wrong(value: Value) -> Vec<Choice> {
    let mut wrong = match value {
        Value::Name(_) => vec![text("no such name"), text(""), Choice::Whole(1), Choice::Switch(true)],
        Value::Switch => vec![text("true"), Choice::Whole(1), Choice::Number(1.0)],
        Value::Number(range) => {
            let mut wrong = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            match range {
                Range::Positive => wrong.extend([0.0, -1e-9]),
                Range::NotNegative => wrong.push(-1e-9),
                Range::Share => wrong.extend([0.0, -0.1, 1.0 + 1e-9]),
                Range::Fraction => wrong.extend([0.0, -0.1, 1.0]),
                Range::Finite => {}
            }
            let mut wrong: Vec<Choice> = wrong.into_iter().map(Choice::Number).collect();
            wrong.extend([text("much"), Choice::Switch(true)]);
            wrong
        }
        Value::Whole(low, high) => {
            let mut wrong = vec![Choice::Number(1.5), Choice::Number(-1.0), text("many"), Choice::Switch(true)];
            wrong.extend(low.checked_sub(1).map(Choice::Whole));
            wrong.extend(high.checked_add(1).map(Choice::Whole));
            wrong
        }
        Value::Size => vec![text("much"), text("0"), text("-1GiB"), Choice::Whole(0), Choice::Switch(true)],
        Value::Parsed(_) => vec![Choice::Switch(true), Choice::Whole(1), Choice::Number(0.5)],
        Value::Label | Value::Words => vec![Choice::Switch(true)],
        Value::ClassWeights => vec![text("spam"), text("spam=much"), text("spam=1,"), Choice::Whole(1)],
    };
    if !matches!(value, Value::ClassWeights) {
        wrong.push(Choice::Weights([("spam".to_string(), 1.0)].into()));
    }
    wrong
}

#[test]
fn values_that_a_setting_does_not_take_are_refused_with_its_name_and_a_remedy() {
    for task in Task::ALL {
        for setting in task.profile().all_settings() {
            let (_, beside) = example(task, setting.name);
            for choice in wrong(setting.value) {
                let mut all = beside.clone();
                all.insert(setting.name.to_string(), choice.clone());
                let what = format!("{} = {choice:?} of {}", setting.name, task.name());
                let error = refused(Settings::named(task, &all), &what);
                let named = error.message().contains(setting.name) || error.message().contains("class weight");
                assert!(named && error.remedy().is_some(), "{what}: {error}");
            }
        }
    }
    for setting in Task::Compare.profile().streamed {
        for choice in wrong(setting.value) {
            let what = format!("{} = {choice:?} of a stream", setting.name);
            let all = chosen([(setting.name, choice)]);
            let error = refused(Settings::streamed(Task::Compare, &all, None), &what);
            assert!(error.message().contains(setting.name) && error.remedy().is_some(), "{what}: {error}");
        }
    }
    // Ranges that only the kernel or the task checks.
    for (name, choice) in [
        ("gamma", Choice::Number(0.0)),
        ("budget", Choice::Whole(0)),
        ("degree", Choice::Whole(0)),
        ("degree", Choice::Whole(101)),
        ("approximate", text("nystrom:0")),
        ("approximate", text("sines:10")),
        ("class-weight", text("spam=-1")),
        ("class-weight", text("spam=inf")),
        ("class-weight", Choice::Weights([("spam".to_string(), -1.0)].into())),
    ] {
        let (_, mut all) = example(Task::Classify, name);
        all.insert(name.to_string(), choice.clone());
        refused(Settings::named(Task::Classify, &all), &format!("{name} = {choice:?}"));
    }
}

#[test]
fn numbers_outside_their_ranges_are_refused_however_they_were_set() {
    let stochastic = |stochastic: Stochastic| Settings { stochastic, ..Settings::new(Task::Rank) };
    let usual = Stochastic::default;
    let kappa = |kappa: f64| {
        let task = CompareSettings { kappa, ..CompareSettings::default() };
        Settings::of(task).with_solver(Solver::PassiveAggressive)
    };
    let classify = || Settings::new(Task::Classify);
    for (settings, name) in [
        (Settings { regularisation: Regularisation::C(0.0), ..classify() }, "`c`"),
        (Settings { regularisation: Regularisation::C(f64::NAN), ..classify() }, "`c`"),
        (Settings { regularisation: Regularisation::C(f64::INFINITY), ..classify() }, "`c`"),
        (Settings { regularisation: Regularisation::Lambda(-1.0), ..classify() }, "`lambda`"),
        (Settings { regularisation: Regularisation::Nu(1.5), ..classify() }, "`nu`"),
        (Settings { regularisation: Regularisation::Nu(0.0), ..Settings::new(Task::OneClass) }, "`nu`"),
        (Settings { tolerance: -1e-3, ..classify() }, "`tolerance`"),
        (Settings { tolerance: f64::NAN, ..classify() }, "`tolerance`"),
        (stochastic(Stochastic { rate: Some(0.0), ..usual() }).with_solver(Solver::Sgd), "`rate`"),
        (stochastic(Stochastic { batch: 0, ..usual() }).with_solver(Solver::Sgd), "`batch`"),
        (kappa(-1.0), "`kappa`"),
        (kappa(f64::NAN), "`kappa`"),
        (kappa(f64::INFINITY), "`kappa`"),
    ] {
        let error = refused(settings.validate().map(|()| settings.clone()), name);
        assert!(error.message().starts_with(&format!("{name} is ")), "{error}");
        assert!(error.remedy().is_some(), "{error}");
    }
}

#[test]
fn one_of_c_lambda_and_nu_is_set_and_not_two() {
    let names = ["c", "lambda", "nu"];
    for task in Task::ALL {
        let known: Vec<&str> = names.into_iter().filter(|name| task.profile().setting(name).is_some()).collect();
        for (at, one) in known.iter().enumerate() {
            for other in &known[at + 1..] {
                let all = chosen([(one, Choice::Number(0.5)), (other, Choice::Number(0.5))]);
                let error = refused(Settings::named(task, &all), &format!("{one} and {other}"));
                assert!(error.message().contains("the same quantity") && error.remedy().is_some(), "{error}");
            }
        }
    }
    let both = chosen([("c", Choice::Number(0.5)), ("lambda", Choice::Number(0.5))]);
    let error = refused(Settings::streamed(Task::Compare, &both, None), "c and lambda of a stream");
    assert!(error.message().contains("the same quantity"), "{error}");
}

#[test]
fn the_threshold_of_a_comparison_is_known_by_its_first_name_too() {
    let by = |name: &str| Settings::named(Task::Compare, &chosen([(name, text("penalised"))])).expect("a threshold");
    let settings = by("intercept");
    assert_eq!(settings, by("threshold"));
    assert_eq!(settings.free(), Intercept::Penalised);
    let named = settings.to_named().expect("names");
    assert_eq!((named.get("threshold"), named.get("intercept")), (Some(&text("penalised")), None));
    refused(Settings::named(Task::Compare, &chosen([("intercept", text("none"))])), "no threshold");
}

#[test]
fn what_is_not_given_follows_what_is() {
    let named = |task, parts: Chosen| Settings::named(task, &parts).expect("settings");
    // The default number of passes depends on the solver and the kernel.
    assert_eq!(named(Task::Classify, chosen([("solver", text("sgd"))])).max_passes, 20);
    assert_eq!(named(Task::Classify, chosen([("solver", text("lasvm"))])).max_passes, 1);
    assert_eq!(named(Task::Classify, chosen([("kernel", text("gaussian"))])).max_passes, 100_000);
    assert_eq!(named(Task::Classify, chosen([("solver", text("newton"))])).max_passes, 1000);
    let told = chosen([("solver", text("sgd")), ("max-passes", Choice::Whole(3))]);
    assert_eq!(named(Task::Classify, told).max_passes, 3);
    // Nu and the hard margin use the hinge loss.
    assert_eq!(named(Task::Rank, Chosen::new()).loss, Loss::SquaredHinge);
    assert_eq!(named(Task::Rank, chosen([("nu", Choice::Number(0.5))])).loss, Loss::Hinge);
    assert_eq!(named(Task::Rank, chosen([("solver", text("quadratic-program"))])).loss, Loss::Hinge);
    let squared = chosen([("nu", Choice::Number(0.5)), ("loss", text("squared-hinge"))]);
    refused(Settings::named(Task::Rank, &squared), "a share of another loss");
    // The cost of a violated margin has no effect with a hard margin.
    for (name, choice, shown) in [
        ("c", Choice::Number(1.0), "`c`"),
        ("lambda", Choice::Number(1.0), "`lambda`"),
        ("nu", Choice::Number(0.5), "`nu`"),
        ("loss", text("hinge"), "`loss`"),
    ] {
        let all = chosen([("solver", text("quadratic-program")), (name, choice)]);
        let error = refused(Settings::named(Task::Rank, &all), name);
        assert!(error.message().starts_with(shown) && error.message().contains("hard margin"), "{error}");
    }
}

#[test]
fn labels_may_look_like_numbers_and_whole_numbers_serve_as_numbers() {
    let classify = |name, choice| Settings::named(Task::Classify, &chosen([(name, choice)])).expect("settings");
    let positive = |choice| match classify("positive", choice).task {
        crate::settings::TaskSettings::Classify(task) => task.positive,
        _ => None,
    };
    assert_eq!(positive(Choice::Whole(1)).as_deref(), Some("1"));
    assert_eq!(positive(Choice::Number(-0.5)).as_deref(), Some("-0.5"));
    assert_eq!(positive(text("spam")).as_deref(), Some("spam"));
    assert_eq!(classify("c", Choice::Whole(2)).regularisation, Regularisation::C(2.0));
    let table = Choice::Weights([("ham".to_string(), 0.5), ("spam".to_string(), 5.0)].into());
    assert_eq!(classify("class-weight", table), classify("class-weight", text("spam=5, ham=0.5")));
    let cache = |choice| {
        let all = chosen([("kernel", text("gaussian")), ("kernel-cache", choice)]);
        Settings::named(Task::Classify, &all).expect("settings").kernel.cache
    };
    assert_eq!(cache(text("2KiB")), Some(2048));
    assert_eq!(cache(Choice::Whole(2048)), Some(2048));
}

#[test]
fn texts_can_refer_to_every_setting() {
    let settings = Task::ALL.into_iter().flat_map(|task| {
        let profile = task.profile();
        profile.all_settings().chain(profile.streamed)
    });
    for setting in settings {
        assert!(crate::wording::NAMES.contains(&setting.name), "{} is not in the list of names", setting.name);
    }
}
