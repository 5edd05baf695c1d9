//! Bracketed trees, as those of the Penn Treebank, and plain sentences.
//!
//! ```text
//! ( (S (NP-SBJ (DT The) (NN dog)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *)))) (. .)) )
//! ```
//! A tree may take any number of lines. A bracket holds a label and one word, which makes it a tag, or a label and other
//! brackets, which makes it a phrase. As is customary:
//!
//! - Traces are left out: tags `-NONE-` with their word, and phrases that hold nothing else.
//! - Function tags are left out: a label ends before the first `-`, `=` or `|` that is not its first character, so that
//!   `NP-SBJ-1` is `NP` and `-LRB-` stays.
//! - A bracket around the whole tree without a label, or with the label TOP, ROOT or S1, is left out if it holds one
//!   other. Without a label and around several, it gets the label TOP.
//!
//! `()` and `(())` are empty trees, as are trees of traces alone. Empty trees, empty lines and sentences that are too long
//! are left out and counted.
//!
//! A text whose first character is no bracket holds plain sentences: one in each line, words separated by blanks. Brackets
//! in words become `-LRB-` and `-RRB-`. Plain sentences can only be scored.
//!
//! Words are rows, and the features are those of [`Templates`], with the word as the one column. The target of a word is
//! its piece of the tree, see [`maxmargin::data::Tree`].

use crate::column_text::{Cells, not_text};
use crate::options::{Facts, Format, Loaded, ReadOptions};
use crate::templates::Templates;
use maxmargin::data::{Names, Phrase, Tree};
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::wording::counted;
use std::borrow::Cow;

/// The features of words without another file of templates.
pub(crate) const TEMPLATES: &str = include_str!("trees.templates");

/// More open brackets than this are refused.
const DEEPEST: usize = 10_000;

/// The labels of brackets around a whole tree.
const TOPS: [&str; 3] = ["TOP", "ROOT", "S1"];

/// Reads bracketed trees or, for a model, plain sentences from a text, which errors call `file`.
pub fn read_sentences(file: &str, text: &str, options: &ReadOptions) -> Result<Loaded> {
    read(file, text.as_bytes(), options)
}

