//! Sequences: the settings, and what is known before there are data. The problem is in
//! `structured/sequence.rs`.

use super::{Abilities, Input, Profile};
use crate::certificate::{Chain, Decoder};
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::structured::{LossScale, tags_of};
use crate::wish::{LEARNING, Regularisation, Setting, Value, Wish};
use serde::{Deserialize, Serialize};

/// The settings of sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SequenceSettings {
    /// How the loss of a sequence grows with its length.
    pub loss_scale: LossScale,
}

/// `sequence`
pub(super) const PROFILE: Profile = Profile {
    name: "sequence",
    about: "Tag the rows of sequences, such as the words of sentences",
    settings: &[Setting {
        name: "loss-scale",
        heading: LEARNING,
        aliases: &[],
        help: "The loss of a sequence: `token`, the number of wrong tags, or `length`, their share [default: token]",
        placeholder: "",
        value: Value::Name(|| LossScale::ALL.map(LossScale::name).to_vec()),
        place: "task.loss-scale",
    }],
    without: &["loss", "nu", "polish", "budget"],
    loss: Loss::Hinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Rows,
    streamed: &[],
    untunable: None,
};

impl SequenceSettings {
    /// Refuses other losses than the hinge.
    pub(super) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if wish.loss != Loss::Hinge {
            return bad("sequences take the hinge loss", "leave ⟦loss⟧ out");
        }
        if wish.regularisation.is_nu() {
            return bad("sequences have no ⟦nu⟧", "use ⟦c⟧ or ⟦lambda⟧ instead");
        }
        Ok(())
    }

    /// The meaning of the scores, with all shared weights at zero.
    pub(super) fn decoder(&self, data: &Dataset) -> Result<Decoder> {
        let tags = tags_of(data)?;
        let shared = vec![0.0; Chain { tags: tags.len() }.shared()];
        Ok(Decoder::Sequence { tags, shared })
    }

    /// Whether a model of this task has such a decoder and intercepts.
    pub(super) fn makes(&self, decoder: &Decoder, intercepts: usize) -> bool {
        let Decoder::Sequence { tags, shared } = decoder else { return false };
        let whole = tags.len() > 1 && Chain { tags: tags.len() }.shared() == shared.len();
        whole && intercepts == 0 && shared.iter().all(|weight| weight.is_finite())
    }

    /// What it offers to solvers.
    pub(super) fn abilities(&self) -> Abilities {
        Abilities::STRUCTURED
    }
}
