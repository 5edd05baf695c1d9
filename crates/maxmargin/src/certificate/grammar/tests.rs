//! The search against a list of all derivations, and trees that come back from their derivations.

use super::search::Wrong;
use super::*;
use crate::data::random_trees;
use crate::random::Random;

const MARKOVS: [Markov; 4] = [
    Markov { siblings: 0, parents: false },
    Markov { siblings: 1, parents: false },
    Markov { siblings: 2, parents: true },
    Markov { siblings: 9, parents: false },
];

fn trees(random: &mut Random, count: usize, words: u64, labels: u64, tags: u64) -> Vec<Tree> {
    let mut trees: Vec<Tree> = (0..count)
        .map(|_| {
            let rows = 1 + random.below(words) as usize;
            random_trees::tree(random, rows, labels, tags)
        })
        .collect();
    trees.push(random_trees::tree(random, 2, labels, tags));
    trees
}

#[test]
fn trees_come_back_from_their_derivations() {
    let mut random = Random::new(7, 1, 0);
    for case in 0..1000 {
        let trees = trees(&mut random, 6, 9, 3, 3);
        let (grammar, derivations) = Grammar::read(&trees, MARKOVS[case % 4]).expect("a grammar");
        for (tree, derivation) in trees.iter().zip(&derivations) {
            let words = tree.tags.len();
            assert_eq!(grammar.tree(words, derivation).as_ref(), Ok(tree), "{case}");
            let marks = grammar.marks(words, derivation).expect("a derivation");
            assert_eq!((marks.phrases.len(), marks.differences(&marks)), (tree.phrases.len(), 0));
        }
        let text = serde_json::to_string(&grammar).expect("text");
        assert_eq!(serde_json::from_str::<Grammar>(&text).expect("a grammar"), grammar);
    }
}

/// All derivations of a span with this outer symbol, by the definition.
fn all(grammar: &Grammar, words: usize, outer: u32, parts: &mut Vec<Vec<u32>>) {
    let mut inner_of = |inner: u32, unary: u32| {
        if words == 1 {
            if (inner as usize) < grammar.tags().len() {
                parts.push(vec![unary, inner]);
            }
            return;
        }
        for (rule, &[parent, left, right]) in grammar.binary().iter().enumerate() {
            for split in (1..words).filter(|_| parent == inner) {
                let (mut lefts, mut rights) = (Vec::new(), Vec::new());
                all(grammar, split, left, &mut lefts);
                if !lefts.is_empty() {
                    all(grammar, words - split, right, &mut rights);
                }
                for l in &lefts {
                    for r in &rights {
                        parts.push([&[unary, rule as u32, split as u32][..], l, r].concat());
                    }
                }
            }
        }
    };
    inner_of(outer, 0);
    for (rule, unary) in grammar.unary().iter().enumerate() {
        if unary.top == outer {
            inner_of(unary.bottom, rule as u32 + 1);
        }
    }
}

fn sum(grammar: &Grammar, words: usize, derivation: &[u32], rows: &[f64], shared: &[f64]) -> f64 {
    let mut sum = 0.0;
    let add = |place: Place| {
        sum += match place {
            Place::Row(word, output) => rows[word * grammar.outputs() + output],
            Place::Shared(place) => shared[place],
        };
    };
    grammar.each_score(words, derivation, add).expect("a derivation");
    sum
}

/// The score by the formula at the top of `mod.rs`, from the tree and not from the derivation, without rules.
fn score_of_tree(grammar: &Grammar, tree: &Tree, rows: &[f64], shared: &[f64]) -> f64 {
    let place = |names: &[String], name: &str| names.iter().position(|own| own == name).expect("known");
    let row = |word: usize, output: usize| rows[word * grammar.outputs() + output];
    let (tags, labels) = (grammar.tags().len(), grammar.labels().len());
    let own: f64 = tree.tags.iter().enumerate().map(|(word, tag)| row(word, place(grammar.tags(), tag))).sum();
    let below = tree.children();
    let phrases = tree.phrases.iter().zip(&below).map(|(phrase, below)| {
        let label = place(grammar.labels(), &phrase.label);
        let length = shared[shared.len() - labels * LENGTHS.len()
            + label * LENGTHS.len()
            + LENGTHS.iter().filter(|&&least| least <= phrase.rows.len()).count()
            - 1];
        let first = |child: &Child| match child {
            Child::Tag(word) => *word,
            Child::Phrase(phrase) => tree.phrases[*phrase].rows.start,
        };
        let splits: f64 = below.iter().skip(1).map(|child| row(first(child), tags + 2 * labels + label)).sum();
        row(phrase.rows.start, tags + label) + row(phrase.rows.end - 1, tags + labels + label) + length + splits
    });
    own + phrases.sum::<f64>()
}