/// Reads the text.
pub(crate) fn read(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Loaded> {
    if !options.columns.is_empty() {
        return Err(Error::new(Code::BadSetting, "bracketed trees have no columns")
            .in_file(file)
            .help("leave ⟦target⟧, ⟦group⟧, ⟦weight⟧, ⟦id⟧ and ⟦ignore⟧ out"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| not_text(file, bytes, error.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let sentences = Sentences::read(file, text, options)?;
    options.cancel.check()?;
    let cells = Cells::of_words(
        sentences.words.iter().map(Cow::as_ref),
        sentences.pieces.as_ref().map(|pieces| pieces.iter().map(String::as_str)),
        (sentences.starts.clone(), sentences.gaps.clone()),
    );
    let default;
    let templates = match &options.templates {
        Some(templates) => templates.as_ref(),
        None => {
            default = Templates::parse(TEMPLATES, "trees.templates")?;
            &default
        }
    };
    let names: Vec<String> = sentences.numbers.iter().map(u64::to_string).collect();
    let mut loaded = cells.loaded(file, templates, names.iter().map(String::as_str).collect(), options)?;
    let words: Names = sentences.words.iter().map(Cow::as_ref).collect();
    loaded.facts = Facts {
        format: Some(Format::Trees),
        notes: sentences.notes().into_iter().chain(loaded.facts.notes).collect(),
        words: Some(words.into()),
        ..loaded.facts
    };
    Ok(loaded)
}

/// What a text holds.
#[derive(Default)]
struct Sentences<'t> {
    words: Vec<Cow<'t, str>>,
    /// The piece of each word, if there are trees.
    pieces: Option<Vec<String>>,
    /// The first word of each sentence, followed by the number of words.
    starts: Vec<u64>,
    /// Sentences that are left out before the first, and after each one.
    gaps: Vec<u32>,
    /// The number of each sentence in the file, counted from 1.
    numbers: Vec<u64>,
    /// Sentences so far.
    count: u64,
    empty: u64,
    long: u64,
    most: Option<u32>,
}

/// An open bracket.
struct Open<'t> {
    /// Its byte in the text.
    at: usize,
    label: Option<&'t str>,
    word: Option<&'t str>,
    /// Its place among the phrases.
    phrase: usize,
    /// Brackets below that are kept, and all.
    kept: u32,
    below: u32,
}

/// The label without function tags.
fn plain(label: &str) -> &str {
    let first = label.chars().next().map_or(0, char::len_utf8);
    match label[first..].find(['-', '=', '|']) {
        Some(end) if !label.starts_with('-') => &label[..first + end],
        _ => label,
    }
}

/// The place of a byte of a text, with the word or bracket there.
fn place(file: &str, text: &str, at: usize, expected: &str) -> Place {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].split('\n').next().unwrap_or_default();
    let rest = &text[at..];
    let width = match rest.chars().next() {
        Some('(') => 1 + rest[1..].find(is_mark).unwrap_or(rest.len() - 1),
        Some(')') => 1,
        _ => rest.find(is_mark).unwrap_or(rest.len()),
    };
    Place {
        file: file.to_string(),
        line: Some(1 + text[..start].matches('\n').count() as u64),
        column: Some((at - start) as u64 + 1),
        excerpt: Some(Excerpt::of_line(line.as_bytes(), at - start..at - start + width, expected)),
    }
}

fn is_mark(character: char) -> bool {
    character == '(' || character == ')' || character.is_whitespace()
}

impl<'t> Sentences<'t> {
    fn read(file: &str, text: &'t str, options: &ReadOptions) -> Result<Sentences<'t>> {
        let mut own = Sentences { starts: vec![0], gaps: vec![0], most: options.max_words, ..Sentences::default() };
        let bracketed = text.trim_start().starts_with('(');
        if bracketed {
            own.pieces = Some(Vec::new());
            own.read_trees(file, text)?;
        } else if options.features.is_some() || text.trim().is_empty() {
            for line in text.lines() {
                own.add_words(line.split_whitespace().map(escaped).collect(), None);
            }
        } else {
            let at = text.len() - text.trim_start().len();
            return Err(Error::new(Code::BadTree, "this is no bracketed tree")
                .at(place(file, text, at, "expected `(`"))
                .help("give trees such as (S (NP (DT the) (NN dog)) (VP (VBZ barks))); plain sentences can only be scored"));
        }
        if own.words.is_empty() {
            let message = match own.most.filter(|_| own.long > 0) {
                Some(most) => {
                    format!("every sentence is empty or has more than {}", counted(u64::from(most), "word", "words"))
                }
                None => "the text holds no words".to_string(),
            };
            return Err(Error::new(Code::NoRows, message).in_file(file).help(
                "write a bracketed tree such as (S (NP (DT the) (NN dog)) (VP (VBZ barks))), on one line or several",
            ));
        }
        Ok(own)
    }

    /// Adds a sentence, or counts it as left out.
    fn add_words(&mut self, words: Vec<Cow<'t, str>>, tree: Option<Tree>) {
        self.count += 1;
        let long = self.most.is_some_and(|most| words.len() > most as usize);
        if words.is_empty() || long {
            self.long += u64::from(long);
            self.empty += u64::from(!long);
            if let Some(gap) = self.gaps.last_mut() {
                *gap += 1;
            }
            return;
        }
        if let (Some(pieces), Some(tree)) = (&mut self.pieces, tree) {
            pieces.extend(tree.pieces());
        }
        self.words.extend(words);
        self.starts.push(self.words.len() as u64);
        self.gaps.push(0);
        self.numbers.push(self.count);
    }

    fn read_trees(&mut self, file: &str, text: &'t str) -> Result<()> {
        let bad = |at: usize, message: String, expected: &str, help: &str| -> Result<()> {
            Err(Error::new(Code::BadTree, message).at(place(file, text, at, expected)).help(help.to_string()))
        };
        let (mut open, mut tree, mut words): (Vec<Open<'_>>, Tree, Vec<Cow<'_, str>>) = Default::default();
        let mut at = 0;
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            let Some(first) = text[at..].chars().next() else { break };
            match first {
                '(' => {
                    let depth = open.len();
                    if let Some(parent) = open.last_mut() {
                        if parent.label.is_none() && depth > 1 {
                            let help = "give every bracket but the one around the tree a label; is a closing bracket \
                                        missing before?";
                            return bad(parent.at, "a bracket without a label".to_string(), "expected a label", help);
                        }
                        if let Some(word) = parent.word {
                            let message = format!("a bracket after the word `{word}`");
                            return bad(at, message, "expected `)`", "a bracket holds one word, or other brackets");
                        }
                    }
                    if depth == DEEPEST {
                        let message = format!("more than {DEEPEST} open brackets");
                        return bad(at, message, "expected `)`", "is a closing bracket missing before?");
                    }
                    open.push(Open { at, label: None, word: None, phrase: tree.phrases.len(), kept: 0, below: 0 });
                    at += 1;
                }
                ')' => {
                    let Some(closed) = open.pop() else {
                        let help = "remove it, or look for a missing opening bracket before";
                        return bad(at, "this bracket closes nothing".to_string(), "expected `(`", help);
                    };
                    if closed.label.is_some_and(|_| closed.word.is_none() && closed.below == 0) {
                        let message = format!("`({}` holds no word and no bracket", closed.label.unwrap_or_default());
                        return bad(
                            closed.at,
                            message,
                            "expected a word or a bracket after this",
                            "add the word, or remove it",
                        );
                    }
                    if closed.label.is_none() && closed.kept > 0 && !open.is_empty() {
                        let help = "give every bracket but the one around the tree a label; is a closing bracket missing \
                                    before?";
                        return bad(closed.at, "a bracket without a label".to_string(), "expected a label", help);
                    }
                    let kept = close(&closed, &mut tree, &mut words);
                    if let Some(parent) = open.last_mut() {
                        parent.kept += u32::from(kept);
                        parent.below += 1;
                    } else {
                        without_top(&closed, &mut tree);
                        self.add_words(std::mem::take(&mut words), Some(std::mem::take(&mut tree)));
                    }
                    at += 1;
                }
                _ => {
                    let width = text[at..].find(is_mark).unwrap_or(text[at..].len());
                    let atom = &text[at..at + width];
                    match open.last_mut() {
                        None => {
                            let message = format!("`{atom}` stands outside of brackets");
                            return bad(
                                at,
                                message,
                                "expected `(`",
                                "write each word in a bracket with its tag: (NN dog)",
                            );
                        }
                        Some(parent) if parent.label.is_none() && parent.below == 0 => {
                            parent.label = Some(atom);
                            tree.phrases
                                .push(Phrase { label: plain(atom).to_string(), rows: words.len()..words.len() });
                        }
                        Some(parent) if parent.word.is_none() && parent.below == 0 => parent.word = Some(atom),
                        Some(_) => {
                            let message = format!("`{atom}` has no bracket of its own");
                            let help = "write each word in a bracket with its tag: (NN dog)";
                            return bad(at, message, "expected `(` or `)`", help);
                        }
                    }
                    at += width;
                }
            }
        }
        match open.last() {
            None => Ok(()),
            Some(last) => {
                let message = format!("`({}` is not closed", last.label.unwrap_or_default());
                bad(last.at, message, "no `)` closes this", "add the missing `)`, or look for a file that was cut")
            }
        }
    }

    /// What was left out.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.empty > 0 {
            notes.push(format!("{} left out", counted(self.empty, "empty sentence", "empty sentences")));
        }
        if let Some(most) = self.most.filter(|_| self.long > 0) {
            let long = counted(self.long, "sentence", "sentences");
            notes.push(format!("{long} with more than {} left out", counted(u64::from(most), "word", "words")));
        }
        notes
    }
}

