//! Reading a grammar off trees: symbols, rules and the derivation of each tree.

use super::{Grammar, MOST_WORDS, Stored, Symbol, Unary};
use crate::data::{Child, Tree};
use crate::error::{Code, Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How symbols of a grammar are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Markov {
    /// How many of the last parts an intermediate symbol remembers.
    pub siblings: usize,
    /// Whether phrases with different parents have different symbols.
    pub parents: bool,
}

/// What makes a symbol: its label, the label of its parent, and for an intermediate one the last parts.
type Key = (u32, Option<u32>, Option<Vec<u32>>);

/// A grammar that grows.
struct Growing<'a> {
    markov: Markov,
    tags: HashMap<&'a str, u32>,
    labels: HashMap<&'a str, u32>,
    names: Vec<&'a str>,
    known: HashMap<Key, u32>,
    symbols: Vec<Symbol>,
    binary: HashMap<[u32; 3], u32>,
    unary: HashMap<(u32, Vec<u32>, u32), u32>,
}

/// The part of a tree that is being read.
struct Below<'t> {
    tree: &'t Tree,
    children: Vec<Vec<Child>>,
}

impl Grammar {
    /// The grammar of trees, and the derivation of each.
    pub fn read(trees: &[Tree], markov: Markov) -> Result<(Grammar, Vec<Vec<u32>>)> {
        let tags: BTreeSet<&str> = trees.iter().flat_map(|tree| &tree.tags).map(String::as_str).collect();
        let phrases = || trees.iter().flat_map(|tree| &tree.phrases);
        let labels: BTreeSet<&str> = phrases().map(|phrase| phrase.label.as_str()).collect();
        if labels.is_empty() {
            return Err(Error::new(Code::BadTree, "the trees hold no phrases, only tags")
                .help("give trees such as (S (NP (DT the) (NN dog)) (VP (VBZ barks)))"));
        }
        if let Some(long) = trees.iter().find(|tree| tree.tags.len() > MOST_WORDS) {
            let message = format!("a sentence has {} words, and at most {MOST_WORDS} are parsed", long.tags.len());
            return Err(Error::new(Code::BadTree, message).help("leave long sentences out with ⟦max-words⟧"));
        }
        let mut growing = Growing {
            markov,
            tags: tags.iter().copied().zip(0..).collect(),
            labels: labels.iter().copied().zip(0..).collect(),
            names: tags.iter().chain(&labels).copied().collect(),
            known: HashMap::new(),
            symbols: Vec::new(),
            binary: HashMap::new(),
            unary: HashMap::new(),
        };
        let mut tops: BTreeMap<u32, u64> = BTreeMap::new();
        let mut derivations = Vec::with_capacity(trees.len());
        for tree in trees {
            let below = Below { tree, children: tree.children() };
            let mut numbers = Vec::new();
            let top = if tree.phrases.is_empty() { Child::Tag(0) } else { Child::Phrase(0) };
            let outer = growing.node(&below, top, None, &mut numbers);
            *tops.entry(outer).or_default() += 1;
            derivations.push(numbers);
        }
        let order = growing.ordered_rules();
        let fallback = growing.most_frequent_top(&tops);
        derivations.iter_mut().zip(trees).for_each(|(numbers, tree)| renumber(numbers, tree.tags.len(), &order));
        let own = |names: BTreeSet<&str>| names.into_iter().map(str::to_string).collect();
        let stored = Stored {
            tags: own(tags),
            labels: own(labels),
            binary: growing.sorted_binary(),
            unary: growing.listed_unary(),
            symbols: growing.symbols,
            roots: tops.into_keys().collect(),
            fallback,
        };
        let grammar = Grammar::try_from(stored).map_err(|message| Error::new(Code::Internal, message))?;
        Ok((grammar, derivations))
    }
}

/// Puts the places of sorted binary rules into a derivation.
fn renumber(numbers: &mut [u32], words: usize, order: &[u32]) {
    let (mut at, mut open) = (0, vec![words]);
    while let Some(words) = open.pop() {
        if words == 1 {
            at += 2;
            continue;
        }
        numbers[at + 1] = order[numbers[at + 1] as usize];
        let left = numbers[at + 2] as usize;
        open.extend([words - left, left]);
        at += 3;
    }
}

