//! Streams that end when they do not get better any more.

use maxmargin::data::{Dataset, Dense, Matrix, Targets};
use maxmargin::error::{Code, Result};
use maxmargin::model::Model;
use maxmargin::settings::{Choice, Chosen, Settings, Task};
use maxmargin::stream::{Judge, Learner, judged_learner, learner};

const ROWS: usize = 4000;

/// Rows of two classes with noise, so that a stream stops getting better soon.
fn data() -> Dataset {
    let mut state = 11u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
    };
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let (a, b, noise) = (next(), next(), next());
        values.extend([a, b, noise]);
        targets.push(if a - b + 0.5 * next() > 0.0 { 1.0 } else { -1.0 });
    }
    Dataset::new(Matrix::DenseF64(Dense::new(values, ROWS, 3).unwrap()), Targets::Real(targets.into())).unwrap()
}

fn settings(task: Task, chosen: &[(&str, Choice)]) -> Result<Settings> {
    let mut all: Chosen = chosen.iter().map(|(name, choice)| (name.to_string(), choice.clone())).collect();
    all.insert("rate".to_string(), Choice::Number(0.1));
    Settings::streamed(task, &all, None)
}

fn stopping(every: u64, more: &[(&str, Choice)]) -> Settings {
    let own = [("early-stopping", Choice::Text("validation".to_string())), ("judge-every", Choice::Whole(every))];
    settings(Task::Classify, &[&own, more].concat()).unwrap()
}

fn bytes(learner: &dyn Learner, settings: &Settings) -> Vec<u8> {
    learner.model(settings, None, None).unwrap().to_bytes().unwrap()
}

#[test]
fn a_stream_is_judged_by_the_loss_of_the_examples_since_the_last_judgement() {
    let data = data();
    let own = stopping(100, &[]);
    let mut judged = learner(&own, None).unwrap();
    judged.learn(&data, 0..ROWS).unwrap();
    // The same by hand: the losses of every hundred rows of a stream that never stops.
    let plain = settings(Task::Classify, &[]).unwrap();
    let mut endless = learner(&plain, None).unwrap();
    let (mut losses, mut before) = (Vec::new(), 0.0);
    for start in (0..ROWS).step_by(100) {
        endless.learn(&data, start..start + 100).unwrap();
        losses.push((endless.progress().loss - before) / 100.0);
        before = endless.progress().loss;
        let best = (0..losses.len()).rev().min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap();
        if losses.len() > best + 3 {
            let found = judged.judged().unwrap();
            assert_eq!((found.count, found.stopped), (losses.len() as u64, true));
            assert_eq!(found.best, Some((losses[best], 100 * (best as u64 + 1))));
            assert_eq!(judged.seen(), 100 * losses.len() as u64);
            // Its weights are those of the stream that did not stop, at the same row.
            let (own, other) = (judged.model(&own, None, None).unwrap(), endless.model(&plain, None, None).unwrap());
            assert_eq!(own.scorer.weights().unwrap(), other.scorer.weights().unwrap());
            assert!(losses.len() < 40);
            return;
        }
    }
    panic!("it never stops: {losses:?}");
}

#[test]
fn a_stream_that_is_saved_and_continued_stops_at_the_same_example() {
    let data = data();
    for own in [
        stopping(100, &[]),
        stopping(101, &[("batch", Choice::Whole(7))]),
        stopping(250, &[("scale", Choice::Text("standard".to_string()))]),
    ] {
        let mut whole = learner(&own, None).unwrap();
        whole.learn(&data, 0..ROWS).unwrap();
        assert!(whole.judged().unwrap().stopped && whole.seen() < ROWS as u64);
        let mut parts = learner(&own, None).unwrap();
        for start in (0..ROWS).step_by(70) {
            parts.learn(&data, start..(start + 70).min(ROWS)).unwrap();
            let saved = Model::from_bytes(&bytes(&*parts, &own)).unwrap();
            parts = learner(&own, Some(&saved)).unwrap();
        }
        assert!(bytes(&*whole, &own) == bytes(&*parts, &own), "{own:?}");
        assert_eq!(whole.judged(), parts.judged());
        assert_eq!(parts.wanted(), 0);
    }
}

#[test]
fn held_out_data_judge_the_model_of_the_moment() {
    let data = data();
    let own = stopping(100, &[]);
    // A measure that gets better five times, and needs a feature that the stream does not have.
    let measure = |model: &Model| {
        assert_eq!(model.features(), 5);
        let seen = model.certificate.rows;
        Ok(if seen <= 500 { seen as f64 } else { 0.0 })
    };
    let judge = || Judge { measure: Box::new(measure), higher_is_better: true, features: 5 };
    let mut judged = judged_learner(&own, None, Some(judge())).unwrap();
    judged.learn(&data, 0..ROWS).unwrap();
    let found = judged.judged().unwrap();
    assert_eq!((found.best, found.count, judged.seen()), (Some((500.0, 500)), 8, 800));
    let saved = judged.model(&own, None, None).unwrap();
    assert_eq!(saved.features(), 3);
    let error = learner(&own, Some(&saved)).err().unwrap();
    assert!(error.code() == Code::BadSetting && error.message().contains("held-out data so far"), "{error}");
    assert!(judged_learner(&own, Some(&saved), Some(judge())).unwrap().judged().unwrap().stopped);
    // With other settings, it is judged anew.
    let other = stopping(50, &[]);
    assert_eq!(learner(&other, Some(&saved)).unwrap().judged().unwrap().count, 0);
}

#[test]
fn what_cannot_stop_a_stream_is_refused() {
    let text = |name: &str| Choice::Text(name.to_string());
    let refused = |chosen: &[(&str, Choice)], words: &str| {
        let error = learner(&settings(Task::Classify, chosen).unwrap(), None).err().unwrap();
        assert_eq!(error.code(), Code::BadSetting);
        assert!(error.message().contains(words), "{error}");
    };
    refused(&[("early-stopping", text("subsamples"))], "read once");
    assert!(settings(Task::Classify, &[("judge-every", Choice::Whole(10))]).is_err());
    let plain = settings(Task::Classify, &[]).unwrap();
    let judge = Judge { measure: Box::new(|_: &Model| Ok(0.0)), higher_is_better: true, features: 0 };
    assert_eq!(judged_learner(&plain, None, Some(judge)).err().unwrap().code(), Code::BadSetting);
    assert!(settings(Task::Classify, &[("judge-every", Choice::Whole(0))]).is_err());
}
