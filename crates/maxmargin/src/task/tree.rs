//! Trees: the settings, and what is known before there are data. The problem is in `structured/tree.rs`.

use super::{Abilities, Input, Profile, is_default};
use crate::certificate::{Decoder, Markov};
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::structured::{LossScale, Trees};
use crate::wish::{LEARNING, Regularisation, Setting, Value, Wish};
use serde::{Deserialize, Serialize};

/// The settings of trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TreeSettings {
    /// How the loss of a tree grows with its length.
    pub loss_scale: LossScale,
    /// How many of the last parts of a phrase an intermediate symbol of the grammar remembers.
    pub siblings: u32,
    /// Whether phrases with different parents have different symbols in the grammar.
    #[serde(skip_serializing_if = "is_default")]
    pub parents: bool,
}

impl Default for TreeSettings {
    fn default() -> TreeSettings {
        TreeSettings { loss_scale: LossScale::default(), siblings: 1, parents: false }
    }
}

/// `tree`
pub(super) const PROFILE: Profile = Profile {
    name: "tree",
    about: "Parse sentences: bracketed trees by a weighted context-free grammar",
    settings: &[
        Setting {
            name: "loss-scale",
            heading: LEARNING,
            aliases: &[],
            help: "The loss of a tree: `token`, the number of wrong and missing phrases and wrong tags, or `length`, this \
                   divided by the number of words [default: token]",
            placeholder: "",
            value: Value::Name(|| LossScale::ALL.map(LossScale::name).to_vec()),
            place: "task.loss-scale",
        },
        Setting {
            name: "siblings",
            heading: LEARNING,
            aliases: &[],
            help: "How many of the last parts of a phrase the grammar remembers when it continues the phrase [default: 1]",
            placeholder: "N",
            value: Value::Whole(0, 99),
            place: "task.siblings",
        },
        Setting {
            name: "parents",
            heading: LEARNING,
            aliases: &[],
            help: "Tell phrases with different parents apart in the grammar",
            placeholder: "",
            value: Value::Switch,
            place: "task.parents",
        },
    ],
    without: &["loss", "nu", "polish", "budget"],
    loss: Loss::Hinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Sentences,
    streamed: &[],
    untunable: None,
};

impl TreeSettings {
    /// How the grammar is read off trees.
    pub fn markov(&self) -> Markov {
        Markov { siblings: self.siblings as usize, parents: self.parents }
    }

    /// Refuses other losses than the hinge.
    pub(super) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if wish.loss != Loss::Hinge {
            return bad("trees take the hinge loss", "leave ⟦loss⟧ out");
        }
        if wish.regularisation.is_nu() {
            return bad("trees have no ⟦nu⟧", "use ⟦c⟧ or ⟦lambda⟧ instead");
        }
        Ok(())
    }

    /// The meaning of the scores, with all shared weights at zero.
    pub(super) fn decoder(&self, data: &Dataset) -> Result<Decoder> {
        let trees = Trees::on(data, self.markov(), self.loss_scale, None)?;
        let grammar = Box::new(trees.grammar().clone());
        let shared = vec![0.0; grammar.shared()];
        Ok(Decoder::Tree { grammar, shared })
    }

    /// Whether a model of this task has such a decoder and intercepts.
    pub(super) fn makes(&self, decoder: &Decoder, intercepts: usize) -> bool {
        let Decoder::Tree { grammar, shared } = decoder else { return false };
        grammar.shared() == shared.len() && intercepts == 0 && shared.iter().all(|weight| weight.is_finite())
    }

    /// What it offers to solvers.
    pub(super) fn abilities(&self) -> Abilities {
        Abilities::STRUCTURED
    }
}