impl Growing<'_> {
    fn label(&self, tree: &Tree, phrase: usize) -> u32 {
        self.labels[tree.phrases[phrase].label.as_str()]
    }

    /// The symbol of a phrase, or of the rest of a phrase after some parts.
    fn symbol(&mut self, label: u32, parent: Option<u32>, after: Option<&[u32]>) -> u32 {
        let parent = parent.filter(|_| self.markov.parents);
        let memory = after.map(|parts| parts[parts.len().saturating_sub(self.markov.siblings)..].to_vec());
        let tags = self.tags.len();
        let count = (tags + self.symbols.len()) as u32;
        let key = (label, parent, memory);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let of_label = |label: u32| self.names[tags + label as usize];
        let mut name = of_label(label).to_string();
        if let Some(parent) = parent {
            name = format!("{name}^{}", of_label(parent));
        }
        if let Some(memory) = &key.2 {
            let plain = |&symbol: &u32| match self.symbols.get((symbol as usize).wrapping_sub(tags)) {
                Some(own) => of_label(own.label),
                None => self.names[symbol as usize],
            };
            let parts: Vec<&str> = memory.iter().map(plain).collect();
            name = format!("{name}|{}", parts.join(","));
        }
        self.symbols.push(Symbol { label, name, part: key.2.is_some() });
        self.known.insert(key, count);
        count
    }

    /// Writes the derivation of a node, and returns its outer symbol.
    fn node(&mut self, below: &Below<'_>, mut child: Child, parent: Option<u32>, numbers: &mut Vec<u32>) -> u32 {
        let mut chain = Vec::new();
        while let Child::Phrase(phrase) = child
            && let [only] = below.children[phrase][..]
        {
            chain.push(self.label(below.tree, phrase));
            child = only;
        }
        let at = numbers.len();
        numbers.push(0);
        let inner = match child {
            Child::Tag(row) => {
                let tag = self.tags[below.tree.tags[row].as_str()];
                numbers.push(tag);
                tag
            }
            Child::Phrase(phrase) => {
                let label = self.label(below.tree, phrase);
                let above = chain.last().copied().or(parent);
                let symbol = self.symbol(label, above, None);
                self.parts(below, phrase, (symbol, above), numbers);
                symbol
            }
        };
        let Some(&first) = chain.first() else { return inner };
        let top = self.symbol(first, parent, None);
        let count = self.unary.len() as u32;
        numbers[at] = *self.unary.entry((top, chain, inner)).or_insert(count) + 1;
        top
    }

    /// Writes the binary rules of a phrase and the nodes of its parts. The number of its unary rule is already there.
    fn parts(&mut self, below: &Below<'_>, phrase: usize, (symbol, above): (u32, Option<u32>), numbers: &mut Vec<u32>) {
        let label = self.label(below.tree, phrase);
        let children = &below.children[phrase];
        let derived: Vec<(u32, usize, Vec<u32>)> = children
            .iter()
            .map(|&child| {
                let mut own = Vec::new();
                let outer = self.node(below, child, Some(label), &mut own);
                let words = match child {
                    Child::Tag(_) => 1,
                    Child::Phrase(phrase) => below.tree.phrases[phrase].rows.len(),
                };
                (outer, words, own)
            })
            .collect();
        let seen: Vec<u32> = derived.iter().map(|(outer, ..)| *outer).collect();
        let mut left_side = symbol;
        for (place, (outer, words, own)) in derived.iter().enumerate() {
            let rest = derived.len() - place - 1;
            if rest == 0 {
                numbers.extend(own);
                break;
            }
            let right = match rest {
                1 => seen[place + 1],
                _ => self.symbol(label, above, Some(&seen[..=place])),
            };
            if place > 0 {
                numbers.push(0);
            }
            let count = self.binary.len() as u32;
            numbers.push(*self.binary.entry([left_side, *outer, right]).or_insert(count));
            numbers.push(*words as u32);
            numbers.extend(own);
            left_side = right;
        }
    }

    /// The binary rules by left, right and parent symbol.
    fn sorted_binary(&self) -> Vec<[u32; 3]> {
        let mut rules: Vec<[u32; 3]> = self.binary.keys().copied().collect();
        rules.sort_unstable_by_key(|&[parent, left, right]| [left, right, parent]);
        rules
    }

    /// The place of each binary rule among the sorted ones.
    fn ordered_rules(&self) -> Vec<u32> {
        let mut order = vec![0; self.binary.len()];
        self.sorted_binary().iter().zip(0..).for_each(|(rule, place)| order[self.binary[rule] as usize] = place);
        order
    }

    fn listed_unary(&self) -> Vec<Unary> {
        let mut rules: Vec<(u32, Unary)> = Vec::with_capacity(self.unary.len());
        for ((top, chain, bottom), &at) in &self.unary {
            rules.push((at, Unary { top: *top, chain: chain.clone(), bottom: *bottom }));
        }
        rules.sort_unstable_by_key(|(at, _)| *at);
        rules.into_iter().map(|(_, rule)| rule).collect()
    }

    /// The label that most trees have at their top, the first of equal ones.
    fn most_frequent_top(&self, tops: &BTreeMap<u32, u64>) -> u32 {
        let mut counts = vec![0u64; self.labels.len()];
        for (&top, &count) in tops {
            if let Some(own) = self.symbols.get((top as usize).wrapping_sub(self.tags.len())) {
                counts[own.label as usize] += count;
            }
        }
        let larger = |best: usize, label: usize| if counts[label] > counts[best] { label } else { best };
        (0..counts.len()).fold(0, larger) as u32
    }
}
