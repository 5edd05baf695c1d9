//! [`Tree`]: a bracketed tree over rows, and its *pieces*, one text for each row.
//!
//! ```text
//! (S (NP (DT the) (NN dog)) (VP (VBZ barks)))      tree
//! (S(NP(DT*)   (NN*))   (VP(VBZ*)))                pieces
//! ```
//! The piece of a row holds the brackets that open before it, `*` in the place of the word, and the brackets that close
//! after it. The innermost bracket is the tag of the row; the others are phrases. With pieces as targets, a tree is stored,
//! split and compared like the tags of a sequence.

use crate::error::{Code, Error, Result};
use std::fmt::Write as _;
use std::ops::Range;

/// A bracket around rows, which is no tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// Its label.
    pub label: String,
    /// Its rows, counted from the first row of the tree.
    pub rows: Range<usize>,
}

/// A tree over rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The tag of each row.
    pub tags: Vec<String>,
    /// The phrases in the order in which their brackets open. The first one holds all rows, if there is any; a tree of one
    /// row may have none.
    pub phrases: Vec<Phrase>,
}

/// One node below another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// The tag of a row.
    Tag(usize),
    /// A phrase, by its place in the list.
    Phrase(usize),
}

/// The labels that open, and the number of brackets that close after the tag.
fn parts(piece: &str) -> Option<(impl Iterator<Item = &str>, usize)> {
    let body = piece.trim_end_matches(')');
    let labels = body.strip_suffix('*')?.strip_prefix('(')?;
    let closing = piece.len() - body.len();
    let sound = closing > 0 && labels.split('(').all(is_label);
    sound.then(|| (labels.split('('), closing - 1))
}

/// Whether a text can be a label: it is not empty, and holds no bracket and no blank.
pub(crate) fn is_label(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c == '(' || c == ')' || c.is_whitespace())
}

impl Tree {
    /// The tree that pieces make.
    pub fn of_pieces<'a>(pieces: impl Iterator<Item = &'a str>) -> Result<Tree> {
        let mut tree = Tree::default();
        let mut open: Vec<usize> = Vec::new();
        for (row, piece) in pieces.enumerate() {
            let Some((labels, closing)) = parts(piece) else {
                let message = format!("`{piece}` is no piece of a bracketed tree");
                return Err(no_tree(row, message));
            };
            if row > 0 && open.is_empty() {
                return Err(no_tree(row, format!("`{piece}` follows the end of the tree")));
            }
            let mut labels = labels.peekable();
            while let Some(label) = labels.next() {
                if labels.peek().is_none() {
                    tree.tags.push(label.to_string());
                } else {
                    open.push(tree.phrases.len());
                    tree.phrases.push(Phrase { label: label.to_string(), rows: row..row });
                }
            }
            for _ in 0..closing {
                let Some(phrase) = open.pop() else {
                    return Err(no_tree(row, format!("`{piece}` closes a bracket that is not open")));
                };
                tree.phrases[phrase].rows.end = row + 1;
            }
        }
        match open.last() {
            Some(&phrase) => {
                let Phrase { label, rows } = &tree.phrases[phrase];
                Err(no_tree(rows.start, format!("the bracket `({label}` is not closed")))
            }
            None => Ok(tree),
        }
    }

    /// The piece of each row.
    pub fn pieces(&self) -> Vec<String> {
        let mut pieces = vec![String::new(); self.tags.len()];
        for Phrase { label, rows } in &self.phrases {
            let _ = write!(pieces[rows.start], "({label}");
        }
        for (piece, tag) in pieces.iter_mut().zip(&self.tags) {
            let _ = write!(piece, "({tag}*)");
        }
        self.phrases.iter().for_each(|phrase| pieces[phrase.rows.end - 1].push(')'));
        pieces
    }

    /// The nodes below each phrase, in order.
    pub(crate) fn children(&self) -> Vec<Vec<Child>> {
        let mut below: Vec<Vec<Child>> = vec![Vec::new(); self.phrases.len()];
        let mut open: Vec<usize> = Vec::new();
        let mut next = 0;
        for row in 0..self.tags.len() {
            while let Some(phrase) = self.phrases.get(next).filter(|phrase| phrase.rows.start == row) {
                debug_assert!(phrase.rows.end > row);
                if let Some(&parent) = open.last() {
                    below[parent].push(Child::Phrase(next));
                }
                open.push(next);
                next += 1;
            }
            if let Some(&parent) = open.last() {
                below[parent].push(Child::Tag(row));
            }
            while open.last().is_some_and(|&phrase| self.phrases[phrase].rows.end == row + 1) {
                open.pop();
            }
        }
        below
    }
}

