//! Bytes for the eyes of a person: escapes for what cannot be seen, a limit for what nobody wants to read.

use std::fmt::Write;

/// All bytes, on one line, in quotes.
pub fn visible(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// The first bytes, and how many there are in all.
pub fn visible_start(bytes: &[u8]) -> String {
    visible_up_to(bytes, 100)
}

pub fn visible_up_to(bytes: &[u8], max: usize) -> String {
    match bytes.get(..max) {
        Some(start) if bytes.len() > max => format!("{}... ({} bytes)", visible(start), bytes.len()),
        _ => visible(bytes),
    }
}

/// The lines in which two byte strings differ, `-` before the left one's and `+` before the right one's.
pub fn visible_diff(left: &[u8], right: &[u8]) -> String {
    let (left, right): (Vec<_>, Vec<_>) = (lines(left), lines(right));
    let same_before = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let (left_rest, right_rest) = (&left[same_before..], &right[same_before..]);
    let same_after = left_rest.iter().rev().zip(right_rest.iter().rev()).take_while(|(a, b)| a == b).count();

    let mut text = String::new();
    let context = &left[same_before.saturating_sub(CONTEXT_LINES)..same_before];
    write_lines(&mut text, ' ', context);
    write_lines(&mut text, '-', &left_rest[..left_rest.len() - same_after]);
    write_lines(&mut text, '+', &right_rest[..right_rest.len() - same_after]);
    let context = &left_rest[left_rest.len() - same_after..];
    write_lines(&mut text, ' ', &context[..context.len().min(CONTEXT_LINES)]);
    text
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&b| b == b'\n').collect()
}

fn write_lines(text: &mut String, mark: char, lines: &[&[u8]]) {
    for line in lines.iter().take(DIFF_LINES_MAX) {
        writeln!(text, "    {mark} {}", visible_up_to(line, 160)).expect("a String takes everything");
    }
    if lines.len() > DIFF_LINES_MAX {
        writeln!(text, "    {mark} ... {} more lines", lines.len() - DIFF_LINES_MAX)
            .expect("a String takes everything");
    }
}

const CONTEXT_LINES: usize = 2;
const DIFF_LINES_MAX: usize = 20;
