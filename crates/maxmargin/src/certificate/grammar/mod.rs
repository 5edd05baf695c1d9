//! [`Grammar`]: a context-free grammar whose rules have weights, read off trees.
//!
//! ```text
//! score(y) = root[top] + Σ_rules rule + Σ_words tag[word] + Σ_splits split[label, word]
//!          + Σ_phrases (begin[label, first word] + end[label, last word] + length[label, number of words])
//! ```
//! A node of a derivation holds some words. It has an *inner* symbol: a tag for one word, or the parent of a binary rule
//! for more. A unary rule may stand above it, which replaces a whole chain of phrases over the same words by one step:
//! `S → VP` over `VB` is the rule `S ← [S VP] VB`. Its first label is the *outer* symbol, which the rule above sees.
//! Phrases with more than two parts are binarised from the left: `NP → DT JJ NN` becomes `NP → DT NP|DT` and
//! `NP|DT → JJ NN`, where `NP|DT` is an intermediate symbol that remembers the last parts. Chains and intermediate symbols
//! are undone exactly, so that a tree of the grammar has one derivation.
//!
//! Scores of words are those of rows: a row has a score for each tag, and for each label three, as the first and the last
//! word of such a phrase and as the first word of a later part of it (a *split*). Rules, tops and lengths have shared
//! scores.
//!
//! As numbers, a derivation lists its nodes, each before the nodes below it: the number of the unary rule counted from 1,
//! or 0; then the tag, or the binary rule and the number of words of the left part.

mod reading;
mod search;
#[cfg(test)]
mod tests;

pub use reading::Markov;
pub(crate) use search::Wrong;

#[cfg(test)]
use crate::data::Child;
use crate::data::{Phrase, Tree, is_label};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A symbol that is no tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Symbol {
    /// The label of the phrase, as a place among the labels.
    pub label: u32,
    /// What an intermediate symbol stands for, such as `NP|DT`; the name of a whole phrase is its label, with that of its
    /// parent if these are told apart.
    pub name: String,
    /// Whether it is a part of a phrase.
    pub part: bool,
}

/// A chain of phrases over the same words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Unary {
    /// The symbol of the first phrase.
    pub top: u32,
    /// The labels of the phrases, the first one included.
    pub chain: Vec<u32>,
    /// The symbol below.
    pub bottom: u32,
}

/// What a model file holds of a grammar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Stored {
    tags: Vec<String>,
    labels: Vec<String>,
    symbols: Vec<Symbol>,
    binary: Vec<[u32; 3]>,
    unary: Vec<Unary>,
    roots: Vec<u32>,
    fallback: u32,
}

/// See the top of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Grammar {
    stored: Stored,
    /// The first binary rule of each left symbol, followed by their number.
    by_left: Vec<u32>,
    /// The binary rules of each parent, in order.
    by_parent: Vec<Vec<u32>>,
    /// The unary rules of each top symbol, in order.
    by_top: Vec<Vec<u32>>,
}

/// Classes of lengths of phrases, each from one length up to the next.
const LENGTHS: [usize; 9] = [1, 2, 3, 4, 5, 7, 10, 15, 25];

/// Longer sentences are not parsed: the time grows with the third power of the length.
pub(crate) const MOST_WORDS: usize = 400;

/// A symbol that no tree holds may still be asked for, so that every sum below stays small.
const MOST_SYMBOLS: usize = 1 << 20;

impl From<Grammar> for Stored {
    fn from(grammar: Grammar) -> Stored {
        grammar.stored
    }
}

impl TryFrom<Stored> for Grammar {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Grammar, String> {
        stored.check()?;
        let symbols = stored.tags.len() + stored.symbols.len();
        let mut by_left = vec![0u32; symbols + 1];
        let mut by_parent = vec![Vec::new(); symbols];
        for (rule, &[parent, left, _]) in stored.binary.iter().enumerate() {
            by_left[left as usize + 1] += 1;
            by_parent[parent as usize].push(rule as u32);
        }
        (0..symbols).for_each(|symbol| by_left[symbol + 1] += by_left[symbol]);
        let mut by_top = vec![Vec::new(); symbols];
        for (rule, unary) in stored.unary.iter().enumerate() {
            by_top[unary.top as usize].push(rule as u32);
        }
        Ok(Grammar { stored, by_left, by_parent, by_top })
    }
}

