//! What the compiler says to wrong tables and handlers, word by word, each beside a right one that compiles.
//!
//! The texts are those of one compiler: the one this repository is tested with.

#[test]
fn wrong_tables_do_not_compile_and_the_compiler_says_why() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}
