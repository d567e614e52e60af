//! The questions.

use std::error::Error;
use std::thread;
use std::time::Duration;

use sprat_bench::ladder::modes::CONNECTIONS;
use sprat_bench::load::run;

use crate::cli::{Mode, Options};
use crate::lab::{Ask, How, Lab, Place};
use crate::table::Table;

/// Asks one of them, in a service of its own, as often as there are rounds.
pub fn measure(mode: Mode, options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for round in 1..=options.rounds {
        eprintln!("{mode:?}, round {round} of {}", options.rounds);
        match mode {
            Mode::Validations => validations(options, table)?,
            Mode::Logins => logins(options, table)?,
            Mode::Churn => churn(options, table)?,
            Mode::Saturation => saturation(options, table)?,
            Mode::Capacity => capacity(options, table)?,
            Mode::Latency => latency(options, table)?,
            Mode::Health => health(options, table)?,
        }
    }
    Ok(())
}

fn closed(connections: usize, options: &Options) -> How {
    How { connections, rate: None, churn: false, seconds: options.seconds }
}

fn validations(options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let lab = Lab::start(options, Place::Apart)?;
    for connections in [1, 64] {
        let outcome = lab.drive(&lab.validate_request(), closed(connections, options))?;
        table.add("validations", format!("{connections} connections"), outcome);
    }
    Ok(())
}

fn logins(options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let mut lab = Lab::start(options, Place::Anywhere)?;
    for clients in [20, 100] {
        let request = lab.login_request(lab.logins_within(options.seconds + 1.0, options))?;
        let outcome = lab.drive(&request, closed(clients, options))?;
        table.add("logins", format!("{clients} clients"), outcome);
    }
    Ok(())
}

fn churn(options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let lab = Lab::start(options, Place::Apart)?;
    let how = How { churn: true, ..closed(64, options) };
    table.add("no keep-alive", "health, 64".into(), lab.drive(&Ask::HEALTH, how)?);
    table.add("no keep-alive", "validate, 64".into(), lab.drive(&lab.validate_request(), how)?);
    Ok(())
}

fn saturation(options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let lab = Lab::start(options, Place::Apart)?;
    let (mut best, mut behind) = (0.0, 0);
    for connections in CONNECTIONS {
        let outcome = lab.drive(&lab.validate_request(), closed(connections, options))?;
        let (per_second, errors) = (outcome.per_second, outcome.errors.total());
        table.add("saturation", format!("{connections} connections"), outcome);
        behind = if per_second > best * 1.02 { 0 } else { behind + 1 };
        best = per_second.max(best);
        if errors > 0 || behind == 3 {
            break;
        }
    }
    Ok(())
}

fn capacity(options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let lab = Lab::start(options, Place::Apart)?;
    for connections in [500, 1000, 2000, 4000, 8000] {
        let outcome = lab.drive(&lab.validate_request(), closed(connections, options))?;
        let errors = outcome.errors.total();
        table.add("capacity", format!("{connections} connections"), outcome);
        if errors > 0 {
            break;
        }
    }
    Ok(())
}

fn latency(options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let lab = Lab::start(options, Place::Apart)?;
    let maximum = lab.drive(&lab.validate_request(), closed(64, options))?.per_second;
    for percent in [25, 50, 75, 90] {
        let rate = maximum * f64::from(percent) / 100.0;
        let outcome = lab.drive(&lab.validate_request(), How { rate: Some(rate), ..closed(64, options) })?;
        table.add("latency", format!("{percent} % load"), outcome);
    }
    Ok(())
}

/// Both are counted: a login that is lost is an error.
fn health(options: &Options, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let mut lab = Lab::start(options, Place::Anywhere)?;
    let seconds = options.seconds.max(5.0);
    let request = lab.login_request(lab.logins_within(seconds + 3.0, options))?;
    let logins = lab.plan(&request, How { seconds: seconds + 1.0, ..closed(20, options) });
    let logins = thread::spawn(move || run(&logins));
    thread::sleep(Duration::from_millis(300));
    let probe = How { connections: 4, rate: Some(200.0), churn: false, seconds };
    let health = lab.drive(&Ask::HEALTH, probe);
    let logins = logins.join().map_err(|_| "a panic")?;
    table.add("health beside logins", "200 a second".into(), health?);
    table.add("health beside logins", "20 logins in flight".into(), logins?);
    Ok(())
}
