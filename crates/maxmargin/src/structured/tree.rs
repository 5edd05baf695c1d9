//! Trees: the rows of a group are the words of a sentence, whose structure is a tree of a context-free grammar.
//!
//! ```text
//! score(y) = Σ scores of rules, tags, splits, borders and lengths of phrases     (see `certificate/grammar/mod.rs`)
//! loss(y)  = (number of phrases in one of y and truth alone + number of wrong tags) / (1 or the number of words)
//! ```
//! Two phrases are the same if they have the same words and label; a phrase that occurs twice counts twice. The grammar is
//! read off the trees, see [`Grammar`], and its rules have weights that are shared scores, penalised like the weights of
//! features. An output is a derivation. The most violated one is found exactly by the algorithm of Cocke, Younger and
//! Kasami, since the loss is a sum over the nodes of a derivation.
//!
//! Taskar, Klein, Collins, Koller & Manning, Max-margin parsing, EMNLP 2004; Tsochantaridis, Joachims, Hofmann & Altun,
//! Large margin methods for structured and interdependent output variables, JMLR 6, 2005. Slack rescaling is not
//! supported: its search is no sum over nodes.

use super::sequence::{LossScale, sequences_of, weight_of};
use super::{Plane, Scores, Structure, not_an_output};
use crate::certificate::{Grammar, Markov, Marks, PlaceOfScore, Wrong};
use crate::data::{Dataset, Groups, Subset, Targets, Tree, counts};
use crate::error::{Code, Error, Result};
use std::ops::Range;

/// The tree of each group, from targets such as `(S(NP(DT*)`. Groups outside of the subset have none.
pub fn trees_of(data: &Dataset, subset: Option<&Subset>) -> Result<Vec<Option<Tree>>> {
    let groups = sequences_of(data)?;
    let Targets::Labels { names, codes } = data.targets() else {
        return Err(Error::new(Code::BadTree, "the targets are no parts of bracketed trees").help(
            "give bracketed trees such as (S (NP (DT the) (NN dog)) (VP (VBZ barks))), or a table whose target column \
             holds texts such as (S(NP(DT*)",
        ));
    };
    let pieces: Vec<_> = names.iter().collect();
    let tree = |(group, rows): (usize, Range<usize>)| match counts(subset, rows.start) {
        false => Ok(None),
        true => {
            let own = rows.map(|row| pieces[codes[row] as usize].as_ref());
            Tree::of_pieces(own).map(Some).map_err(|error| in_sentence(error, &groups.names().get(group)))
        }
    };
    groups.ranges().enumerate().map(tree).collect()
}

fn in_sentence(error: Error, name: &str) -> Error {
    let message = format!("sentence `{name}`, {}", error.raw_message());
    let remedy = error.raw_remedy().unwrap_or_default().to_string();
    Error::new(error.code(), message).help(remedy)
}

/// The grammar of the trees in data, and the derivation of each group that counts.
fn grammar_of(data: &Dataset, markov: Markov, subset: Option<&Subset>) -> Result<(Grammar, Vec<Option<Vec<u32>>>)> {
    let trees = trees_of(data, subset)?;
    let counted: Vec<usize> = (0..trees.len()).filter(|&group| trees[group].is_some()).collect();
    let known: Vec<Tree> = trees.into_iter().flatten().collect();
    let (grammar, derivations) = Grammar::read(&known, markov)?;
    let mut truth = vec![None; sequences_of(data)?.len()];
    counted.into_iter().zip(derivations).for_each(|(group, derivation)| truth[group] = Some(derivation));
    Ok((grammar, truth))
}

/// What is known of the true tree of a sentence.
#[derive(Clone, Debug)]
struct Truth {
    derivation: Vec<u32>,
    marks: Marks,
}

/// Sentences with their true trees.
#[derive(Clone, Debug)]
pub struct Trees {
    grammar: Grammar,
    groups: Groups,
    /// Nothing for sentences of weight zero.
    truth: Vec<Option<Truth>>,
    /// The weight of each sentence, unless all weights are 1.
    weights: Option<Vec<f64>>,
    scale: LossScale,
}

impl Trees {
    /// The sentences of some rows, or of all. Those of other rows have weight zero, and the grammar does not know them.
    pub fn on(data: &Dataset, markov: Markov, scale: LossScale, subset: Option<&Subset>) -> Result<Trees> {
        let (grammar, truth) = grammar_of(data, markov, subset)?;
        let groups = sequences_of(data)?.clone();
        let truth = truth.into_iter().enumerate().map(|(group, derivation)| {
            let Some(derivation) = derivation else { return Ok(None) };
            let marks = grammar.marks(groups.range(group).len(), &derivation);
            let marks = marks.map_err(|why| Error::new(Code::Internal, why))?;
            Ok(Some(Truth { derivation, marks }))
        });
        let truth = truth.collect::<Result<Vec<_>>>()?;
        let weighed = data.weights().is_some() || subset.is_some();
        let weights = weighed.then(|| groups.ranges().map(|rows| weight_of(data, &groups, rows, subset)).collect());
        Ok(Trees { grammar, groups, truth, weights: weights.transpose()?, scale })
    }

