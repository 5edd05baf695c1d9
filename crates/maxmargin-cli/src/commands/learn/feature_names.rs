//! The names of the features of a stream.

use maxmargin::data::{Dataset, Names};
use maxmargin::model::Model;

/// The names of the features. Items without features get their columns in the order in which the stream names them.
pub(super) struct FeatureNames {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl FeatureNames {
    /// Those of a model to continue from, if there is one.
    pub(super) fn of(model: Option<&Model>) -> FeatureNames {
        let names = model.and_then(|model| model.feature_names.as_ref());
        let (bytes, ends) = names.map(|names| names.parts()).unwrap_or_default();
        FeatureNames { bytes: bytes.to_vec(), ends: ends.to_vec() }
    }

    /// Adds the names of a block: those of its columns, or of the items that appear in it for the first time.
    pub(super) fn take(&mut self, data: &Dataset, own: bool) {
        match (data.feature_names(), data.row_ids()) {
            (Some(names), _) if self.ends.is_empty() => {
                let (bytes, ends) = names.parts();
                (self.bytes, self.ends) = (bytes.to_vec(), ends.to_vec());
            }
            (None, Some(ids)) if own => {
                for row in 0..data.rows() {
                    data.matrix().each_in_row(row, |column, _| {
                        if column == self.ends.len() {
                            self.bytes.extend_from_slice(ids.get_bytes(row));
                            self.ends.push(self.bytes.len() as u64);
                        }
                    });
                }
            }
            _ => {}
        }
    }

    /// All names, if every feature has one.
    pub(super) fn names(&self, features: usize) -> Option<Names> {
        (features > 0 && self.ends.len() == features)
            .then(|| Names::from_parts(self.bytes.clone().into(), self.ends.clone().into()))
    }
}
