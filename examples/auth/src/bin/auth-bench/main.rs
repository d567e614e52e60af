//! Measures the service: it starts it, makes its client, its users and their sessions, drives it with the load
//! generator of benches/, and prints a table as the ladder does. `auth-bench --help` says more.

#![forbid(unsafe_code)]

mod cli;
mod lab;
mod modes;
mod table;

use std::error::Error;
use std::process::ExitCode;

use sprat_bench::machine::Head;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("auth-bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether all went without errors.
fn run() -> Result<bool, Box<dyn Error>> {
    // The process that is measured is this program, too: so there is nothing else to build, or to find.
    if std::env::args().nth(1).as_deref() == Some(lab::SERVE) {
        lab::serve()?;
        return Ok(true);
    }
    let Some(options) = cli::parse()? else {
        print!("{}", cli::HELP);
        return Ok(true);
    };
    sprat_bench::process::raise_descriptor_limit();
    let head = Head::now(std::env::args().collect::<Vec<_>>().join(" "));
    println!("{} UTC, commit {}", head.date, head.commit);
    println!("{}, {} to use; Linux {}; {}", head.cpu, head.cpus.len(), head.kernel, head.rustc);
    println!(
        "{}; bcrypt cost {}; load before the run {:.2}\n",
        options.database_name(),
        options.cost,
        head.load_average
    );
    let mut table = table::Table::default();
    for mode in &options.modes {
        modes::measure(*mode, &options, &mut table)?;
    }
    table.print();
    Ok(table.errors() == 0)
}