/// Ends a bracket, and says whether it is kept.
fn close<'t>(closed: &Open<'t>, tree: &mut Tree, words: &mut Vec<Cow<'t, str>>) -> bool {
    match closed.word {
        Some(word) => {
            let tag = tree.phrases.pop().map(|phrase| phrase.label);
            if closed.label == Some("-NONE-") {
                return false;
            }
            tree.tags.extend(tag);
            words.push(Cow::Borrowed(word));
            true
        }
        None if closed.kept == 0 => {
            tree.phrases.truncate(closed.phrase);
            false
        }
        None => {
            // A bracket without a label is the one around the tree.
            if closed.label.is_some() {
                tree.phrases[closed.phrase].rows.end = words.len();
            }
            true
        }
    }
}

/// Leaves brackets around a whole tree out, or gives one without a label one.
fn without_top(closed: &Open<'_>, tree: &mut Tree) {
    if closed.label.is_none() && closed.kept > 1 {
        tree.phrases.insert(0, Phrase { label: TOPS[0].to_string(), rows: 0..tree.tags.len() });
    }
    while let Some(first) = tree.phrases.first().filter(|first| TOPS.contains(&first.label.as_str())) {
        let holds_one = match tree.phrases.get(1) {
            Some(second) => second.rows == first.rows,
            None => first.rows.len() == 1,
        };
        if !holds_one {
            break;
        }
        tree.phrases.remove(0);
    }
}

