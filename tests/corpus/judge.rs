//! Decides whether a conversation passes its case. Pure: it looks at what was received and nothing else.

use super::case::{Case, Expected, NO_ANSWER, Then};
use super::conversation::{Conversation, Gate, Heard, is_probe_due};
use super::date::parse_imf_fixdate;
use super::response::{Answers, Response, Version, is_token, parse, trim};
use super::visible::visible_start;

/// `Err` says in words which rule was broken.
pub fn judge(case: &Case, conversation: &Conversation<'_>) -> Result<(), String> {
    if conversation.gate == Gate::Silent {
        return Err("neither an interim nor a final answer came before the content was sent".into());
    }
    let answer_count = check_answers(case, conversation)?;
    check_missing(case, answer_count, conversation.first.closed)?;
    check_end(case, conversation)
}

/// Reads all that came before the probe and checks each answer; gives the number of final ones.
fn check_answers(case: &Case, conversation: &Conversation<'_>) -> Result<usize, String> {
    let Heard { received, closed } = conversation.first;
    let mut answers = Answers::new(case, received, closed);
    loop {
        let index = answers.final_count;
        let Some(response) = answers.next()? else { break };
        let place = format!("answer {}", index + 1);
        // An interim answer announces a final one, so after the last it is as wrong as any other byte.
        let Some(expected) = case.answers.get(index) else {
            return Err(format!("a {} came although nothing more was due", response.status));
        };
        if response.is_interim() {
            check_interim(case, &response)?;
        } else {
            check_status(expected, response.status).map_err(|fault| format!("{place}: {fault}"))?;
            check_content(expected, &response).map_err(|fault| format!("{place}: {fault}"))?;
            check_version(case, &response).map_err(|fault| format!("{place}: {fault}"))?;
        }
        check_fields(&response, conversation.unix_now).map_err(|fault| format!("{place}: {fault}"))?;
    }
    match answers.rest {
        [] => Ok(answers.final_count),
        rest if answers.final_count >= case.answers.len() => {
            Err(format!("bytes came although nothing more was due: {}", visible_start(rest)))
        }
        rest => Err(format!("an incomplete answer: {}", visible_start(rest))),
    }
}

fn check_interim(case: &Case, response: &Response<'_>) -> Result<(), String> {
    match response.status {
        101 => Err("a 101 although no upgrade was offered".into()),
        status if case.v10 => Err(format!("a {status} to an HTTP/1.0 client")),
        status if case.no_interim => Err(format!("a {status} where no interim answer may come")),
        _ => Ok(()),
    }
}

fn check_status(expected: &Expected, status: u16) -> Result<(), String> {
    if expected.accepted().contains(&status) {
        Ok(())
    } else if expected.allowed.contains(&status) {
        Err(format!("status {status} is legal, but a careful server gives one of {:?}", expected.accepted()))
    } else {
        Err(format!("status {status}, allowed are {:?}", expected.allowed))
    }
}

fn check_content(expected: &Expected, response: &Response<'_>) -> Result<(), String> {
    // A HEAD has no content by its framing; an error's content is free.
    let Some(wanted) = expected.content.as_ref().filter(|_| response.status == 200 && !expected.to_head) else {
        return Ok(());
    };
    if response.content == *wanted {
        return Ok(());
    }
    let (got, wanted_start) = (visible_start(&response.content), visible_start(wanted));
    Err(format!("content of {} bytes {got}, wanted {} bytes {wanted_start}", response.content.len(), wanted.len()))
}

fn check_version(case: &Case, response: &Response<'_>) -> Result<(), String> {
    if case.v10 && !response.values_of("transfer-encoding").is_empty() {
        return Err("Transfer-Encoding to an HTTP/1.0 client".into());
    }
    if response.is_until_close && response.version == Version::Http11 && !response.announces_close() {
        return Err("content ended by the close without Connection: close".into());
    }
    Ok(())
}