impl Stored {
    /// Checks what the searches rely on.
    fn check(&self) -> Result<(), String> {
        let tags = self.tags.len();
        let symbols = tags + self.symbols.len();
        let sound = |right: bool, what: &str| if right { Ok(()) } else { Err(format!("the grammar has {what}")) };
        sound(tags > 0 && symbols <= MOST_SYMBOLS, "no tags, or too many symbols")?;
        sound(self.tags.iter().chain(&self.labels).all(|name| is_label(name)), "a label with brackets or blanks")?;
        let known = |label: u32| (label as usize) < self.labels.len();
        sound(self.symbols.iter().all(|symbol| known(symbol.label)) && known(self.fallback), "an unknown label")?;
        let whole = |symbol: u32| match self.symbols.get((symbol as usize).wrapping_sub(tags)) {
            Some(own) => !own.part,
            None => false,
        };
        let any = |symbol: u32| (symbol as usize) < symbols;
        let complete = |symbol: u32| (symbol as usize) < tags || whole(symbol);
        let binary =
            |rule: &[u32; 3]| rule.iter().all(|&symbol| any(symbol)) && rule[0] as usize >= tags && complete(rule[1]);
        sound(self.binary.iter().all(binary), "a binary rule with unfit symbols")?;
        let order = |rule: &[u32; 3]| [rule[1], rule[2], rule[0]];
        sound(self.binary.is_sorted_by(|a, b| order(a) < order(b)), "binary rules out of order")?;
        let unary = |rule: &Unary| {
            whole(rule.top)
                && complete(rule.bottom)
                && rule.chain.first() == Some(&self.symbols[rule.top as usize - tags].label)
                && rule.chain.iter().all(|&label| known(label))
        };
        sound(self.unary.iter().all(unary), "a unary rule with unfit symbols")?;
        sound(!self.roots.is_empty() && self.roots.iter().all(|&root| complete(root)), "unfit tops")
    }
}

/// What a node of a derivation consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inner {
    /// The tag of one word.
    Tag(u32),
    /// A binary rule.
    Rule(u32),
}

/// A node of a derivation, and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    unary: Option<u32>,
    inner: Inner,
    words: Range<usize>,
    /// The first word of the right part.
    split: usize,
}

impl Grammar {
    /// Number of tags.
    pub fn tags(&self) -> &[String] {
        &self.stored.tags
    }

    /// The labels of phrases.
    pub fn labels(&self) -> &[String] {
        &self.stored.labels
    }

    /// The symbols that are no tags.
    pub fn symbols(&self) -> &[Symbol] {
        &self.stored.symbols
    }

    /// The binary rules: parent, left and right symbol. Numbers below that of tags are tags.
    pub fn binary(&self) -> &[[u32; 3]] {
        &self.stored.binary
    }

    /// The unary rules.
    pub fn unary(&self) -> &[Unary] {
        &self.stored.unary
    }

    /// The symbols that stand at the top of a tree.
    pub fn roots(&self) -> &[u32] {
        &self.stored.roots
    }

    /// The name of a symbol or tag.
    pub fn name(&self, symbol: u32) -> &str {
        match self.tags().get(symbol as usize) {
            Some(tag) => tag,
            None => &self.symbols()[symbol as usize - self.tags().len()].name,
        }
    }

    /// Number of scores of a row: one for each tag, then for each label as the first word, as the last word, and at a split.
    pub fn outputs(&self) -> usize {
        self.tags().len() + 3 * self.labels().len()
    }