/// A word without brackets.
pub(crate) fn escaped(word: &str) -> Cow<'_, str> {
    match word.contains(['(', ')']) {
        true => Cow::Owned(word.replace('(', "-LRB-").replace(')', "-RRB-")),
        false => Cow::Borrowed(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelFeatures;
    use maxmargin::data::bracketed;

    fn loaded(text: &str) -> Loaded {
        read("t", text.as_bytes(), &ReadOptions::default()).expect("reads")
    }

    /// The trees that were read, printed.
    fn printed(loaded: &Loaded) -> Vec<String> {
        let words = loaded.facts.words.as_ref().expect("words");
        let line = |rows: std::ops::Range<usize>| {
            let parts: Vec<(String, String)> =
                rows.map(|row| (loaded.data.targets().label_of(row), words.get(row).into_owned())).collect();
            bracketed(parts.iter().map(|(piece, word)| (piece.as_str(), word.as_str())))
        };
        loaded.data.groups().expect("sentences").ranges().map(line).collect()
    }

    #[test]
    fn traces_function_tags_and_tops_are_left_out() {
        let text = "( (S \n  (NP-SBJ-1 (DT The) (NN dog) )\n (VP (VBD was) (VP (VBN seen)\n (NP (-NONE- *-1))))\n\
                    (. .)) )\n(ROOT (NP|NX=2 (-LRB- -LRB-) (NN x)))  (S1 (NN y))\n( (X (A a)) (B b) )";
        assert_eq!(
            printed(&loaded(text)),
            [
                "(S (NP (DT The) (NN dog)) (VP (VBD was) (VP (VBN seen))) (. .))",
                "(NP (-LRB- -LRB-) (NN x))",
                "(NN y)",
                "(TOP (X (A a)) (B b))",
            ]
        );
    }

    #[test]
    fn printing_reads_back_as_itself() {
        let text = "(S (S (A a)) (S (S (B (C b)) (D d) (-LRB- -LRB-)) (E ü*)) (F f))\n(N n)\n(TOP (A a) (B b))";
        let first = printed(&loaded(text));
        assert_eq!(first.join("\n"), text);
        let spread = text.replace(' ', "\n\t ").replace(')', " )");
        assert_eq!(printed(&loaded(&spread)), first);
    }

    #[test]
    fn empty_and_long_sentences_are_counted() {
        let text = "()\n(S (A a))\n(())\n( (S (-NONE- *)) )\n(S (A a) (B b) (C c))\n(A a)\n";
        let all = loaded(text);
        assert_eq!(all.facts.blank_lines.as_deref(), Some(&[1, 2, 0, 0][..]));
        assert!(all.facts.notes[0].starts_with("3 empty sentences"), "{:?}", all.facts.notes);
        let short = ReadOptions { max_words: Some(2), ..ReadOptions::default() };
        let short = read("t", text.as_bytes(), &short).expect("reads");
        assert_eq!(short.facts.blank_lines.as_deref(), Some(&[1, 3, 0][..]));
        assert_eq!(short.facts.notes[1], "1 sentence with more than 2 words left out");
        let names: Vec<String> = short.data.groups().expect("groups").names().iter().map(Into::into).collect();
        assert_eq!(names, ["2", "6"]);
        for (text, most) in [("", None), (" \n\n", None), ("()", None), ("(S (A a) (B b))", Some(1))] {
            let options = ReadOptions { max_words: most, ..ReadOptions::default() };
            assert_eq!(read("t", text.as_bytes(), &options).expect_err("no rows").code(), Code::NoRows, "{text}");
        }
    }

    #[test]
    fn plain_sentences_are_for_models_alone() {
        let text = "The dog barks .\n\n  a (b) \n";
        let error = read("t", text.as_bytes(), &ReadOptions::default()).expect_err("no trees");
        assert_eq!(error.code(), Code::BadTree);
        let known = ModelFeatures { count: 1, names: Some(vec!["word=dog".to_string()]), index_base: None };
        let scored = ReadOptions { features: Some(known), ..ReadOptions::default() };
        let plain = read("t", text.as_bytes(), &scored).expect("reads");
        let words: Vec<String> = plain.facts.words.as_ref().expect("words").iter().map(Into::into).collect();
        assert_eq!(words, ["The", "dog", "barks", ".", "a", "-LRB-b-RRB-"]);
        assert_eq!(plain.data.groups().expect("sentences").starts(), &[0, 4, 6]);
        assert_eq!(plain.facts.blank_lines.as_deref(), Some(&[0, 1, 0][..]));
        assert!(matches!(plain.data.targets(), maxmargin::data::Targets::Absent));
        assert_eq!(read("t", b"(S (NN dog))", &scored).expect("reads").data.cols(), 1);
    }

    #[test]
    fn brackets_that_do_not_fit_are_refused_with_their_place() {
        for (text, line, column, token, words) in [
            ("(S (A a)\n(B b)", 1, 1, "(S", "not closed"),
            ("(S (A a)))\n", 1, 10, ")", "closes nothing"),
            ("(S (A a))\n x (B b)", 2, 2, "x", "outside of brackets"),
            ("(S (A a) b)", 1, 10, "b", "no bracket of its own"),
            ("(A a b)", 1, 6, "b", "no bracket of its own"),
            ("(A a (B b))", 1, 6, "(B", "after the word `a`"),
            ("(S (A a) (B))", 1, 10, "(B", "holds no word"),
            ("(S ((A a)) (B b))", 1, 4, "(", "without a label"),
            ("( (S (A a)\n( (S (B b)) )", 2, 1, "(", "without a label"),
            ("(((A a)))", 1, 2, "(", "without a label"),
            ("(ö ö ö)", 1, 8, "ö", "no bracket of its own"),
        ] {
            let error = read("t.mrg", text.as_bytes(), &ReadOptions::default()).expect_err(text);
            let place = error.place().expect("a place");
            assert_eq!(
                (error.code(), place.line, place.column),
                (Code::BadTree, Some(line), Some(column)),
                "{text}: {error}"
            );
            let excerpt = place.excerpt.as_ref().expect("an excerpt");
            let marked: String = excerpt.text.chars().skip(excerpt.start).take(excerpt.length).collect();
            assert_eq!(marked, token, "{text}");
            assert!(error.message().contains(words), "{text}: {error}");
        }
        let error = read("t", b"(S (A \xff))", &ReadOptions::default()).expect_err("bytes");
        assert_eq!(error.code(), Code::NotText);
        let deep = "(A ".repeat(DEEPEST + 1);
        assert!(read("t", deep.as_bytes(), &ReadOptions::default()).expect_err("deep").to_string().contains("10000"));
    }
}
