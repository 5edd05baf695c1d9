//! The settings of a comparison.

use crate::certificate::Decoder;
use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::kernel::KernelSettings;
use crate::loss::Loss;
use crate::task::weight_as::{PAIR_WEIGHT_AS, WeightAs, as_for_pairs};
use crate::task::{Abilities, Input, Profile, is_default};
use crate::wish::{
    Intercept, LEARNING, Range, Regularisation, STREAM_EARLY_STOPPING, STREAM_JUDGE_EVERY, STREAM_SCALE, Setting,
    Solver, Value, Wish,
};
use serde::{Deserialize, Serialize};

/// How to learn from comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Ties are data: the scores and the threshold for ties are learned together.
    #[default]
    Compare,
    /// Ties are not used to learn the scores.
    Rank,
    /// A tie counts as two pairs, one in each direction; decided pairs count twice.
    Rank2,
    /// Elo ratings.
    Elo,
    /// Glicko ratings with deviations.
    Glicko,
    /// Bradley–Terry strengths, with Davidson's ties.
    BradleyTerry,
    /// TrueSkill with a draw margin.
    Trueskill,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 7] = [
        Method::Compare,
        Method::Rank,
        Method::Rank2,
        Method::Elo,
        Method::Glicko,
        Method::BradleyTerry,
        Method::Trueskill,
    ];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Method::Compare => "compare",
            Method::Rank => "rank",
            Method::Rank2 => "rank2",
            Method::Elo => "elo",
            Method::Glicko => "glicko",
            Method::BradleyTerry => "bradley-terry",
            Method::Trueskill => "trueskill",
        }
    }

    /// Whether it rates items without using features.
    pub fn is_rating(self) -> bool {
        matches!(self, Method::Elo | Method::Glicko | Method::BradleyTerry | Method::Trueskill)
    }
}

/// The settings of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CompareSettings {
    /// How to learn from comparisons.
    #[serde(skip_serializing_if = "is_default")]
    pub method: Method,
    /// The threshold for ties, if it is learned together with the scores.
    pub threshold: Intercept,
    /// How the weights of explicit pairs are used.
    #[serde(
        rename = "pair-weight-as",
        alias = "weight-as",
        serialize_with = "as_for_pairs",
        skip_serializing_if = "is_default"
    )]
    pub weight_as: WeightAs,
    /// Whether to compare all pairs of graded rows within queries, with equal grades as ties.
    #[serde(skip_serializing_if = "is_default")]
    pub ties_from_grades: bool,
    /// For passive-aggressive steps over a stream: κ, how easily the threshold moves compared with the weights. With 0
    /// it stays.
    #[serde(skip_serializing_if = "is_usual_kappa")]
    pub kappa: f64,
}

/// The default κ.
const USUAL_KAPPA: f64 = 1.0;

fn is_usual_kappa(kappa: &f64) -> bool {
    *kappa == USUAL_KAPPA
}

impl Default for CompareSettings {
    fn default() -> CompareSettings {
        CompareSettings {
            method: Method::Compare,
            threshold: Intercept::Free,
            weight_as: WeightAs::Slack,
            ties_from_grades: false,
            kappa: USUAL_KAPPA,
        }
    }
}

/// `compare`
pub(in crate::task) const PROFILE: Profile = Profile {
    name: "compare",
    about: "Predict which of two items is better, or that they tie",
    settings: &[
        Setting {
            name: "method",
            heading: LEARNING,
            aliases: &[],
            help: "How to learn from comparisons: with ties as data, without ties, with each tie as two contradictory \
                   pairs, or by ratings [default: compare]",
            placeholder: "",
            value: Value::Name(|| Method::ALL.map(Method::name).to_vec()),
            place: "task.method",
        },
        Setting {
            name: "threshold",
            heading: LEARNING,
            // Its earlier name.
            aliases: &["intercept"],
            help: "Whether the threshold for ties is a free variable or penalised like a weight [default: free]",
            placeholder: "",
            value: Value::Name(|| vec![Intercept::Free.name(), Intercept::Penalised.name()]),
            place: "task.threshold",
        },
        Setting {
            name: "ties-from-grades",
            heading: LEARNING,
            aliases: &[],
            help: "Learn from all pairs of graded rows within each query, equal grades being ties",
            placeholder: "",
            value: Value::Switch,
            place: "task.ties-from-grades",
        },
        PAIR_WEIGHT_AS,
    ],
    without: &["nu"],
    loss: Loss::Hinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Compared,
    streamed: &STREAMED,
    untunable: None,
};

