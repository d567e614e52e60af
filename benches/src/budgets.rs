//! Instructions per request, gated: the figure that repeats on any machine.
//!
//! The connection machine is fed captured bytes in a process of its own under callgrind, once for fewer and once for
//! more requests. The slope between the two is one request's, to the instruction. Beside that: how large the hello
//! example is, of how many crates the crate is made, and how long a first build takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sprat::internals::Replay;

use crate::app::{Api, App};
use crate::inputs;
use crate::ladder::counts::total_instructions;
use crate::load::rounded;
use crate::peers::{find_program, root};

/// `budgets.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budgets {
    /// The compiler that the figures are of.
    pub rustc: String,
    /// Instructions of one request, by its name.
    pub instructions: BTreeMap<String, f64>,
    /// Bytes of the hello example, release profile.
    pub hello_bytes: u64,
    /// Crates that sprat is made of, itself not counted.
    pub crates: u64,
    /// And without its default features.
    pub crates_without_json: u64,
    /// Seconds of a build of the hello example from nothing, on the machine that wrote this. Not gated.
    #[serde(default)]
    pub cold_build_s: Option<f64>,
}

/// A figure may be this much above its budget.
const TOLERANCE_PERCENT: f64 = 3.0;

/// What `budgets --help` prints.
pub const HELP: &str = "\
budgets: instructions per request of the connection machine, and the size of what is built

  sprat-bench budgets            measure and compare with benches/budgets.json
  sprat-bench budgets --check    the same, and fail if a figure is more than 3 % above its budget
  sprat-bench budgets --write    measure and make the figures the budgets; say in the commit why one was raised
  sprat-bench budgets --write --cold   also time a build of the hello example from nothing
";

/// Runs the command.
pub fn main(args: &[String]) -> Result<(), String> {
    let has = |name: &str| args.iter().any(|arg| arg == name);
    if let Some(unknown) = args.iter().find(|arg| !["--check", "--write", "--cold", "--help"].contains(&arg.as_str())) {
        return Err(format!("unknown option {unknown}"));
    }
    if has("--help") {
        print!("{HELP}");
        return Ok(());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("budgets.json");
    let budgets: Option<Budgets> =
        std::fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
    let mut measured = measure()?;
    measured.cold_build_s =
        if has("--cold") { Some(cold_build()?) } else { budgets.as_ref().and_then(|b| b.cold_build_s) };
    if has("--write") {
        let text = serde_json::to_string_pretty(&measured).map_err(|e| e.to_string())?;
        std::fs::write(&path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
        print(&measured, None);
        return Ok(());
    }
    print(&measured, budgets.as_ref());
    let Some(budgets) = budgets else {
        return Err("there is no benches/budgets.json: budgets --write makes it".into());
    };
    let over = compare(&measured, &budgets);
    if over.is_empty() {
        println!("within budget");
    }
    over.iter().for_each(|line| println!("over budget: {line}"));
    if has("--check") && !over.is_empty() { Err(format!("{} figures are over budget", over.len())) } else { Ok(()) }
}

/// What the process under callgrind does: feeds a captured request to the machine so many times.
pub fn replay(name: &str, times: u64) -> Result<(), String> {
    let (bytes, requests) = inputs::by_name(name).ok_or_else(|| format!("no such request: {name}"))?;
    let mut replay = Replay::new(Api, App::default());
    let mut sent = 0;
    for _ in 0..times {
        replay.receive(&bytes, |bytes| sent += bytes.len());
    }
    // So that nothing of it is thought to be needless.
    eprintln!("{} requests, {sent} bytes sent", times * requests);
    Ok(())
}

fn measure() -> Result<Budgets, String> {
    if find_program("valgrind").is_none() {
        return Err("valgrind is missing: apt-get install valgrind".into());
    }
    let mut budgets = Budgets {
        rustc: said(Command::new("rustc").arg("--version"))?.trim().to_owned(),
        crates: crates(&[])?,
        crates_without_json: crates(&["--no-default-features"])?,
        hello_bytes: hello_bytes()?,
        ..Budgets::default()
    };
    for name in inputs::NAMES {
        let (_, requests) = inputs::by_name(name).ok_or("a request without bytes")?;
        let (few, many) = (FEW / requests, MANY / requests);
        let slope = (instructions(name, many)? - instructions(name, few)?) / ((many - few) * requests) as f64;
        budgets.instructions.insert(name.into(), rounded(slope, 1));
    }
    Ok(budgets)
}

/// Requests of the two runs; multiples of 16.
const FEW: u64 = 1600;
const MANY: u64 = 8000;

fn instructions(name: &str, times: u64) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let file = std::env::temp_dir().join(format!("sprat-bench-budget-{}", std::process::id()));
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", file.display())).arg(program);
    said(valgrind.args(["replay", name, &times.to_string()]))?;
    let total = total_instructions(&file);
    let _ = std::fs::remove_file(&file);
    total
}

/// Every crate in the tree of normal and build dependencies, once.
fn crates(features: &[&str]) -> Result<u64, String> {
    let mut tree = Command::new("cargo");
    tree.current_dir(root()).args(["tree", "-p", "sprat", "-e", "normal,build", "--prefix", "none", "--no-dedupe"]);
    let text = said(tree.args(features))?;
    let mut names: Vec<String> = text.lines().map(|line| line.split(" (").next().unwrap_or(line).to_owned()).collect();
    names.sort();
    names.dedup();
    Ok(names.iter().filter(|name| !name.is_empty()).count() as u64 - 1)
}

fn hello_bytes() -> Result<u64, String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args([
        "build",
        "--release",
        "-p",
        "sprat",
        "--example",
        "hello",
        "--message-format=json",
    ]);
    let text = said(&mut cargo)?;
    let is_hello = |line: &&str| line.contains("\"example\"") && line.contains("\"executable\":\"");
    let line = text.lines().rfind(is_hello).ok_or("cargo built no hello example")?;
    let message: serde_json::Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let path = PathBuf::from(message["executable"].as_str().unwrap_or_default());
    std::fs::metadata(&path).map(|file| file.len()).map_err(|e| e.to_string())
}

