use super::*;
use crate::data::Labels;
use proptest::prelude::*;

fn labels(count: usize) -> Labels {
    Labels::new((0..count).map(|class| class.to_string()).collect())
}

fn matrix(rows: &[&[i8]]) -> OutputCode {
    OutputCode::Matrix(CodeMatrix::new(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>()).expect("a matrix"))
}

/// The same code with its entries written out.
fn written_out(code: &OutputCode) -> OutputCode {
    let row = |class| (0..code.columns()).map(|column| code.entry(class, column)).collect();
    let rows: Vec<Vec<i8>> = (0..code.classes()).map(row).collect();
    OutputCode::Matrix(CodeMatrix::new(&rows).expect("a matrix"))
}

fn separation_by_sums(code: &OutputCode) -> f64 {
    let mut least = f64::INFINITY;
    for a in 0..code.classes() {
        for b in 0..a {
            let terms = (0..code.columns()).map(|j| f64::from(1 - code.entry(a, j) * code.entry(b, j)) / 2.0);
            let distance = terms.sum();
            assert_eq!(code.distance(a, b), distance);
            least = least.min(distance);
        }
    }
    least
}

#[test]
fn the_matrices_of_the_lecture_have_their_separation() {
    let three = matrix(&[&[-1, -1, 0], &[1, 0, -1], &[-1, 1, 0], &[1, 0, 1]]);
    assert_eq!((three.separation(), separation_by_sums(&three)), (1.5, 1.5));
    let rows = [&[1, 1, 1, 0, 0, 0][..], &[-1, 0, 0, 1, 1, 0], &[0, -1, 0, -1, 0, 1], &[0, 0, -1, 0, -1, -1]];
    let six = matrix(&rows);
    assert_eq!((six.separation(), separation_by_sums(&six)), (3.5, 3.5));
    assert_eq!(written_out(&OutputCode::OneVsOne { classes: 4 }), six);
    let all = matrix(&[&[1, -1, -1, -1], &[-1, 1, -1, -1], &[-1, -1, 1, -1], &[-1, -1, -1, 1]]);
    assert_eq!(written_out(&OutputCode::OneVsRest { classes: 4 }), all);
    assert_eq!(all.separation(), 2.0);
}

#[test]
fn the_regular_codes_are_their_matrices() {
    for classes in [2, 3, 5, 12, 40] {
        for code in [OutputCode::OneVsRest { classes }, OutputCode::OneVsOne { classes }] {
            let whole = written_out(&code);
            assert_eq!((code.classes(), code.columns()), (whole.classes(), whole.columns()));
            assert_eq!(code.separation(), separation_by_sums(&whole));
            for column in 0..code.columns() {
                let members = |code: &OutputCode| {
                    let mut members = Vec::new();
                    code.each_in_column(column, |class, side| members.push((class, side)));
                    members
                };
                assert_eq!(members(&code), members(&whole));
                assert_eq!(code.leaves_out(column), whole.leaves_out(column));
            }
            separation_by_sums(&code);
        }
    }
    let mut column = 0;
    for first in 0..1000 {
        for second in first + 1..1000 {
            assert_eq!(pair(1000, column), (first, second));
            column += 1;
        }
    }
}

#[test]
fn codes_that_are_made_have_the_separation_they_promise() {
    for classes in 2..=10 {
        let code = CodeChoice::Exhaustive.build(&labels(classes), 0).expect("few classes");
        assert_eq!(code.columns(), (1 << (classes - 1)) - 1);
        assert_eq!(code.separation(), (1 << (classes - 2)) as f64);
        assert!(code.repeated_columns().is_empty());
    }
    assert_eq!(CodeChoice::Exhaustive.build(&labels(15), 0).expect_err("too many").code(), Code::BadSetting);
    for classes in [2, 3, 4, 7, 10, 26, 100] {
        for choice in ["random-dense", "random-sparse", "bch", "bch:20", "random-dense:20", "random-sparse:40"] {
            let choice: CodeChoice = choice.parse().expect("a name");
            let code = choice.build(&labels(classes), 3).expect("a code");
            let OutputCode::Matrix(made) = &code else { panic!("a matrix") };
            made.check(|class| class.to_string()).expect("every column asks something");
            assert_eq!(code.separation(), separation_by_sums(&code));
            assert!(code.separation() > 0.0, "{choice} {classes}");
            assert_eq!(code, choice.build(&labels(classes), 3).expect("the same"));
            let text = serde_json::to_string(&code).expect("JSON");
            assert_eq!(serde_json::from_str::<OutputCode>(&text).expect("JSON"), code);
        }
    }
    // 63 places, messages of at least 5 bits: the code (63, 7, 31).
    let code = CodeChoice::Bch(None).build(&labels(26), 0).expect("a code");
    assert!(code.columns() == 63 && code.separation() >= 31.0 - 2.0, "{}", code.separation());
    let few = CodeChoice::RandomDense(Some(3)).build(&labels(10), 0).expect_err("three bits for ten classes");
    assert!(few.to_string().contains("10 classes"), "{few}");
}

