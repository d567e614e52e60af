//! Plants faults in a copy of the sources, one at a time, and has the simulation find each of them. Takes minutes.
//!
//! ```text
//! cargo run -p sprat-checks --bin planted              all of them
//! cargo run -p sprat-checks --bin planted -- EMFILE    those whose name holds this
//! ```

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use sprat_checks::planted::{FAULTS, Fault};

/// Within so many seeds each fault has to show.
const SEEDS: u64 = 10_000;

/// What of the workspace is needed to build the simulation.
const COPIED: [&str; 8] =
    ["Cargo.toml", "Cargo.lock", "README.md", "LICENSE-MIT", "src", "tests", "examples", "checks"];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let tree = target.join("planted");
    if let Err(error) = prepare(&root, &tree) {
        eprintln!("the sources cannot be copied to {}: {error}", tree.display());
        return ExitCode::from(2);
    }
    let mut missed = 0;
    for fault in FAULTS.iter().filter(|fault| fault.name.contains(&wanted)) {
        let started = Instant::now();
        let verdict = plant(&tree, fault);
        let _ = fs::copy(root.join(fault.file), tree.join(fault.file));
        let seconds = started.elapsed().as_secs();
        match verdict {
            Ok(found) => println!("found    {:<58} {found}  ({seconds} s)", fault.name),
            Err(why) => {
                missed += 1;
                println!("MISSED   {:<58} {why}  ({seconds} s)", fault.name);
            }
        }
    }
    println!("{missed} missed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn prepare(root: &Path, tree: &Path) -> io::Result<()> {
    for name in COPIED {
        let (from, to) = (root.join(name), tree.join(name));
        if to.is_dir() {
            fs::remove_dir_all(&to)?;
        }
        copy(&from, &to)?;
    }
    // Members that the simulation does not need are not copied.
    let manifest = fs::read_to_string(tree.join("Cargo.toml"))?;
    let lines = manifest.lines().map(|line| match line.split_once(" = ") {
        Some(("members" | "default-members", _)) => "members = [\".\", \"checks\"]",
        _ => line,
    });
    let mut seen = false;
    let lines = lines.filter(|line| !(line.starts_with("members") && std::mem::replace(&mut seen, true)));
    fs::write(tree.join("Cargo.toml"), lines.collect::<Vec<_>>().join("\n"))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(|_| ());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != "target" {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Says what found the fault, or why nothing did.
fn plant(tree: &Path, fault: &Fault) -> Result<String, String> {
    let path = tree.join(fault.file);
    let source = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    if source.matches(fault.find).count() != 1 {
        return Err("its place in the sources has changed".to_owned());
    }
    fs::write(&path, source.replace(fault.find, fault.replace)).map_err(|error| error.to_string())?;
    let seeds = SEEDS.to_string();
    let run = Command::new(env!("CARGO"))
        .current_dir(tree)
        .args(["run", "-p", "sprat-checks", "--bin", "simulate", "--"])
        .args(["--seeds", &seeds, "--threads", "1"])
        .env("CARGO_TARGET_DIR", tree.join("target"))
        // Most faults show within a few seeds, so that building is what takes time.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "1")
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&run.stdout);
    match text.lines().find(|line| line.starts_with("seed ")) {
        Some(line) => Ok(line.chars().take(120).collect()),
        None if run.status.success() => Err(format!("no seed below {SEEDS} shows it")),
        None => {
            let errors = String::from_utf8_lossy(&run.stderr);
            Err(errors.lines().filter(|line| line.contains("error")).take(3).collect::<Vec<_>>().join("; "))
        }
    }
}
