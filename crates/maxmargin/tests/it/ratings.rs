//! Comparisons by ratings: models that score items from their games.

use crate::made::{Numbers, fit};
use maxmargin::data::{Csr, Dataset, Dense, Matrix, Outcome, Pairs, Targets};
use maxmargin::error::Code;
use maxmargin::model::Model;
use maxmargin::rating::{EloFactor, GlickoSettings, TrueskillSettings, elo, glicko, trueskill};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Method, Settings, Task};
use maxmargin::train::train;

const ITEMS: usize = 12;

fn games(seed: u64) -> Pairs {
    let mut numbers = Numbers::new(seed);
    let mut below = |count: usize| (numbers.next() * count as f64) as usize;
    let (mut left, mut right, mut outcomes) = (vec![], vec![], vec![]);
    while left.len() < 150 {
        let (a, b) = (below(ITEMS), below(ITEMS));
        if a != b {
            left.push(a as u32);
            right.push(b as u32);
            // The larger number wins, except in a third of the games.
            let sign =
                [0, 0, (b > a) as i8 * 2 - 1, (b > a) as i8 * 2 - 1, (b > a) as i8 * 2 - 1, (a > b) as i8 * 2 - 1];
            outcomes.push(Outcome::of_sign(sign[below(6)]));
        }
    }
    Pairs::new(left, right).unwrap().with_outcomes(outcomes).unwrap()
}

/// Every item is its own feature.
fn of_ids(pairs: Pairs) -> Dataset {
    let starts: Vec<u64> = (0..=ITEMS as u64).collect();
    let indices: Vec<u32> = (0..ITEMS as u32).collect();
    let matrix = Matrix::Csr32F64(Csr::new(starts, indices, vec![1.0; ITEMS], ITEMS).unwrap());
    Dataset::new(matrix, Targets::Absent).unwrap().with_pairs(pairs).unwrap()
}

fn settings(method: Method) -> Settings {
    Settings { tolerance: 1e-8, ..Settings::new(Task::Compare).with_method(method) }
}

const METHODS: [Method; 4] = [Method::Elo, Method::Glicko, Method::BradleyTerry, Method::Trueskill];

#[test]
fn ratings_are_the_weights_of_the_items_and_are_verified() {
    let pairs = games(3);
    let data = of_ids(pairs.clone());
    for method in METHODS {
        let trained = fit(&data, &settings(method));
        let scores = trained.model.scores(&data).unwrap();
        let expected = match method {
            Method::Elo => Some(elo(&pairs, ITEMS, EloFactor::Fide)),
            Method::Glicko => Some(glicko(&pairs, ITEMS, &GlickoSettings::default())),
            Method::Trueskill => Some(trueskill(&pairs, ITEMS, &TrueskillSettings::default())),
            _ => None,
        };
        assert!(expected.is_none_or(|expected| expected == scores), "{method:?}");
        assert!(scores[ITEMS - 1] > scores[0], "{method:?}: {scores:?}");
        let certificate = &trained.model.certificate;
        assert_eq!(certificate.converged, method == Method::BradleyTerry);
        assert_eq!(certificate.gap().is_some_and(|gap| gap <= 1e-8), method == Method::BradleyTerry);
        assert_eq!(trained.model.verify(&data).unwrap().objective, certificate.objective);
        // A changed model is detected, and so are other games.
        let bytes = trained.model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap().scores(&data).unwrap(), scores);
        let mut altered = trained.model.clone();
        altered.certificate.objective *= 0.5;
        assert_eq!(altered.verify(&data).unwrap_err().code(), Code::CertificateMismatch);
        assert_eq!(trained.model.verify(&of_ids(games(4))).unwrap_err().code(), Code::OtherData);
    }
}

#[test]
fn items_with_features_are_not_rated() {
    let matrix = Matrix::DenseF64(Dense::new(vec![0.5; ITEMS * 2], ITEMS, 2).unwrap());
    let data = Dataset::new(matrix, Targets::Absent).unwrap().with_pairs(games(3)).unwrap();
    for method in METHODS {
        let refused = train(&data, &settings(method), None, &mut Silent, &Cancel::new()).unwrap_err();
        assert_eq!(refused.code(), Code::Unsupported);
    }
}
