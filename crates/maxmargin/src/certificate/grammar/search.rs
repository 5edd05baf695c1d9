//! The best derivation of a sentence, by the algorithm of Cocke, Younger and Kasami.
//!
//! For every span of words, the best value of each symbol as the inner and as the outer one of a node (see `mod.rs`). In
//! training, the loss is added: with P the phrases of a node and G the true ones over the same words, a node adds
//! |P| − 2·|P ∩ G|, and a wrong tag adds 1. Summed up, with the number of true phrases, this is the number of phrases in
//! one tree and not in the other and of wrong tags, since no two nodes have the same words. The search is exact.
//!
//! Cost: for n words n³/6 times the binary rules. Symbols that no derivation of a span has are skipped. Of equal
//! derivations the one found first wins: direct before unary rules, early splits before late ones, rules in their order.

use super::{Grammar, Inner, MOST_WORDS, Marks};
use crate::data::Tree;

/// The true phrases and tags, and what a difference from them costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrong<'a> {
    pub(crate) truth: &'a Marks,
    pub(crate) loss: f64,
}

/// The values of a sentence.
struct Chart<'a> {
    grammar: &'a Grammar,
    rows: &'a [f64],
    shared: &'a [f64],
    wrong: Option<Wrong<'a>>,
    words: usize,
    symbols: usize,
    /// The values of each span and symbol.
    inner: Vec<f64>,
    outer: Vec<f64>,
    /// For each word and symbol, the score of a split before the word.
    splits: Vec<f64>,
    /// The true phrases of each span: the first one, and their number.
    truth: Vec<(u32, u32)>,
}

const NONE: f64 = f64::NEG_INFINITY;

/// The place of a span: those with the same end are next to each other.
fn cell(start: usize, end: usize) -> usize {
    end * (end - 1) / 2 + start
}

impl Grammar {
    /// Writes the derivation with the largest sum of scores and, if it is given, loss. Returns false, and writes nothing,
    /// if there is none: the grammar does not make a sentence of this length, it is too long, or scores are no numbers.
    pub(crate) fn best(&self, rows: &[f64], shared: &[f64], wrong: Option<Wrong<'_>>, best: &mut Vec<u32>) -> bool {
        best.clear();
        let words = rows.len() / self.outputs();
        if words == 0 || words > MOST_WORDS {
            return false;
        }
        let mut chart = Chart::new(self, rows, shared, wrong);
        chart.fill();
        let whole = cell(0, words) * chart.symbols;
        let tops = self.roots().iter().enumerate();
        let tops = tops.map(|(place, &root)| (root, chart.outer[whole + root as usize] + shared[self.top(place)]));
        let Some(top) = largest(tops) else { return false };
        chart.derive(top, best);
        true
    }

    /// The best tree of a sentence, and whether the grammar has any; the flat tree stands in for it otherwise.
    pub(crate) fn parse(&self, rows: &[f64], shared: &[f64]) -> (Tree, bool) {
        let mut derivation = Vec::new();
        if self.best(rows, shared, None, &mut derivation)
            && let Ok(tree) = self.tree(rows.len() / self.outputs(), &derivation)
        {
            return (tree, true);
        }
        (self.flat_tree(rows), false)
    }
}

/// The first choice with the largest value, if any value is above −∞.
fn largest<T>(choices: impl Iterator<Item = (T, f64)>) -> Option<T> {
    let mut best = (None, NONE);
    for (choice, value) in choices {
        if value > best.1 {
            best = (Some(choice), value);
        }
    }
    best.0
}

/// How a node continues above its inner symbol.
#[derive(Clone, Copy)]
enum Above {
    Nothing,
    Unary(u32),
}