/// The settings for learning comparisons from a stream.
const STREAMED: [Setting; 9] = [
    Setting {
        name: "solver",
        heading: LEARNING,
        aliases: &[],
        help: "How to step: passive-aggressive needs no rate and works with features of any size [default: \
               passive-aggressive]",
        placeholder: "",
        value: Value::Name(|| [Solver::PassiveAggressive, Solver::Sgd, Solver::AveragedSgd].map(Solver::name).to_vec()),
        place: "solver",
    },
    Setting {
        name: "loss",
        heading: LEARNING,
        aliases: &[],
        help: "What a missed margin costs; logistic is for sgd and averaged-sgd [default: hinge]",
        placeholder: "",
        value: Value::Name(|| Loss::ALL.map(Loss::name).to_vec()),
        place: "loss",
    },
    Setting {
        name: "c",
        heading: LEARNING,
        aliases: &[],
        help: "The most that one pair may move the weights: the aggressiveness of passive-aggressive steps [default: \
               0.1]",
        placeholder: "C",
        value: Value::Number(Range::Positive),
        place: "regularisation.(c)",
    },
    Setting {
        name: "kappa",
        heading: LEARNING,
        aliases: &[],
        help: "How strongly passive-aggressive steps move the threshold; 0 keeps it fixed [default: 1]",
        placeholder: "K",
        value: Value::Number(Range::NotNegative),
        place: "task.kappa",
    },
    Setting {
        name: "lambda",
        heading: LEARNING,
        aliases: &[],
        help: "The strength of regularisation, for sgd and averaged-sgd [default: 1e-4]",
        placeholder: "L",
        value: Value::Number(Range::Positive),
        place: "regularisation.(lambda)",
    },
    Setting {
        name: "rate",
        heading: LEARNING,
        aliases: &[],
        help: "The first rate E of sgd and averaged-sgd, which falls like E/(1 + lambda·E·t) [default: 0.1]",
        placeholder: "E",
        value: Value::Number(Range::Positive),
        place: "stochastic.rate",
    },
    STREAM_SCALE,
    STREAM_EARLY_STOPPING,
    STREAM_JUDGE_EVERY,
];

impl CompareSettings {
    /// Whether scores and threshold are learned together.
    pub fn learns_threshold(&self) -> bool {
        self.method == Method::Compare
    }

    /// The rule for the free scalar. Methods that choose their threshold after the scores have no free scalar.
    pub(in crate::task) fn free(&self) -> Intercept {
        if self.learns_threshold() { self.threshold } else { Intercept::None }
    }