#[test]
fn codes_that_tell_nothing_apart_are_refused_by_name() {
    let refused = |text: &str| NamedCode::parse(text).expect_err("refused").to_string();
    assert!(refused("a,1,-1\nb,-1,1\nc,1,-1\n").contains("`a` and `c`"));
    assert!(refused("a,1,0,1\nb,-1,0,1\n").contains("column 2"));
    let one = refused("a,1,1\nb,-1,0\nc,0,1\n");
    assert!(one.contains("column 2") && one.contains("only +"), "{one}");
    assert!(refused("a,1,2\nb,-1,1\n").contains("`2`"));
    assert!(refused("a,1,1\nb,-1\n").contains("line 2"));
    assert!(refused("a,+\na,-\n").contains("`a`"));
    assert!(refused("# nothing\n").contains("empty"));
    let fine =
        NamedCode::parse("# cats and dogs\n\"a \"\"cat\"\"\"  +1 -1 -1\ndog\t-;+;0\n\nmouse,-0+\n").expect("a code");
    assert_eq!(fine.names(), ["a \"cat\"", "dog", "mouse"]);
    let text = CodeChoice::Matrix(fine.clone()).to_string();
    assert_eq!(text.parse::<CodeChoice>().expect("the same"), CodeChoice::Matrix(fine.clone()));
    // The third column has no class on its positive side without mice.
    let classes = Labels::new(["a \"cat\"", "dog"].map(String::from).to_vec());
    let code = CodeChoice::Matrix(fine.clone()).build(&classes, 0).expect("rows of both");
    assert_eq!(code, matrix(&[&[1, -1], &[-1, 1]]));
    let alike = Labels::new(["dog", "mouse"].map(String::from).to_vec());
    let alike = CodeChoice::Matrix(fine.clone()).build(&alike, 0).expect_err("no column with both");
    assert!(alike.message().contains("tells `dog` from `mouse`"), "{alike}");
    let other = Labels::new(["dog", "wolf"].map(String::from).to_vec());
    let missing = CodeChoice::Matrix(fine).build(&other, 0).expect_err("no wolf");
    assert_eq!(missing.code(), Code::UnknownLabel);
    for text in ["one-vs-rest:3", "bch:0", "dense", "exhaustive:4", "random-dense:x"] {
        assert_eq!(text.parse::<CodeChoice>().expect_err("refused").code(), Code::BadSetting, "{text}");
    }
}

#[test]
fn columns_that_ask_the_same_and_opposite_rows_are_found() {
    let code = matrix(&[&[1, -1, 1, 1], &[-1, 1, 0, 1], &[-1, 1, -1, -1]]);
    assert_eq!(code.repeated_columns(), [(1, 0)]);
    assert_eq!(code.correlation(0, 1), -1.0);
    assert!((code.correlation(0, 2) - 2.0 / 6f64.sqrt()).abs() < 1e-15);
    assert!((code.correlation(0, 3) - 1.0 / 3.0).abs() < 1e-15);
    let opposite = matrix(&[&[1, -1], &[-1, 1], &[1, 1]]);
    assert_eq!(opposite.opposite_rows(), [(0, 1)]);
}

proptest! {
    #[test]
    fn the_separation_of_bits_is_that_of_the_sums(
        rows in prop::collection::vec(prop::collection::vec(-1i8..=1, 70), 2..7),
    ) {
        let code = OutputCode::Matrix(CodeMatrix::new(&rows).expect("entries"));
        prop_assert_eq!(code.separation(), separation_by_sums(&code));
    }
}