#[test]
fn no_other_derivation_has_a_larger_sum() {
    let mut random = Random::new(11, 1, 0);
    let (mut searched, mut enumerated, mut none) = (0, 0, 0);
    for case in 0..3000 {
        let trees = trees(&mut random, 1 + case % 3, 4, 1 + (case % 3) as u64, 2);
        let (grammar, derivations) = Grammar::read(&trees, MARKOVS[case % 4]).expect("a grammar");
        // Whole numbers in every other case, so that many derivations are equal.
        let mut number = |size: f64| {
            let number = size * random.normal();
            if case % 2 == 0 { number.round() } else { number }
        };
        let shared: Vec<f64> = (0..grammar.shared()).map(|_| number(1.0)).collect();
        // Some sentences are those of trees, so that there is a truth.
        let tree = case % trees.len();
        let words = if case % 3 > 0 { trees[tree].tags.len() } else { 1 + case % 4 };
        let rows: Vec<f64> = (0..words * grammar.outputs()).map(|_| number(1.0)).collect();
        let marks = grammar.marks(trees[tree].tags.len(), &derivations[tree]).expect("a derivation");
        let wrong = (case % 3 > 0).then_some(Wrong { truth: &marks, loss: [1.0, 0.5, 2.0][case % 3] });
        let mut others = Vec::new();
        grammar.roots().iter().for_each(|&root| all(&grammar, words, root, &mut others));
        let mut best = Vec::new();
        let found = grammar.best(&rows, &shared, wrong, &mut best);
        assert_eq!(found, !others.is_empty(), "{case}");
        searched += 1;
        none += usize::from(!found);
        if !found {
            assert!(best.is_empty());
            assert!(!grammar.parse(&rows, &shared).1);
            continue;
        }
        let value = |derivation: &[u32]| {
            let loss = wrong.map_or(0.0, |Wrong { truth, loss }| {
                let own = grammar.tree(words, derivation).expect("a tree");
                loss * differences(&own, &trees[tree]) as f64 + 0.0 * truth.tags.len() as f64
            });
            sum(&grammar, words, derivation, &rows, &shared) + loss
        };
        let highest = value(&best);
        assert!(others.contains(&best), "{case}");
        for other in &others {
            enumerated += 1;
            assert!(value(other) <= highest + 1e-10, "{case}: {} {highest}", value(other));
            let tree = grammar.tree(words, other).expect("a tree");
            let mut rules = 0.0;
            let shared_rules = |place: Place| {
                if let Place::Shared(place) = place
                    && place < grammar.lengths()
                {
                    rules += shared[place];
                }
            };
            grammar.each_score(words, other, shared_rules).expect("a derivation");
            let of_tree = score_of_tree(&grammar, &tree, &rows, &shared) + rules;
            assert!((sum(&grammar, words, other, &rows, &shared) - of_tree).abs() < 1e-9, "{case}");
        }
    }
    assert!(searched == 3000 && enumerated > 10_000 && none > 20 && none < 1000, "{searched} {enumerated} {none}");
}

/// Phrases in one tree and not in the other, one by one, and wrong tags.
fn differences(own: &Tree, right: &Tree) -> usize {
    let mut left = right.phrases.clone();
    let mut wrong = 0;
    for phrase in &own.phrases {
        match left.iter().position(|other| other == phrase) {
            Some(at) => drop(left.swap_remove(at)),
            None => wrong += 1,
        }
    }
    wrong + left.len() + own.tags.iter().zip(&right.tags).filter(|(own, right)| own != right).count()
}

