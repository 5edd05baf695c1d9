//! Every command that is printed as the next one to type runs.

use crate::workbench::Workbench;

/// Games with and without dates.
fn games(dates: bool) -> String {
    let mut text = String::from(if dates { "date,white,black,result\n" } else { "white,black,result\n" });
    for round in 0..30 {
        let (left, right) = (round % 5, (round * 2 + 1) % 5);
        if left == right {
            continue;
        }
        let result = ["left", "tie", "right"][(round * 7 / 3) % 3];
        let date = if dates { format!("2020-01-{:02},", round + 1) } else { String::new() };
        text.push_str(&format!("{date}p{left},p{right},{result}\n"));
    }
    text
}

fn ratings() -> String {
    let mut text = String::from("user,item,rating\n");
    for user in 0..8 {
        for item in 0..6 {
            text.push_str(&format!("u{user},i{item},{}\n", (user * 3 + item * 5) % 4));
        }
    }
    text
}

/// The command after `next: ` in what a command printed.
fn next(bench: &Workbench, line: &str) -> String {
    let ran = bench.ok(line);
    let both = format!("{}{}", ran.stdout, ran.stderr);
    let next = both.lines().find_map(|line| line.split_once("next: maxmargin ").map(|(_, next)| next.to_string()));
    next.unwrap_or_else(|| panic!("`{line}` names no next command:\n{both}"))
}

#[test]
fn every_next_command_runs() {
    let bench = Workbench::new();
    bench.write("dated.csv", games(true)).write("undated.csv", games(false)).write("ratings.csv", ratings());
    bench.write("decided.csv", games(true).replace(",tie\n", ",left\n"));
    let items = (0..6).map(|item| format!("i{item},{},{}\n", item * item % 5, item % 3));
    bench.write("items.csv", format!("id,price,size\n{}", items.collect::<String>()));
    let users = (0..8).map(|user| format!("u{user},{}\n", 20 + user));
    bench.write("users.csv", format!("id,age\n{}", users.collect::<String>()));
    for (line, test_data) in [
        ("simulate search --queries 12 --docs 8 --features 4 -o search.txt", ""),
        ("train rank search.txt -o rank.mm", "search.txt"),
        ("tune rank search.txt --grid 0.1,1 --folds 2", ""),
        ("tune rank search.txt --grid 0.1,1 --folds 2 -o tuned.mm", "search.txt"),
        ("train compare search.txt --ties-from-grades -o graded.mm", "search.txt"),
        ("simulate text --rows 60 --features 20 --nonzeros 5 -o text.txt", ""),
        ("train classify text.txt -o text.mm", "text.txt"),
        ("train classify text.txt --kernel gaussian -o kernel.mm", "text.txt"),
        ("tune classify text.txt --grid 0.1,1 --folds 2 --class-weight -1=2,1=1", ""),
        ("compact kernel.mm --vectors 10 -o small.mm", "text.txt"),
        ("train one-class text.txt -o one.mm", "text.txt"),
        ("simulate compare --norm linear --pairs 60 -o pairs.csv", ""),
        ("train compare pairs.csv -o pairs.mm", "pairs.csv"),
        ("features games dated.csv -o wide.csv", ""),
        ("features games dated.csv --keep-ids -o kept.csv", ""),
        ("features games undated.csv --keep-ids -o undated-kept.csv", ""),
        ("features games undated.csv -o undated-wide.csv", ""),
        ("features ratings ratings.csv -o bare.csv", ""),
        ("features games decided.csv -o decided-wide.csv", ""),
        ("features ratings ratings.csv --tie-within 0.5 --items items.csv -o items-wide.csv", ""),
        ("features ratings ratings.csv --items items.csv --users users.csv --cross -o crossed.csv", ""),
        ("train compare bare.csv --method elo -o elo.mm", "bare.csv"),
        ("train compare bare.csv --items items.csv --loss logistic -o of-items.mm", "bare.csv"),
        ("train one-class items.csv --kernel gaussian --nu 0.5 -o unlabelled.mm", "items.csv"),
    ] {
        let next = next(&bench, line);
        if !test_data.is_empty() {
            assert!(next.contains(" test-data"), "{next}");
            bench.write("test-data", bench.read(test_data));
        }
        bench.ok(&next);
    }
}