    /// The grammar.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// The number of words and the derivation of the true tree of each sentence that counts.
    pub fn derivations(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let words = self.groups.ranges().map(|rows| rows.len());
        words.zip(&self.truth).filter_map(|(words, truth)| Some((words, &truth.as_ref()?.derivation[..])))
    }

    /// The loss of one difference.
    fn loss(&self, words: usize) -> f64 {
        match self.scale {
            LossScale::Token => 1.0,
            LossScale::Length => 1.0 / words as f64,
        }
    }
}

impl Structure for Trees {
    fn examples(&self) -> usize {
        self.groups.len()
    }

    fn rows(&self, example: usize) -> Range<usize> {
        self.groups.range(example)
    }

    fn outputs(&self) -> usize {
        self.grammar.outputs()
    }

    fn shared(&self) -> usize {
        self.grammar.shared()
    }

    fn weight(&self, example: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[example])
    }

    /// A bound: every phrase is wrong, and there are as many as there can be.
    fn largest_loss(&self) -> f64 {
        let of = |(rows, truth): (Range<usize>, &Option<Truth>)| {
            let words = rows.len();
            let right = truth.as_ref().map_or(0, |truth| truth.marks.phrases.len());
            (right + self.grammar.most_phrases(words) + words) as f64 * self.loss(words)
        };
        self.groups.ranges().zip(&self.truth).map(of).fold(0.0, f64::max)
    }

    fn most_violated(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        output.clear();
        let Some(truth) = &self.truth[example] else { return Ok(()) };
        let wrong = Wrong { truth: &truth.marks, loss: self.loss(truth.marks.tags.len()) };
        // The truth is a derivation, so that nothing is found only if scores are no numbers.
        if !self.grammar.best(at.rows, at.shared, Some(wrong), output) {
            output.extend(&truth.derivation);
        }
        Ok(())
    }

    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        plane.clear();
        let Some(truth) = &self.truth[example] else {
            return if output.is_empty() { Ok(()) } else { Err(not_an_output(example, "it has no true tree")) };
        };
        if output == truth.derivation {
            return Ok(());
        }
        let words = truth.marks.tags.len();
        let bad = |why: &str| not_an_output(example, why);
        let marks = self.grammar.marks(words, output).map_err(bad)?;
        plane.loss = marks.differences(&truth.marks) as f64 * self.loss(words);
        let outputs = self.grammar.outputs();
        for (derivation, slope) in [(output, 1.0), (&truth.derivation[..], -1.0)] {
            let add = |place: PlaceOfScore| match place {
                PlaceOfScore::Row(word, own) => plane.rows.push(((word * outputs + own) as u32, slope)),
                PlaceOfScore::Shared(place) => plane.shared.push((place as u32, slope)),
            };
            self.grammar.each_score(words, derivation, add).map_err(bad)?;
        }
        plane.tidy();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, random_trees};
    use crate::random::Random;
    use crate::testing::check_structure;

    /// Rows without features that matter, and the pieces of trees as targets.
    pub(super) fn data(trees: &[Tree]) -> Dataset {
        let pieces: Vec<String> = trees.iter().flat_map(Tree::pieces).collect();
        let mut names: Vec<&str> = pieces.iter().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let codes: Vec<u32> =
            pieces.iter().map(|piece| names.binary_search(&piece.as_str()).expect("known") as u32).collect();
        let mut starts = vec![0u64];
        trees.iter().for_each(|tree| starts.push(starts[starts.len() - 1] + tree.tags.len() as u64));
        let matrix = Matrix::DenseF64(Dense::new(vec![1.0; pieces.len()], pieces.len(), 1).expect("whole rows"));
        let targets = Targets::Labels { names: names.into_iter().collect(), codes: codes.into() };
        let groups = Groups::new(starts, (0..trees.len()).map(|group| format!("s{group}")).collect()).expect("rising");
        Dataset::new(matrix, targets).expect("valid").with_groups(groups).expect("valid")
    }

    #[test]
    fn the_structure_passes_the_public_checks() {
        let mut random = Random::new(5, 1, 0);
        for case in 0..40 {
            let trees: Vec<Tree> = (0..4).map(|at| random_trees::tree(&mut random, 2 + at % 4, 2, 2)).collect();
            let markov = Markov { siblings: case % 3, parents: case % 2 == 0 };
            let structure = Trees::on(&data(&trees), markov, LossScale::ALL[case % 2], None).expect("trees");
            check_structure(&structure).expect("sound");
        }
    }

    #[test]
    fn the_search_finds_the_largest_plane_of_other_trees() {
        let mut random = Random::new(6, 1, 0);
        for case in 0..500 {
            // All trees have the same words, so that each is an output of every sentence.
            let words = 1 + case % 4;
            let trees: Vec<Tree> =
                (0..5).map(|at| random_trees::tree(&mut random, words.max(at % 3 + 1), 2, 2)).collect();
            let markov = Markov { siblings: 1, parents: false };
            let scale = LossScale::ALL[case % 2];
            let structure = match Trees::on(&data(&trees), markov, scale, None) {
                Ok(structure) => structure,
                Err(error) => {
                    assert!(error.code() == Code::BadTree && trees.iter().all(|tree| tree.phrases.is_empty()));
                    continue;
                }
            };
            let length = trees[0].tags.len();
            let rows: Vec<f64> = (0..length * structure.outputs()).map(|_| random.normal()).collect();
            let shared: Vec<f64> = (0..structure.shared()).map(|_| random.normal()).collect();
            let at = Scores { rows: &rows, shared: &shared };
            let (mut found, mut plane) = (Vec::new(), Plane::default());
            structure.most_violated(0, at, &mut found).expect("found");
            structure.plane(0, &found, &mut plane).expect("an output");
            let highest = plane.value(at);
            assert!(highest >= -1e-12 && plane.loss <= structure.largest_loss());
            let same: Vec<(usize, &[u32])> = structure.derivations().filter(|(words, _)| *words == length).collect();
            for (_, other) in same {
                structure.plane(0, other, &mut plane).expect("an output");
                assert!(plane.value(at) <= highest + 1e-10, "{case}");
                assert!(plane.rows.is_sorted_by_key(|entry| entry.0) && plane.shared.is_sorted_by_key(|entry| entry.0));
            }
            let (_, truth) = structure.derivations().next().expect("one");
            structure.plane(0, truth, &mut plane).expect("the truth");
            assert_eq!(plane, Plane::default());
        }
    }

    #[test]
    fn sentences_that_are_held_out_have_no_truth_and_no_rules() {
        let tree = |pieces: &[&str]| Tree::of_pieces(pieces.iter().copied()).expect("a tree");
        let trees = [tree(&["(S(a*)", "(b*))"]), tree(&["(S(a*)", "(b*))"]), tree(&["(X(c*)", "(b*))"])];
        let data = data(&trees);
        let subset = Subset::without(&[4, 5], 6);
        let markov = Markov { siblings: 1, parents: false };
        let structure = Trees::on(&data, markov, LossScale::Token, Some(&subset)).expect("trees");
        assert_eq!(structure.grammar().tags(), ["a", "b"]);
        assert_eq!([0, 1, 2].map(|example| structure.weight(example)), [1.0, 1.0, 0.0]);
        let (rows, shared) = (vec![0.0; 2 * structure.outputs()], vec![0.0; structure.shared()]);
        let (mut output, mut plane) = (vec![1], Plane::default());
        structure.most_violated(2, Scores { rows: &rows, shared: &shared }, &mut output).expect("nothing");
        structure.plane(2, &output, &mut plane).expect("nothing");
        assert!(output.is_empty() && plane == Plane::default());
        assert_eq!(structure.plane(2, &[0], &mut plane).expect_err("no tree").code(), Code::CertificateMismatch);
        assert_eq!(structure.plane(0, &[0], &mut plane).expect_err("no tree").code(), Code::CertificateMismatch);
    }

    #[test]
    fn targets_that_are_no_trees_name_their_sentence() {
        let trees = [Tree::of_pieces(["(S(a*)", "(b*))"].into_iter()).expect("a tree")];
        let whole = data(&trees);
        let codes = Targets::Labels { names: ["(S(a*)", "(b*)"].into_iter().collect(), codes: vec![0u32, 1].into() };
        let cut = Dataset::new(whole.matrix().clone(), codes).expect("valid");
        let cut = cut.with_groups(whole.groups().expect("groups").clone()).expect("valid");
        let error = trees_of(&cut, None).expect_err("not closed");
        assert!(error.code() == Code::BadTree && error.to_string().contains("`s0`"), "{error}");
        let numbers = Dataset::new(whole.matrix().clone(), Targets::Real(vec![1.0, 2.0].into())).expect("valid");
        let numbers = numbers.with_groups(Groups::one(2)).expect("valid");
        assert_eq!(trees_of(&numbers, None).expect_err("numbers").code(), Code::BadTree);
    }
}