    /// What a score of a row is called.
    pub fn output_name(&self, output: usize) -> String {
        let (tags, labels) = (self.tags().len(), self.labels().len());
        match output.checked_sub(tags) {
            None => self.tags()[output].clone(),
            Some(place) => {
                format!("{} {}", self.labels()[place % labels], ["begins", "ends", "splits"][place / labels])
            }
        }
    }

    /// Number of shared scores: those of binary rules, unary rules and tops, then of each label with each class of lengths.
    pub fn shared(&self) -> usize {
        self.lengths() + self.labels().len() * LENGTHS.len()
    }

    /// What a shared score is called.
    pub fn shared_name(&self, place: usize) -> String {
        if let Some(&[parent, left, right]) = self.binary().get(place) {
            return format!("{} → {} {}", self.name(parent), self.name(left), self.name(right));
        }
        if let Some(rule) = place.checked_sub(self.binary().len()).and_then(|rule| self.unary().get(rule)) {
            let chain: Vec<&str> = rule.chain.iter().map(|&label| self.labels()[label as usize].as_str()).collect();
            return format!("{} → {}", chain.join(" → "), self.name(rule.bottom));
        }
        match place.checked_sub(self.lengths()) {
            None => format!("top {}", self.name(self.roots()[place - self.top(0)])),
            Some(place) => {
                let (label, class) = (&self.labels()[place / LENGTHS.len()], place % LENGTHS.len());
                match LENGTHS.get(class + 1) {
                    Some(next) if next - LENGTHS[class] == 1 => format!("{label} of {} words", LENGTHS[class]),
                    Some(next) => format!("{label} of {} to {} words", LENGTHS[class], next - 1),
                    None => format!("{label} of {} or more words", LENGTHS[class]),
                }
            }
        }
    }

    fn chain(&self, rule: usize) -> usize {
        self.binary().len() + rule
    }

    fn top(&self, root: usize) -> usize {
        self.chain(self.unary().len()) + root
    }

    fn lengths(&self) -> usize {
        self.top(self.roots().len())
    }

    /// The place of the score of a label with so many words.
    fn length(&self, label: usize, words: usize) -> usize {
        self.lengths() + label * LENGTHS.len() + LENGTHS.partition_point(|&least| least <= words) - 1
    }

    fn begin(&self, label: usize) -> usize {
        self.tags().len() + label
    }

    fn end(&self, label: usize) -> usize {
        self.begin(label) + self.labels().len()
    }

    fn split(&self, label: usize) -> usize {
        self.end(label) + self.labels().len()
    }

    /// The label of a symbol, and whether it is a whole phrase; `None` for tags.
    fn label_of(&self, symbol: u32) -> Option<(u32, bool)> {
        let own = self.symbols().get((symbol as usize).checked_sub(self.tags().len())?)?;
        Some((own.label, !own.part))
    }

    fn inner_symbol(&self, inner: Inner) -> u32 {
        match inner {
            Inner::Tag(tag) => tag,
            Inner::Rule(rule) => self.binary()[rule as usize][0],
        }
    }

    /// The largest number of phrases of a derivation over so many words.
    pub(crate) fn most_phrases(&self, words: usize) -> usize {
        let chain = self.unary().iter().map(|rule| rule.chain.len()).max().unwrap_or(0);
        (2 * words - words.min(1)) * chain + words.saturating_sub(1)
    }