impl<'a> Chart<'a> {
    fn new(grammar: &'a Grammar, rows: &'a [f64], shared: &'a [f64], wrong: Option<Wrong<'a>>) -> Chart<'a> {
        let words = rows.len() / grammar.outputs();
        let (tags, symbols) = (grammar.tags().len(), grammar.tags().len() + grammar.symbols().len());
        let cells = words * (words + 1) / 2;
        let mut splits = vec![0.0; words * symbols];
        for (own, row) in splits.chunks_exact_mut(symbols).zip(rows.chunks_exact(grammar.outputs())) {
            let scores = &row[grammar.split(0)..];
            let labelled = grammar.symbols().iter();
            own[tags..].iter_mut().zip(labelled).for_each(|(own, symbol)| *own = scores[symbol.label as usize]);
        }
        let mut truth = vec![(0, 0); if wrong.is_some() { cells } else { 0 }];
        for (place, &[start, end, _]) in wrong.iter().flat_map(|wrong| wrong.truth.phrases.iter().enumerate()) {
            let own: &mut (u32, u32) = &mut truth[cell(start as usize, end as usize)];
            *own = if own.1 == 0 { (place as u32, 1) } else { (own.0, own.1 + 1) };
        }
        let (inner, outer) = (vec![NONE; cells * symbols], vec![NONE; cells * symbols]);
        Chart { grammar, rows, shared, wrong, words, symbols, inner, outer, splits, truth }
    }

    fn row(&self, word: usize) -> &'a [f64] {
        &self.rows[word * self.grammar.outputs()..][..self.grammar.outputs()]
    }

    /// The scores of each label over a span.
    fn labels(&self, start: usize, end: usize, scores: &mut Vec<f64>) {
        let (first, last) = (self.row(start), self.row(end - 1));
        let of = |label: usize| {
            let length = self.shared[self.grammar.length(label, end - start)];
            first[self.grammar.begin(label)] + last[self.grammar.end(label)] + length
        };
        scores.clear();
        scores.extend((0..self.grammar.labels().len()).map(of));
    }

    /// The loss of the phrases of a node over a span. The true ones of a span are few, and so are those of a node.
    fn loss(&self, span: usize, phrases: impl Iterator<Item = u32> + Clone) -> f64 {
        let Some(Wrong { truth, loss }) = self.wrong else { return 0.0 };
        let (first, count) = self.truth[span];
        let count_all = phrases.clone().count() as f64;
        let right = &truth.phrases[first as usize..][..count as usize];
        // True labels are sorted. Each is matched as often as both have it.
        let mut both = 0.0;
        let mut place = 0;
        while place < right.len() {
            let label = right[place][2];
            let times = right[place..].iter().take_while(|own| own[2] == label).count();
            both += times.min(phrases.clone().filter(|own| *own == label).count()) as f64;
            place += times;
        }
        loss * (count_all - 2.0 * both)
    }

    /// The value of a node with this inner symbol and nothing or a unary rule above it.
    fn value(&self, span: usize, labels: &[f64], inner: u32, above: Above) -> f64 {
        let grammar = self.grammar;
        let value = self.inner[span * self.symbols + inner as usize];
        let own = grammar.label_of(inner).filter(|(_, whole)| *whole).map(|(label, _)| label);
        match above {
            Above::Nothing => value + self.loss(span, own.into_iter()),
            Above::Unary(rule) => {
                let chain = &grammar.unary()[rule as usize].chain;
                let scores: f64 = chain.iter().map(|&label| labels[label as usize]).sum();
                let weight = self.shared[grammar.chain(rule as usize)];
                value + (weight + scores) + self.loss(span, chain.iter().copied().chain(own))
            }
        }
    }

    fn fill(&mut self) {
        let mut labels = Vec::new();
        for end in 1..=self.words {
            for start in (0..end).rev() {
                self.labels(start, end, &mut labels);
                if end - start == 1 {
                    self.fill_tags(start)
                } else {
                    self.fill_rules(start, end, &labels)
                }
                self.fill_outer(cell(start, end), &labels);
            }
        }
    }

    fn fill_tags(&mut self, word: usize) {
        let first = cell(word, word + 1) * self.symbols;
        let tags = self.grammar.tags().len();
        let row = self.row(word);
        self.inner[first..first + tags].copy_from_slice(&row[..tags]);
        if let Some(Wrong { truth, loss }) = self.wrong {
            let right = truth.tags[word] as usize;
            let others = self.inner[first..first + tags].iter_mut().enumerate().filter(|(tag, _)| *tag != right);
            others.for_each(|(_, value)| *value += loss);
        }
    }

    fn fill_rules(&mut self, start: usize, end: usize, labels: &[f64]) {
        let (grammar, symbols) = (self.grammar, self.symbols);
        let span = cell(start, end) * symbols;
        let (weights, rules) = (&self.shared[..grammar.binary().len()], grammar.binary());
        let own = &mut self.inner[span..span + symbols];
        for split in start + 1..end {
            let left = &self.outer[cell(start, split) * symbols..][..symbols];
            let right = &self.outer[cell(split, end) * symbols..][..symbols];
            let splits = &self.splits[split * symbols..][..symbols];
            for (symbol, &left) in left.iter().enumerate() {
                if left == NONE {
                    continue;
                }
                let of = grammar.by_left[symbol] as usize..grammar.by_left[symbol + 1] as usize;
                for (&[parent, _, child], &weight) in rules[of.clone()].iter().zip(&weights[of]) {
                    let parent = parent as usize;
                    let value = left + right[child as usize] + weight + splits[parent];
                    if value > own[parent] {
                        own[parent] = value;
                    }
                }
            }
        }
        let tags = grammar.tags().len();
        for (value, symbol) in own[tags..].iter_mut().zip(grammar.symbols()) {
            *value += if symbol.part { 0.0 } else { labels[symbol.label as usize] };
        }
    }

    fn fill_outer(&mut self, span: usize, labels: &[f64]) {
        let first = span * self.symbols;
        for symbol in 0..self.symbols {
            if self.inner[first + symbol] > NONE {
                self.outer[first + symbol] = self.value(span, labels, symbol as u32, Above::Nothing);
            }
        }
        for (rule, unary) in self.grammar.unary().iter().enumerate() {
            if self.inner[first + unary.bottom as usize] > NONE {
                let value = self.value(span, labels, unary.bottom, Above::Unary(rule as u32));
                let own = &mut self.outer[first + unary.top as usize];
                *own = if value > *own { value } else { *own };
            }
        }
    }

    /// Writes the best derivation with this symbol at the top. What won is found again by the same sums.
    fn derive(&self, top: u32, best: &mut Vec<u32>) {
        let grammar = self.grammar;
        let mut open = vec![(0, self.words, top)];
        let mut labels = Vec::new();
        while let Some((start, end, symbol)) = open.pop() {
            let span = cell(start, end);
            self.labels(start, end, &mut labels);
            let direct = [(symbol, Above::Nothing)].into_iter();
            let unary = grammar.by_top[symbol as usize].iter();
            let unary = unary.map(|&rule| (grammar.unary()[rule as usize].bottom, Above::Unary(rule)));
            let nodes = direct.chain(unary).map(|node| (node, self.value(span, &labels, node.0, node.1)));
            let Some((inner, above)) = largest(nodes) else { return };
            best.push(match above {
                Above::Nothing => 0,
                Above::Unary(rule) => rule + 1,
            });
            match self.winner(start, end, inner) {
                None => return,
                Some((Inner::Tag(tag), _)) => best.push(tag),
                Some((Inner::Rule(rule), split)) => {
                    best.extend([rule, (split - start) as u32]);
                    let [_, left, right] = grammar.binary()[rule as usize];
                    open.push((split, end, right));
                    open.push((start, split, left));
                }
            }
        }
    }

    /// The tag, or the rule and the split, that made the best value of an inner symbol.
    fn winner(&self, start: usize, end: usize, symbol: u32) -> Option<(Inner, usize)> {
        if end - start == 1 {
            return Some((Inner::Tag(symbol), end));
        }
        let (grammar, symbols) = (self.grammar, self.symbols);
        let choices = (start + 1..end).flat_map(|split| {
            let left = &self.outer[cell(start, split) * symbols..][..symbols];
            let right = &self.outer[cell(split, end) * symbols..][..symbols];
            let above = self.splits[split * symbols + symbol as usize];
            grammar.by_parent[symbol as usize].iter().map(move |&rule| {
                let [_, l, r] = grammar.binary()[rule as usize];
                let value = left[l as usize] + right[r as usize] + self.shared[rule as usize] + above;
                ((Inner::Rule(rule), split), value)
            })
        });
        largest(choices)
    }
}
