//! What the fuzz targets ask, for those without a nightly toolchain: every seed as it is, and seeds that proptest
//! changes. PROPTEST_CASES sets how many of those; the fuzzer itself is in `fuzz/`.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[allow(dead_code)]
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

macro_rules! properties {
    ($($target:ident)*) => {$(
        mod $target {
            #[test]
            fn holds_for_the_seeds() {
                super::for_the_seeds(stringify!($target), super::fuzz::$target::check);
            }

            #[test]
            fn holds_for_what_resembles_them() {
                super::for_what_resembles_them(stringify!($target), super::fuzz::$target::check);
            }
        }
    )*};
}

properties! {
    head framing chunked target query cookies form connection smuggling routes response json proxy date
    credentials later media_type cors
}

/// Every target of the fuzzer is among them.
#[test]
fn no_target_is_left_out() {
    let here = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/properties.rs")).unwrap();
    let list = here.split("\nproperties! {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let mut listed: Vec<_> = list.split_whitespace().map(str::to_owned).collect();
    let mut targets: Vec<_> = fs::read_dir(fuzz_folder("fuzz_targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    listed.sort();
    targets.sort();
    assert_eq!(listed, targets);
}

fn for_the_seeds(target: &str, check: fn(&[u8])) {
    for (path, seed) in seeds(target) {
        let outcome = std::panic::catch_unwind(|| check(&seed));
        assert!(outcome.is_ok(), "{}", path.display());
    }
}

/// The same cases each time: a build that passes passes again. Finding what is new is the fuzzer's job.
fn for_what_resembles_them(target: &str, check: fn(&[u8])) {
    let seeds: Vec<_> = seeds(target).into_iter().map(|(_, seed)| seed).collect();
    let words = words(target);
    let inputs = (select(seeds.clone()), vec(edits(), 0..8)).prop_map(move |(mut input, edits)| {
        edits.iter().for_each(|edit| edit.apply(&mut input, &seeds, &words));
        input
    });
    let config = Config { failure_persistence: None, ..Config { cases: cases(), ..Config::default() } };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&inputs, |input| {
        check(&input);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{target}: {failure}");
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(1024, |cases| cases.parse().expect("PROPTEST_CASES is a number"))
}

#[derive(Clone, Debug)]
enum Edit {
    Insert(Index, Vec<u8>),
    InsertWord(Index, Index),
    Remove(Index, usize),
    Set(Index, u8),
    /// Goes on as another seed does.
    Splice(Index, Index),
    Repeat(Index, usize),
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<Index>(), vec(any::<u8>(), 1..4)).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, word)| Edit::InsertWord(at, word)),
        (any::<Index>(), 1..9_usize).prop_map(|(at, len)| Edit::Remove(at, len)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, seed)| Edit::Splice(at, seed)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, len)| Edit::Repeat(at, len)),
    ]
}

impl Edit {
    fn apply(&self, input: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[Vec<u8>]) {
        let place = |at: &Index, input: &[u8]| at.index(input.len() + 1);
        let insert = |input: &mut Vec<u8>, at: usize, bytes: &[u8]| drop(input.splice(at..at, bytes.iter().copied()));
        match self {
            Edit::Insert(at, bytes) => insert(input, place(at, input), bytes),
            Edit::InsertWord(..) if words.is_empty() => {}
            Edit::InsertWord(at, word) => insert(input, place(at, input), &words[word.index(words.len())]),
            Edit::Remove(at, len) => {
                let start = place(at, input);
                let end = (start + len).min(input.len());
                input.drain(start..end);
            }
            Edit::Set(at, byte) => {
                let at = place(at, input);
                input.resize(input.len().max(at + 1), 0);
                input[at] = *byte;
            }
            Edit::Splice(at, seed) => {
                let other = &seeds[seed.index(seeds.len())];
                let from = place(at, other);
                input.truncate(place(at, input));
                input.extend_from_slice(&other[from..]);
            }
            Edit::Repeat(at, len) => {
                let start = place(at, input);
                let end = (start + len).min(input.len());
                let again = input[start..end].to_vec();
                insert(input, end, &again);
            }
        }
    }
}

fn fuzz_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(name)
}

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths: Vec<_> = fs::read_dir(fuzz_folder("corpus").join(target))
        .expect("the target has seeds")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed-")))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The words of the dictionary whose first line names the target.
fn words(target: &str) -> Vec<Vec<u8>> {
    let dictionaries = fs::read_dir(fuzz_folder("dict")).unwrap().map(|entry| entry.unwrap().path());
    let mut texts = dictionaries.map(|path| fs::read_to_string(path).unwrap());
    let is_for = |text: &String| {
        let targets =
            text.lines().next().and_then(|line| line.strip_prefix("# For: ")).expect("it says what it is for");
        targets.split(' ').any(|name| name == target)
    };
    let text = texts.find(is_for).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"')).map(unescaped).collect()
}

/// `\"`, `\\` and `\xAB`, as libFuzzer reads them.
fn unescaped(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let [first, after @ ..] = rest {
        (rest, _) = match (first, after) {
            (b'\\', [b'x', digits @ ..]) => {
                let digits = digits.split_at(2);
                let digit = std::str::from_utf8(digits.0).unwrap();
                (digits.1, bytes.push(u8::from_str_radix(digit, 16).unwrap()))
            }
            (b'\\', [escaped, after @ ..]) => (after, bytes.push(*escaped)),
            _ => (after, bytes.push(*first)),
        };
    }
    bytes
}
