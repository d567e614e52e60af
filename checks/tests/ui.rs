//! What the compiler says to wrong tables and handlers, word by word, each beside a right one that compiles.
//!
//! The texts are those of one compiler: the one this repository is tested with.

#[test]
fn wrong_tables_do_not_compile_and_the_compiler_says_why() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}

/// What a newcomer reads before giving up.
const LINES_MAX: usize = 25;

#[test]
fn no_mistake_costs_more_than_25_lines() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/fail");
    let mut errors = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "stderr") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // Each mistake of these cases stands alone, and is one error.
        for error in text.split("\n\nerror") {
            errors += 1;
            let lines = error.lines().count();
            assert!(lines <= LINES_MAX, "{}: {lines} lines:\n{error}", path.display());
        }
    }
    assert!(errors >= 60, "only {errors} errors were found: where are the texts?");
}
