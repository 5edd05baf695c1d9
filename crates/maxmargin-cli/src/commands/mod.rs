//! One file per command.

pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod features;
pub(crate) mod inspect;
pub(crate) mod learn;
pub(crate) mod predict;
pub(crate) mod preferences;
pub(crate) mod rank_items;
pub(crate) mod reproduce;
pub(crate) mod simulate;
pub(crate) mod simulate_clicks;
pub(crate) mod train;
pub(crate) mod tune;
pub(crate) mod verify;
