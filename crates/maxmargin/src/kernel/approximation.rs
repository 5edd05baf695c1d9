//! [`Approximation`]: which feature map approximates a kernel, and its size.

use super::KernelKind;
use crate::error::{Code, Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A map to features whose inner products approximate those of a kernel: every linear solver can then learn from the
/// mapped rows. Written `nystrom:1000` or `fourier:2000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approximation {
    /// Kernel values with random rows, the landmarks, transformed so that their inner products are those of the kernel.
    Nystrom {
        /// How many rows are drawn; all rows if there are fewer.
        landmarks: u32,
    },
    /// Cosines and sines of random frequencies, for the Gaussian kernel.
    Fourier {
        /// How many features, two per frequency.
        features: u32,
    },
}

/// The default sizes.
const USUAL_LANDMARKS: u32 = 1000;
const USUAL_FEATURES: u32 = 2000;

/// The factor of this many landmarks takes 3.2 GB.
pub(crate) const MOST_LANDMARKS: u32 = 20_000;
pub(crate) const MOST_FEATURES: u32 = 1 << 17;

const EXAMPLE: &str = "write ⟦approximate=nystrom:1000⟧ or ⟦approximate=fourier:2000⟧";

impl Approximation {
    /// The maximum number of features of a mapped row. There are fewer if landmarks are dependent or rows are few.
    pub fn features(self) -> usize {
        match self {
            Approximation::Nystrom { landmarks } => landmarks as usize,
            // Two features per frequency.
            Approximation::Fourier { features } => (features as usize).next_multiple_of(2),
        }
    }

    /// Refuses sizes outside their range, and kernels that the map does not support.
    pub(super) fn validate(self, kind: KernelKind) -> Result<()> {
        let (size, most, what) = match self {
            Approximation::Nystrom { landmarks } => (landmarks, MOST_LANDMARKS, "landmarks"),
            Approximation::Fourier { features } => (features, MOST_FEATURES, "features"),
        };
        if size == 0 || size > most {
            return Err(Error::new(
                Code::BadSetting,
                format!("⟦approximate={self}⟧ asks for {size} {what}, and must ask for 1 to {most}"),
            )
            .help(EXAMPLE));
        }
        match (self, kind) {
            (_, KernelKind::Linear) => {
                Err(Error::new(Code::BadSetting, format!("⟦approximate={self}⟧ needs a kernel to approximate"))
                    .help("add ⟦kernel=gaussian⟧, or leave ⟦approximate⟧ out"))
            }
            (_, KernelKind::Precomputed | KernelKind::Custom) => {
                Err(Error::new(Code::BadSetting, format!("the {} kernel is never approximated", kind.name()))
                    .help("leave ⟦approximate⟧ out, or use ⟦kernel=gaussian⟧"))
            }
            (Approximation::Fourier { .. }, kind) if kind != KernelKind::Gaussian => Err(Error::new(
                Code::BadSetting,
                format!("fourier approximates the gaussian kernel, and the kernel is `{}`", kind.name()),
            )
            .help("use ⟦approximate=nystrom:1000⟧, which takes every kernel, or ⟦kernel=gaussian⟧")),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Approximation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Approximation::Nystrom { landmarks } => write!(f, "nystrom:{landmarks}"),
            Approximation::Fourier { features } => write!(f, "fourier:{features}"),
        }
    }
}

impl FromStr for Approximation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Approximation> {
        let (name, size) = match text.split_once(':') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        let size = size
            .map(|size| {
                size.parse::<u32>().map_err(|_| {
                    Error::new(
                        Code::BadSetting,
                        format!("`{size}` in `{text}` is not a whole number below 4,294,967,296, as in nystrom:1000"),
                    )
                    .help(EXAMPLE)
                })
            })
            .transpose()?;
        match name {
            "nystrom" => Ok(Approximation::Nystrom { landmarks: size.unwrap_or(USUAL_LANDMARKS) }),
            "fourier" => Ok(Approximation::Fourier { features: size.unwrap_or(USUAL_FEATURES) }),
            _ => Err(Error::new(
                Code::BadSetting,
                format!("`{text}` is neither nystrom:M nor fourier:D with a whole number"),
            )
            .help(EXAMPLE)),
        }
    }
}

impl Serialize for Approximation {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Approximation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Approximation, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approximations_are_read_as_they_are_printed() {
        for (text, printed) in [
            ("nystrom", "nystrom:1000"),
            ("nystrom:7", "nystrom:7"),
            ("fourier", "fourier:2000"),
            ("fourier:3", "fourier:3"),
        ] {
            let parsed: Approximation = text.parse().expect("valid");
            assert_eq!(parsed.to_string(), printed);
            let json = serde_json::to_string(&parsed).expect("JSON");
            assert_eq!(json, format!("\"{printed}\""));
            assert_eq!(serde_json::from_str::<Approximation>(&json).expect("JSON"), parsed);
        }
        for text in ["", "nystrom:", "nystrom:-1", "nystrom:1e3", "fourier:99999999999", "taylor", "Nystrom:5"] {
            let error = text.parse::<Approximation>().expect_err("refused");
            assert_eq!(error.code(), Code::BadSetting, "{text}");
        }
        assert_eq!(Approximation::Fourier { features: 3 }.features(), 4);
    }

    #[test]
    fn sizes_and_kernels_that_do_not_fit_are_refused() {
        let refused = |text: &str, kind: KernelKind| {
            let approximation: Approximation = text.parse().expect("valid");
            approximation.validate(kind).expect_err("refused").remedy().expect("advised").to_string()
        };
        for text in ["nystrom:0", "nystrom:20001", "fourier:0", "fourier:4000000000"] {
            assert!(refused(text, KernelKind::Gaussian).contains("nystrom:1000"));
        }
        assert!(refused("nystrom", KernelKind::Linear).contains("`kernel = \"gaussian\"`"));
        assert!(refused("fourier", KernelKind::Polynomial).contains("nystrom"));
    }
}
