//! The solvers of structured outputs through the command: what is shown, kernels, hard margins, stopping and continuing.

use crate::workbench::{Workbench, number};

/// Words of two or three letters, one row a letter. The features tell the letter up to noise of the given width.
fn words(count: usize, noise: f64) -> String {
    let mut text = String::from("word,letter,a,b,c\n");
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    for word in 0..count {
        let mut letter = (3.0 * next()) as usize;
        for _ in 0..2 + word % 2 {
            letter = if next() < 0.8 { (letter + 1) % 3 } else { letter };
            text.push_str(&format!("w{word},{}", ["x", "y", "z"][letter]));
            for column in 0..3 {
                text.push_str(&format!(",{:.4}", f64::from(u8::from(column == letter)) + noise * (next() - 0.5)));
            }
            text.push('\n');
        }
    }
    text
}

fn bench(noise: f64) -> Workbench {
    let bench = Workbench::new();
    bench.write("words.csv", words(80, noise)).write("more.csv", words(40, noise));
    bench
}

const DATA: &str = "--target letter --group word";

#[test]
fn searches_and_rounds_are_shown_in_words_and_in_json() {
    let bench = bench(2.0);
    for solver in ["frank-wolfe", "n-slack", "cutting-plane", "averaged-sgd"] {
        let ran = bench.ok(&format!("train sequence words.csv {DATA} --solver {solver} -o m.mm --json"));
        let object = ran.object();
        assert!(number(&object, "searches") >= 80.0 * number(&object, "passes"), "{object}");
        assert!(object["seconds"]["searches"].as_f64().is_some());
        let rounds = &object["rounds"];
        assert_eq!(rounds.is_object(), ["n-slack", "cutting-plane"].contains(&solver), "{object}");
        assert_eq!(object["lower_bound"].is_null(), solver == "averaged-sgd", "{object}");
        bench.ok("verify m.mm words.csv");
        let ran = bench.ok(&format!("train sequence words.csv {DATA} --solver {solver} -o m.mm"));
        let ran = ran.shows("searches for the most violated output");
        if rounds.is_object() {
            ran.shows("the theorem on cutting planes allows");
        }
    }
    bench.ok("train sequence --help").shows("frank-wolfe").shows("--max-seconds");
    let help = bench.ok("train ordinal --help").stdout;
    assert!(!help.contains("frank-wolfe") && help.contains("newton"), "{help}");
}

#[test]
fn kernels_and_hard_margins_of_sequences_verify_and_predict() {
    let bench = bench(0.5);
    let kernel = "--kernel gaussian --gamma 0.5";
    let object = bench.json(&format!("train sequence words.csv {DATA} {kernel} -c 1 -o kernel.mm"));
    assert_eq!(object["converged"].as_bool(), Some(true), "{object}");
    bench.ok("verify kernel.mm words.csv").shows("the certificate holds");
    let measured = bench.json("evaluate kernel.mm more.csv");
    assert!(number(&measured, "token-accuracy") > 0.9, "{measured}");
    bench.refused(&format!("train sequence words.csv {DATA} {kernel} --solver cutting-plane -o no.mm"), "MM0402");
    bench.ok(&format!("train sequence words.csv {DATA} --margin hard -o hard.mm")).shows("separable: objective");
    bench.ok("verify hard.mm words.csv").shows("the certificate holds");
    bench.write("same.csv", "word,letter,a\nw1,x,1\nw2,y,1\nw3,x,0\n");
    bench.refused(&format!("train sequence same.csv {DATA} --margin hard -o no.mm"), "MM0320");
}

#[test]
fn a_run_ends_by_time_or_held_out_data_and_continues_from_its_model() {
    let bench = bench(2.0);
    let train = format!("train sequence words.csv {DATA}");
    let object = bench.json(&format!("{train} --max-seconds 1e-9 --tolerance 0 --solver frank-wolfe -o short.mm"));
    assert_eq!((object["stopped"].as_str(), object["converged"].as_bool()), (Some("time limit"), Some(false)));
    bench.ok("verify short.mm words.csv");
    for solver in ["frank-wolfe", "averaged-sgd"] {
        let early = format!("--early-stopping validation --validation more.csv --solver {solver} --tolerance 0");
        let object = bench.json(&format!("{train} {early} --max-passes 200 -o early.mm"));
        assert_eq!(object["stopped"], "early stopping", "{object}");
        bench.ok("verify early.mm words.csv");
    }
    bench.refused(&format!("{train} --early-stopping validation -o no.mm"), "MM0402");
    for solver in ["frank-wolfe", "cutting-plane"] {
        let tight = format!("{train} --tolerance 1e-6 -c 2");
        let whole = bench.json(&format!("{tight} --solver {solver} -o whole.mm"));
        let begun = bench.json(&format!("{train} --solver {solver} -c 1 -o begun.mm"));
        assert_eq!(begun["converged"].as_bool(), Some(true), "{begun}");
        let more = bench.json(&format!("{tight} --from begun.mm -o more.mm"));
        assert_eq!(more["solver"], solver, "{more}");
        assert!(number(&more, "gap") <= 1e-6, "{more}");
        assert!(number(&more, "lower_bound") <= number(&whole, "objective") * (1.0 + 1e-9));
        assert!(number(&more, "objective") >= number(&whole, "lower_bound") * (1.0 - 1e-9));
        // From the solution itself, nothing is left to do.
        let again = bench.json(&format!("{tight} --from more.mm -o again.mm"));
        assert!(number(&again, "passes") <= 1.0, "{again}");
        bench.ok("verify again.mm words.csv");
    }
    bench.refused(&format!("train sequence more.csv {DATA} --from whole.mm -o no.mm"), "MM0309");
    bench.refused(&format!("{train} --scale standard --from whole.mm -o no.mm"), "MM0402");
    bench.refused(&format!("{train} --solver sgd --from whole.mm -o no.mm"), "MM0402");
}
