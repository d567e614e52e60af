//! `sprat-bench`: measures sprat and its peers. Without a command it says what there is.

use std::ffi::OsString;

use sprat_bench::{budgets, ladder, load, peers, report};

const HELP: &str = "\
sprat-bench: the evidence

  cargo run --release -p sprat-bench -- COMMAND

  ladder [...]     measure all servers in turns, write rows and a report (ladder --help)
  load [...]       drive one server (load --help)
  report FOLDER    write the report of a ladder's rows again
  budgets [...]    instructions per request, against benches/budgets.json (budgets --help)
  check [PEER ...] build the servers and ask each what the benchmark will ask
";

fn main() {
    let mut args = std::env::args_os().skip(1);
    let command = args.next().and_then(|arg| arg.into_string().ok()).unwrap_or_default();
    let rest: Vec<OsString> = args.collect();
    let done = match &*command {
        "load" => std::process::exit(load::cli::main(rest)),
        "ladder" => run_ladder(rest),
        "report" => {
            rest.first().ok_or_else(|| "which folder?".into()).and_then(|folder| report::write(folder.as_ref()))
        }
        "budgets" => budgets::main(&words(&rest)),
        "replay" => replay(&words(&rest)),
        "check" => check(&rest),
        _ => {
            print!("{HELP}");
            Ok(())
        }
    };
    if let Err(why) = done {
        eprintln!("sprat-bench: {why}");
        std::process::exit(1);
    }
}

fn words(args: &[OsString]) -> Vec<String> {
    args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

/// What `budgets` runs under valgrind.
fn replay(words: &[String]) -> Result<(), String> {
    match words {
        [name, times] => budgets::replay(name, times.parse().map_err(|_| "how many times?")?),
        _ => Err("replay NAME TIMES".into()),
    }
}

fn run_ladder(args: Vec<OsString>) -> Result<(), String> {
    let words = words(&args);
    let Some(options) = ladder::cli::parse(args).map_err(|e| e.to_string())? else {
        print!("{}", ladder::cli::HELP);
        return Ok(());
    };
    let command = format!("cargo run --release -p sprat-bench -- ladder {}", words.join(" "));
    let folder = ladder::run(&options, command.trim_end().to_owned())?;
    report::write(&folder)?;
    println!("report: {}", folder.join("report.html").display());
    Ok(())
}

fn check(names: &[OsString]) -> Result<(), String> {
    let manifest = peers::manifest()?;
    let mut is_right = true;
    for peer in manifest.peers.iter().filter(|peer| names.is_empty() || names.iter().any(|name| *name == *peer.name)) {
        let line = match peer.prepare(&manifest.programs) {
            Err(why) => format!("skipped: {why}"),
            Ok(()) => match peers::check::check(peer) {
                Ok(verdict) if verdict.wrong.is_empty() && verdict.known.is_empty() => {
                    format!("passes {} checks [{}]", verdict.asked, peer.version())
                }
                Ok(verdict) => {
                    is_right &= verdict.wrong.is_empty();
                    let wrong = [verdict.wrong, verdict.known.iter().map(|known| format!("known: {known}")).collect()];
                    format!("fails {} [{}]", wrong.concat().join(", "), peer.version())
                }
                Err(why) => {
                    is_right = false;
                    format!("fails: {why}")
                }
            },
        };
        println!("{:13} {line}", peer.name);
    }
    if is_right { Ok(()) } else { Err("not all servers answer rightly".into()) }
}
