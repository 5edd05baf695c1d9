//! Behaviour of the library from the user's point of view.
#![allow(clippy::unwrap_used, missing_docs)] // tests

mod approximate;
mod class_blocks;
mod classes;
mod codes;
mod combinations;
mod comparisons;
mod conformance;
mod determinism;
mod extremes;
mod golden;
mod graded_comparisons;
mod hard_cases;
mod hard_margin;
mod joint_hard_margin;
mod kernel_classes;
mod kernels;
mod made;
mod model_file;
mod nu;
mod online;
mod online_kernels;
mod optimum;
mod ordinal;
mod own_kernels;
mod own_task;
mod pairs;
mod partitions;
mod polish;
mod probabilities;
mod progress;
mod ratings;
mod several;
mod stochastic;
mod weight_as;
mod weights;
