//! The command as a user types it: one binary of tests, one module a behaviour.

mod approximate;
mod bad_input;
mod compare;
mod convert;
mod demo;
mod disk_full;
mod evaluate;
mod explain;
mod features;
mod interrupt;
mod invariance;
mod kernels;
mod learn;
mod memory;
mod model_file;
mod output;
mod pairs;
mod predict;
mod real_data;
mod settings;
mod stochastic;
mod tables;
mod train;
mod tune;
mod usage;
mod workbench;