fn cold_build() -> Result<f64, String> {
    let folder = std::env::temp_dir().join(format!("sprat-bench-cold-{}", std::process::id()));
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["build", "--release", "-p", "sprat", "--example", "hello", "--target-dir"]);
    let started = Instant::now();
    let done = said(cargo.arg(&folder));
    let seconds = rounded(started.elapsed().as_secs_f64(), 1);
    let _ = std::fs::remove_dir_all(&folder);
    done.map(|_| seconds)
}

fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{:?} failed: {}", command.get_program(), said.lines().last().unwrap_or_default()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is above its budget, in words.
fn compare(measured: &Budgets, budgets: &Budgets) -> Vec<String> {
    let mut over = Vec::new();
    let mut gate = |name: &str, is: f64, may: f64, tolerance_percent: f64| {
        if is > may * (1.0 + tolerance_percent / 100.0) {
            over.push(format!("{name}: {is} instead of {may} ({:+.1} %)", (is / may - 1.0) * 100.0));
        }
    };
    for (name, is) in &measured.instructions {
        // A request without a budget must be given one.
        gate(name, *is, budgets.instructions.get(name).copied().unwrap_or(0.0), TOLERANCE_PERCENT);
    }
    gate("bytes of hello", measured.hello_bytes as f64, budgets.hello_bytes as f64, TOLERANCE_PERCENT);
    gate("crates", measured.crates as f64, budgets.crates as f64, 0.0);
    gate("crates without json", measured.crates_without_json as f64, budgets.crates_without_json as f64, 0.0);
    over
}

fn print(measured: &Budgets, budgets: Option<&Budgets>) {
    let line = |name: &str, is: f64, may: Option<f64>| match may {
        Some(may) if may > 0.0 => println!("{name:20} {is:>10} budget {may:>10} {:+.1} %", (is / may - 1.0) * 100.0),
        _ => println!("{name:20} {is:>10}"),
    };
    for (name, is) in &measured.instructions {
        line(name, *is, budgets.and_then(|b| b.instructions.get(name).copied()));
    }
    line("bytes of hello", measured.hello_bytes as f64, budgets.map(|b| b.hello_bytes as f64));
    line("crates", measured.crates as f64, budgets.map(|b| b.crates as f64));
    line("crates without json", measured.crates_without_json as f64, budgets.map(|b| b.crates_without_json as f64));
    if let Some(seconds) = measured.cold_build_s {
        line("cold build, seconds", seconds, None);
    }
    if let Some(budgets) = budgets.filter(|budgets| budgets.rustc != measured.rustc) {
        println!("the budgets are of {}, these figures of {}", budgets.rustc, measured.rustc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(get: f64, bytes: u64, crates: u64) -> Budgets {
        let instructions = BTreeMap::from([("get".to_owned(), get)]);
        Budgets { instructions, hello_bytes: bytes, crates, ..Budgets::default() }
    }

    #[test]
    fn three_percent_are_forgiven_and_a_crate_is_not() {
        let budget = budgets(1000.0, 100_000, 20);
        assert!(compare(&budgets(1030.0, 103_000, 20), &budget).is_empty());
        assert_eq!(compare(&budgets(1031.0, 100_000, 20), &budget), ["get: 1031 instead of 1000 (+3.1 %)"]);
        assert_eq!(compare(&budgets(900.0, 104_000, 21), &budget).len(), 2);
    }

    #[test]
    fn a_request_without_a_budget_is_over_it() {
        assert_eq!(compare(&budgets(1.0, 0, 0), &Budgets::default()).len(), 1);
    }
}
