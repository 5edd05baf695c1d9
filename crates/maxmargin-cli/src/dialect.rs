//! References to settings and inputs in the words of the command: flags.

use maxmargin::wording::Dialect;

/// Names settings as flags: `--solver`, `--loss squared-hinge`, `-c`.
pub(crate) struct Flags;

impl Dialect for Flags {
    fn reference(&self, name: &str, value: Option<&str>) -> String {
        // The one flag of a single letter.
        let flag = if name == "c" { "-c".to_string() } else { format!("--{name}") };
        match value {
            Some(value) => format!("{flag} {value}"),
            None => flag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use clap::{Command, CommandFactory};
    use maxmargin::wording::{NAMES, render};

    fn flags_of(command: &Command, all: &mut Vec<String>) {
        for arg in command.get_arguments() {
            all.extend(arg.get_long().map(|long| format!("--{long}")));
            all.extend(arg.get_short().map(|short| format!("-{short}")));
        }
        command.get_subcommands().for_each(|command| flags_of(command, all));
    }

    #[test]
    fn every_name_is_a_flag_of_some_command() {
        let mut all = Vec::new();
        flags_of(&Arguments::command(), &mut all);
        // Oracles are code of the user, which the command cannot train.
        for name in NAMES.iter().filter(|name| **name != "rescale") {
            let flag = Flags.reference(name, None);
            assert!(all.contains(&flag), "{flag} is no flag");
        }
    }

    #[test]
    fn references_are_flags_as_they_are_typed() {
        let text = "add ⟦loss=squared-hinge⟧ and ⟦ignore='a b'⟧, or leave ⟦c⟧ out";
        assert_eq!(render(text, &Flags), "add --loss squared-hinge and --ignore 'a b', or leave -c out");
    }
}