/// Pieces with their words, as one line: `(NP (DT the) (NN dog))`. Words that hold brackets or blanks must be escaped
/// before.
pub fn bracketed<'a>(pieces: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut line = String::new();
    for (piece, word) in pieces {
        let (opening, closing) = piece.rsplit_once('*').unwrap_or((piece, ""));
        for label in opening.split('(').skip(1) {
            let _ = write!(line, "{}({label}", if line.is_empty() { "" } else { " " });
        }
        let _ = write!(line, " {word}{closing}");
    }
    line
}

fn no_tree(row: usize, message: String) -> Error {
    Error::new(Code::BadTree, format!("word {}: {message}", row + 1)).help(
        "the target of each word is a text such as `(S(NP(DT*)`: the brackets around `*`, which stands for the word",
    )
}

/// Random trees, for tests.
#[cfg(test)]
pub(crate) mod random {
    use super::{Phrase, Tree};
    use crate::random::Random;
    use std::ops::Range;

    /// A tree over so many rows, with labels `A`, `B`, … and tags `a`, `b`, …
    pub(crate) fn tree(random: &mut Random, rows: usize, labels: u64, tags: u64) -> Tree {
        let name = |number: u64, first: u8| char::from(first + number as u8).to_string();
        let tags = (0..rows).map(|_| name(random.below(tags), b'a')).collect();
        let mut tree = Tree { tags, phrases: Vec::new() };
        grow(&mut tree, 0..rows, rows > 1, &mut |below| random.below(below), labels);
        tree
    }

    fn grow(tree: &mut Tree, rows: Range<usize>, needed: bool, draw: &mut dyn FnMut(u64) -> u64, labels: u64) {
        let chain = u64::from(needed) + [0, 0, 0, 1, 1, 2][draw(6) as usize];
        for _ in 0..chain {
            let label = char::from(b'A' + draw(labels) as u8).to_string();
            tree.phrases.push(Phrase { label, rows: rows.clone() });
        }
        let mut first = rows.start;
        while rows.len() > 1 && first < rows.end {
            // At least two children.
            let most = if first == rows.start { rows.len() - 1 } else { rows.end - first };
            let length = 1 + draw(most as u64) as usize;
            grow(tree, first..first + length, length > 1, draw, labels);
            first += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn of(pieces: &[&str]) -> Result<Tree> {
        Tree::of_pieces(pieces.iter().copied())
    }

    #[test]
    fn trees_come_back_from_their_pieces() {
        let mut random = Random::new(3, 1, 0);
        for case in 0..3000 {
            let rows = 1 + random.below(9) as usize;
            let tree = random::tree(&mut random, rows, 3, 3);
            let pieces = tree.pieces();
            let again = Tree::of_pieces(pieces.iter().map(String::as_str)).expect("a tree");
            assert_eq!(again, tree, "{case}: {pieces:?}");
            // Every row and phrase but the top has one parent.
            let below = tree.children();
            let phrases = below.iter().flatten().filter(|child| matches!(child, Child::Phrase(_))).count();
            let tags = below.iter().flatten().filter(|child| matches!(child, Child::Tag(_))).count();
            let whole = usize::from(!tree.phrases.is_empty());
            assert_eq!((phrases + whole, tags), (tree.phrases.len(), rows * whole), "{case}");
        }
    }

    #[test]
    fn pieces_are_printed_with_their_words() {
        let pieces = ["(S(NP(DT*)", "(NN*))", "(VP(VBZ*)))"];
        let tree = of(&pieces).expect("a tree");
        assert_eq!(tree.tags, ["DT", "NN", "VBZ"]);
        assert_eq!(tree.pieces(), pieces);
        let words = ["the", "*", "barks"];
        let line = bracketed(pieces.into_iter().zip(words));
        assert_eq!(line, "(S (NP (DT the) (NN *)) (VP (VBZ barks)))");
        assert_eq!(bracketed([("(NN*)", "a")].into_iter()), "(NN a)");
        // A star in a label is a part of it.
        assert_eq!(of(&["(A*(B**)", "(c*))"]).expect("a tree").pieces(), ["(A*(B**)", "(c*))"]);
    }

    #[test]
    fn pieces_that_make_no_tree_are_refused() {
        for pieces in [
            &["NN"][..],
            &["(NN)"],
            &["(NN*"],
            &["(*)"],
            &["((NN*))"],
            &["(N N*)"],
            &["(S(NN*)"],
            &["(NN*))"],
            &["(NN*)", "(NN*)"],
            &["(S(NN*))", "(NN*)"],
            &["(S(NN*)", "(NN*)))"],
            &[""],
        ] {
            let error = of(pieces).expect_err(pieces[0]);
            assert_eq!(error.code(), Code::BadTree, "{pieces:?}");
        }
    }
}