#[test]
fn numbers_that_are_no_derivation_are_refused() {
    let tree = |pieces: &[&str]| Tree::of_pieces(pieces.iter().copied()).expect("a tree");
    let trees = [tree(&["(S(NP(d*)", "(n*))", "(VP(v*)))"])];
    let (grammar, derivations) = Grammar::read(&trees, MARKOVS[1]).expect("a grammar");
    let right = &derivations[0];
    assert!(grammar.tree(3, right).is_ok());
    for at in 0..right.len() {
        let mut wrong = right.clone();
        wrong[at] = 99;
        assert!(grammar.tree(3, &wrong).is_err(), "{at}");
        assert!(grammar.tree(3, &right[..at]).is_err(), "{at}");
    }
    assert!(grammar.tree(2, right).is_err() && grammar.tree(4, right).is_err());
    assert!(grammar.tree(3, &[&right[..], &[0]].concat()).is_err());
    assert!(grammar.tree(0, &[]).is_err());
}

#[test]
fn altered_grammars_of_model_files_are_refused() {
    let tree = Tree::of_pieces(["(S(NP(d*)", "(n*))", "(VP(v*)))"].into_iter()).expect("a tree");
    let (grammar, _) = Grammar::read(&[tree], MARKOVS[1]).expect("a grammar");
    let text = serde_json::to_value(&grammar).expect("text");
    type Change = fn(&mut serde_json::Value);
    let changes: [(&str, Change); 8] = [
        ("a label", |own| own["tags"][0] = "(".into()),
        ("a label", |own| own["symbols"][0]["label"] = 9.into()),
        ("a label", |own| own["fallback"] = 9.into()),
        ("a rule", |own| own["binary"][0] = serde_json::json!([0, 1, 2])),
        ("a rule", |own| own["binary"][0][1] = 99.into()),
        ("a chain", |own| own["unary"][0]["chain"] = serde_json::json!([])),
        ("a chain", |own| own["unary"][0]["top"] = 0.into()),
        ("tops", |own| own["roots"] = serde_json::json!([])),
    ];
    for (what, change) in changes {
        let mut altered = text.clone();
        change(&mut altered);
        assert!(serde_json::from_value::<Grammar>(altered).is_err(), "{what}");
    }
}

#[test]
fn scores_that_are_no_numbers_do_not_stop_it() {
    let tree = Tree::of_pieces(["(S(NP(d*)", "(n*))", "(VP(v*)))"].into_iter()).expect("a tree");
    let (grammar, _) = Grammar::read(&[tree], MARKOVS[1]).expect("a grammar");
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (rows, shared) = (vec![odd; 3 * grammar.outputs()], vec![odd; grammar.shared()]);
        let (tree, _) = grammar.parse(&rows, &shared);
        assert_eq!(tree.tags.len(), 3);
    }
    // Too long, or too short for a top.
    let rows = vec![0.0; (MOST_WORDS + 1) * grammar.outputs()];
    let (tree, parsed) = grammar.parse(&rows, &vec![0.0; grammar.shared()]);
    assert!(!parsed && tree.phrases.len() == 1 && tree.phrases[0].label == "S" && tree.tags.len() == MOST_WORDS + 1);
}

#[test]
fn relative_frequencies_are_those_of_the_rules() {
    let tree = |pieces: &[&str]| Tree::of_pieces(pieces.iter().copied()).expect("a tree");
    let trees = [
        tree(&["(S(NP(d*)", "(n*))", "(VP(v*)))"]),
        tree(&["(S(NP(n*))", "(VP(v*)", "(NP(n*))))"]),
        tree(&["(NP(d*)", "(n*))"]),
    ];
    let (grammar, derivations) = Grammar::read(&trees, MARKOVS[1]).expect("a grammar");
    let all = trees.iter().zip(&derivations).map(|(tree, own)| (tree.tags.len(), &own[..]));
    let shared = grammar.relative_frequencies(all);
    let of = |name: &str| {
        let place = (0..grammar.shared()).find(|&place| grammar.shared_name(place) == name);
        shared[place.unwrap_or_else(|| panic!("no {name}"))].exp()
    };
    for (name, share) in [
        ("S → NP VP", 1.0),
        ("NP → d n", 0.5),
        ("NP → n", 0.5),
        ("VP → v", 0.5),
        ("VP → v NP", 0.5),
        ("top S", 2.0 / 3.0),
        ("top NP", 1.0 / 3.0),
        ("NP of 2 words", 1.0),
    ] {
        assert!((of(name) - share).abs() < 1e-12, "{name}: {}", of(name));
    }
    assert_eq!(grammar.output_name(0), "d");
    assert_eq!(grammar.output_name(grammar.outputs() - 1), "VP splits");
}