    /// The nodes of a derivation over so many words, or why the numbers are none.
    fn nodes(&self, words: usize, derivation: &[u32]) -> Result<Vec<Node>, &'static str> {
        let mut numbers = derivation.iter().copied();
        let mut number = || numbers.next().ok_or("some nodes are missing");
        let mut nodes = Vec::with_capacity(2 * words);
        // The words of a node to come, and the symbol it must have; at the top, any of the roots.
        let mut open: Vec<(Range<usize>, Option<u32>)> = vec![(0..words, None)];
        while let Some((words, wanted)) = open.pop() {
            let unary = match number()? {
                0 => None,
                rule if rule as usize <= self.unary().len() => Some(rule - 1),
                _ => return Err("a unary rule is unknown"),
            };
            let second = number()?;
            let (inner, split) = match words.len() {
                0 => return Err("it has no words"),
                1 if (second as usize) < self.tags().len() => (Inner::Tag(second), words.end),
                1 => return Err("a tag is unknown"),
                length if (second as usize) < self.binary().len() => match number()? as usize {
                    left if left > 0 && left < length => (Inner::Rule(second), words.start + left),
                    _ => return Err("a part has no words"),
                },
                _ => return Err("a binary rule is unknown"),
            };
            let symbol = self.inner_symbol(inner);
            let outer = match unary.map(|rule| &self.unary()[rule as usize]) {
                None => symbol,
                Some(rule) if rule.bottom == symbol => rule.top,
                Some(_) => return Err("a unary rule stands above another symbol"),
            };
            match wanted {
                Some(wanted) if wanted != outer => return Err("a part is another symbol than its rule has"),
                None if !self.roots().contains(&outer) => return Err("its top is never one"),
                _ => {}
            }
            if let Inner::Rule(rule) = inner {
                let [_, left, right] = self.binary()[rule as usize];
                open.push((split..words.end, Some(right)));
                open.push((words.start..split, Some(left)));
            }
            nodes.push(Node { unary, inner, words, split });
        }
        if numbers.next().is_some() {
            return Err("numbers are left over");
        }
        Ok(nodes)
    }

    /// Calls back with the label and the words of each phrase of a node, from the top.
    fn each_phrase(&self, node: &Node, mut visit: impl FnMut(u32)) {
        if let Some(rule) = node.unary {
            self.unary()[rule as usize].chain.iter().for_each(|&label| visit(label));
        }
        if let Some((label, true)) = self.label_of(self.inner_symbol(node.inner)) {
            visit(label);
        }
    }

    /// The tree of a derivation, or why the numbers are none.
    pub(crate) fn tree(&self, words: usize, derivation: &[u32]) -> Result<Tree, &'static str> {
        let mut tree = Tree::default();
        for node in self.nodes(words, derivation)? {
            self.each_phrase(&node, |label| {
                let label = self.labels()[label as usize].clone();
                tree.phrases.push(Phrase { label, rows: node.words.clone() });
            });
            if let Inner::Tag(tag) = node.inner {
                tree.tags.push(self.tags()[tag as usize].clone());
            }
        }
        Ok(tree)
    }

    /// The phrases of a derivation, and the tag of each word.
    pub(crate) fn marks(&self, words: usize, derivation: &[u32]) -> Result<Marks, &'static str> {
        let mut marks = Marks { phrases: Vec::new(), tags: Vec::new() };
        for node in self.nodes(words, derivation)? {
            let Range { start, end } = node.words;
            self.each_phrase(&node, |label| marks.phrases.push([start as u32, end as u32, label]));
            if let Inner::Tag(tag) = node.inner {
                marks.tags.push(tag);
            }
        }
        marks.phrases.sort_unstable();
        Ok(marks)
    }

    /// Calls back with the place of each score that a derivation adds up: that of a row, with the word and the output, or a
    /// shared one.
    pub(crate) fn each_score(
        &self,
        words: usize,
        derivation: &[u32],
        mut visit: impl FnMut(Place),
    ) -> Result<(), &'static str> {
        let nodes = self.nodes(words, derivation)?;
        if let Some(first) = nodes.first() {
            let inner = self.inner_symbol(first.inner);
            let outer = first.unary.map_or(inner, |rule| self.unary()[rule as usize].top);
            let root = self.roots().iter().position(|&root| root == outer).ok_or("its top is never one")?;
            visit(Place::Shared(self.top(root)));
        }
        for node in nodes {
            let Range { start, end } = node.words;
            if let Some(rule) = node.unary {
                visit(Place::Shared(self.chain(rule as usize)));
            }
            match node.inner {
                Inner::Tag(tag) => visit(Place::Row(start, tag as usize)),
                Inner::Rule(rule) => {
                    visit(Place::Shared(rule as usize));
                    let parent = self.binary()[rule as usize][0];
                    if let Some((label, _)) = self.label_of(parent) {
                        visit(Place::Row(node.split, self.split(label as usize)));
                    }
                }
            }
            self.each_phrase(&node, |label| {
                let label = label as usize;
                visit(Place::Row(start, self.begin(label)));
                visit(Place::Row(end - 1, self.end(label)));
                visit(Place::Shared(self.length(label, end - start)));
            });
        }
        Ok(())
    }

    /// The flat tree that stands in for a sentence without a derivation: one phrase over all words, each with its best tag.
    pub(crate) fn flat_tree(&self, rows: &[f64]) -> Tree {
        let best = |scores: &[f64]| {
            let larger = |best: usize, tag: usize| if scores[tag] > scores[best] { tag } else { best };
            (0..self.tags().len()).fold(0, larger)
        };
        let tags: Vec<String> = rows.chunks_exact(self.outputs()).map(|row| self.tags()[best(row)].clone()).collect();
        let label = self.labels().get(self.stored.fallback as usize).cloned();
        let phrases = label.map(|label| Phrase { label, rows: 0..tags.len() });
        Tree { phrases: phrases.into_iter().collect(), tags }
    }

    /// The logarithms of relative frequencies, as shared scores: a rule among those with its symbol on the left side, a top
    /// among the tops. This is the grammar of largest likelihood for trees with these derivations. Lengths score zero.
    pub fn relative_frequencies<'a>(&self, derivations: impl Iterator<Item = (usize, &'a [u32])>) -> Vec<f64> {
        let mut counts = vec![0u64; self.lengths()];
        for (words, derivation) in derivations {
            // Derivations that are none count nothing.
            let _ = self.each_score(words, derivation, |place| {
                if let Place::Shared(place) = place
                    && place < counts.len()
                {
                    counts[place] += 1;
                }
            });
        }
        let mut of_symbol = vec![0u64; self.tags().len() + self.symbols().len()];
        let tops: u64 = counts[self.top(0)..].iter().sum();
        let left_side = |place: usize| match self.binary().get(place) {
            Some(rule) => Some(rule[0] as usize),
            None => self.unary().get(place - self.binary().len()).map(|rule| rule.top as usize),
        };
        for (place, count) in counts.iter().enumerate() {
            if let Some(symbol) = left_side(place) {
                of_symbol[symbol] += count;
            }
        }
        let share = |(place, &count): (usize, &u64)| {
            let of = left_side(place).map_or(tops, |symbol| of_symbol[symbol]);
            (count as f64 / of.max(1) as f64).ln()
        };
        let mut shared: Vec<f64> = counts.iter().enumerate().map(share).collect();
        shared.resize(self.shared(), 0.0);
        shared
    }
}

/// A score that a derivation adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Of a word: its number, and which of its scores.
    Row(usize, usize),
    /// A shared one.
    Shared(usize),
}

/// What the loss compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// First word, word after the last, and label of each phrase, rising.
    pub(crate) phrases: Vec<[u32; 3]>,
    /// The tag of each word.
    pub(crate) tags: Vec<u32>,
}

impl Marks {
    /// The number of phrases in one tree and not in the other, and of words with different tags.
    pub(crate) fn differences(&self, other: &Marks) -> usize {
        let (mut own, mut right, mut both) = (0, 0, 0);
        while let (Some(a), Some(b)) = (self.phrases.get(own), other.phrases.get(right)) {
            both += usize::from(a == b);
            own += usize::from(a <= b);
            right += usize::from(b <= a);
        }
        let tags = self.tags.iter().zip(&other.tags).filter(|(own, right)| own != right).count();
        self.phrases.len() + other.phrases.len() - 2 * both + tags
    }
}