    /// Refuses settings that do not fit the method.
    pub(in crate::task) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let (name, learns) = (self.method.name(), self.learns_threshold());
        if wish.solver == Solver::LinearProgram && !learns {
            return bad(
                "the linear program is for comparisons with a threshold".to_string(),
                "use ⟦solver=quadratic-program⟧ for a hard margin, or `train compare`",
            );
        }
        if wish.solver == Solver::LinearProgram && self.threshold == Intercept::Penalised {
            return bad("the linear program holds the threshold at 1".to_string(), "leave ⟦threshold⟧ out");
        }
        if self.ties_from_grades && !learns {
            return bad(
                "⟦ties-from-grades⟧ learns scores together with the threshold for ties".to_string(),
                "use `train compare` without ⟦method⟧, or leave ⟦ties-from-grades⟧ out",
            );
        }
        if self.ties_from_grades && self.weight_as == WeightAs::Margin {
            return bad(
                "these rows are graded: each pair has the weights of two rows, and a margin takes one".to_string(),
                "leave ⟦weight-as⟧ out; rows may have weights, and the weight of a pair is their product",
            );
        }
        self.weight_as.refuse(wish.loss, false)?;
        if !learns && self.threshold == Intercept::Penalised {
            return bad(
                format!("`{name}` finds its threshold after the scores, and does not penalise it"),
                "leave ⟦threshold⟧ out",
            );
        }
        if self.threshold == Intercept::None {
            return bad(
                "a comparison without a threshold cannot predict ties".to_string(),
                "leave ⟦threshold⟧ out, or use ⟦method=rank⟧",
            );
        }
        if self.threshold == Intercept::Penalised && wish.loss == Loss::Logistic {
            return bad(
                "the logistic loss keeps the threshold above zero by itself".to_string(),
                "leave ⟦threshold⟧ out, or use ⟦loss=hinge⟧ or squared-hinge",
            );
        }
        if self.threshold == Intercept::Penalised && (wish.kernel.is_exact() || wish.solver.is_kernel_dual()) {
            return bad("with a kernel the threshold is always free".to_string(), "leave ⟦threshold⟧ out, or ⟦kernel⟧");
        }
        if wish.regularisation.is_nu() {
            return bad("⟦nu⟧ is for classifiers and rankers".to_string(), "use ⟦c⟧ instead");
        }
        if self.method.is_rating() {
            self.refuse_beside_ratings(wish)?;
        }
        if self.kappa != USUAL_KAPPA && wish.solver != Solver::PassiveAggressive {
            return bad(
                format!("⟦kappa⟧ is for passive-aggressive steps, and the solver is `{}`", wish.solver.name()),
                "leave ⟦kappa⟧ or ⟦solver⟧ out",
            );
        }
        Ok(())
    }

    /// Refuses settings that have no effect on rating methods, which use the games and no features.
    fn refuse_beside_ratings(&self, wish: &Wish<'_>) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let name = self.method.name();
        if wish.loss != Loss::Hinge || self.weight_as != WeightAs::Slack {
            return bad(
                format!("`{name}` has neither a loss nor margins to choose"),
                "leave ⟦loss⟧ and ⟦weight-as⟧ out, or use ⟦method=compare⟧",
            );
        }
        let costs = matches!(wish.regularisation, Regularisation::C(c) if c == 1.0);
        if self.method != Method::BradleyTerry && !costs {
            return bad(format!("`{name}` has no C"), "leave ⟦c⟧ and ⟦lambda⟧ out");
        }
        if wish.solver != Solver::Auto
            || wish.hard
            || *wish.kernel != KernelSettings::default()
            || wish.scale != Scale::None
        {
            return bad(
                format!("`{name}` rates items by the outcomes of their pairs, and uses neither features nor solvers"),
                "leave ⟦margin⟧, ⟦solver⟧, ⟦kernel⟧ and ⟦scale⟧ out, or use ⟦method=compare⟧",
            );
        }
        Ok(())
    }

    /// Whether a model of this task has such a decoder and intercept.
    pub(in crate::task) fn makes(&self, decoder: &Decoder, intercept: Option<f64>) -> bool {
        matches!(decoder, Decoder::Compare { .. } | Decoder::Likelihood { .. }) && intercept.is_none()
    }

    /// Explicit pairs are listed. All pairs of graded rows are neither listed nor drawn, and have no kernel. With the
    /// logistic loss, a barrier keeps the threshold above zero.
    pub(in crate::task) fn abilities(&self, loss: Loss, pairs: bool) -> Abilities {
        let form = if pairs && !self.ties_from_grades { Abilities::LISTED } else { Abilities::SUMMED };
        Abilities {
            drawn: !self.ties_from_grades,
            kernel: !self.ties_from_grades,
            barrier: loss == Loss::Logistic && self.learns_threshold(),
            threshold: true,
            ..form
        }
    }
}
