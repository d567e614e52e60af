//! Runs a check over many cases and tells about those that failed.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::case::Case;
use super::visible::visible_up_to;

/// A case that did not pass, as a text for people.
pub struct Failure {
    index: usize,
    text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks every case, `jobs` at a time; gives the failures in the order of the cases.
pub fn judge_all(cases: &[Case], jobs: usize, check: impl Fn(&Case) -> Result<(), String> + Sync) -> Vec<Failure> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some((index, case)) = take(cases, &next) {
            // A panic is one case's failure: without its id the message would be worth little.
            let verdict = catch_unwind(AssertUnwindSafe(|| check(case)));
            if let Err(fault) = verdict.unwrap_or_else(|_| Err("the check panicked, see above".into())) {
                let failure = Failure { index, text: describe(case, &fault) };
                failures.lock().expect("no check panicked").push(failure);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().expect("no check panicked");
    failures.sort_by_key(|failure| failure.index);
    failures
}

/// Fails the test with every failure written out, for one at a time makes slow work of a common cause.
#[track_caller]
pub fn assert_all_pass(cases: &[Case], failures: &[Failure]) {
    if failures.is_empty() {
        return;
    }
    let list: String = failures.iter().map(|failure| format!("{failure}\n")).collect();
    panic!("{} of {} cases failed\n\n{list}", failures.len(), cases.len());
}

fn take<'c>(cases: &'c [Case], next: &AtomicUsize) -> Option<(usize, &'c Case)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, cases.get(index)?))
}

fn describe(case: &Case, fault: &str) -> String {
    let wanted: Vec<_> = case.answers.iter().map(|answer| answer.accepted()).collect();
    let half_close = if case.half_close { " and a half-close" } else { "" };
    format!(
        "FAIL {} ({})\n  why:   {} [{}]\n  want:  {wanted:?} then {:?}\n  sent:  {}{half_close}\n  fault: {fault}\n",
        case.id,
        case.group,
        case.why,
        case.rfc,
        case.then,
        visible_up_to(&case.bytes, 400),
    )
}