/// The rules of single fields, which hold for every answer.
fn check_fields(response: &Response<'_>, unix_now: u64) -> Result<(), String> {
    let dates = response.values_of("date");
    if (200..500).contains(&response.status) && dates.len() != 1 {
        return Err(format!("{} Date fields in a {} response", dates.len(), response.status));
    }
    for date in dates {
        let shown = visible_start(date);
        let time = parse_imf_fixdate(date).ok_or_else(|| format!("Date is no IMF-fixdate: {shown}"))?;
        if time.abs_diff(unix_now) > DATE_SECONDS_OFF_MAX {
            return Err(format!("Date is {} seconds off: {shown}", time.abs_diff(unix_now)));
        }
    }
    if response.status == 405 {
        check_allow(&response.values_of("allow"))?;
    }
    Ok(())
}

/// Allow = #method (RFC 9110 10.2.1): it must be there, and it may be empty.
fn check_allow(values: &[&[u8]]) -> Result<(), String> {
    if values.is_empty() {
        return Err("a 405 without Allow".into());
    }
    let is_list = |value: &[u8]| value.is_empty() || value.split(|&b| b == b',').all(|item| is_token(trim(item)));
    match values.iter().find(|value| !is_list(value)) {
        Some(bad) => Err(format!("Allow is no list of methods: {}", visible_start(bad))),
        None => Ok(()),
    }
}

/// Answers that did not come: right only where every one of them may be a bare close, and it was one.
fn check_missing(case: &Case, answer_count: usize, closed: bool) -> Result<(), String> {
    let Some(first) = case.answers.get(answer_count) else { return Ok(()) };
    let may_all_be_missing = case.answers[answer_count..].iter().all(|one| one.allowed.contains(&NO_ANSWER));
    if !may_all_be_missing || !closed {
        let end = if closed { "a close" } else { "silence" };
        return Err(format!("{answer_count} of {} answers, then {end}", case.answers.len()));
    }
    check_status(first, NO_ANSWER).map_err(|_| format!("a bare close is legal, wanted {:?}", first.accepted()))
}

/// The connection after the last answer: closed, or open and in step.
fn check_end(case: &Case, conversation: &Conversation<'_>) -> Result<(), String> {
    let closed = conversation.first.closed;
    match case.then {
        _ if case.answers.is_empty() && closed => Err("closed although the request was not complete".into()),
        Then::Close if !closed => Err("the connection was not closed".into()),
        Then::Open if closed => Err("the connection was closed".into()),
        _ if closed => Ok(()),
        _ if conversation.stuck => Err("the connection stayed open, but the request was not read to its end".into()),
        _ => match conversation.probe {
            Some(heard) => check_probe(case, heard, conversation.unix_now),
            None if is_probe_due(case, conversation.gate) => Err("the driver sent no probe".into()),
            None => Ok(()),
        },
    }
}

fn check_probe(case: &Case, heard: Heard<'_>, unix_now: u64) -> Result<(), String> {
    let Some(response) = parse(heard.received, false, heard.closed).map_err(|fault| format!("out of step: {fault}"))?
    else {
        // The close may have crossed the probe on its way.
        return match (heard.closed, case.then) {
            (true, Then::Either) => Ok(()),
            (true, _) => Err("the connection stayed open, but a further GET / got a close".into()),
            (false, _) => Err("the connection stayed open, but a further GET / got no whole answer".into()),
        };
    };
    let rest = &heard.received[response.bytes.len()..];
    if response.status != 200 || *response.content != *b"hello" || !rest.is_empty() {
        let (content, rest) = (visible_start(&response.content), visible_start(rest));
        return Err(format!("out of step: a further GET / got {}, content {content}, then {rest}", response.status));
    }
    check_fields(&response, unix_now).map_err(|fault| format!("answer to a further GET /: {fault}"))
}

const DATE_SECONDS_OFF_MAX: u64 = 10;
