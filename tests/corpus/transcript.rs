//! What must be the same however the bytes of a case were cut.

use super::case::Case;
use super::conversation::{Conversation, Heard};
use super::response::Answers;
use super::visible::visible_diff;

/// A conversation without what may rightly differ: the digits of Date, and interim answers, for a 100 is pointless
/// once content has come.
#[derive(PartialEq, Eq)]
pub struct Transcript {
    first: Vec<u8>,
    first_closed: bool,
    probe: Option<(Vec<u8>, bool)>,
}

pub fn transcript(case: &Case, conversation: &Conversation<'_>) -> Transcript {
    // The probe's answer is read without the case, lest it be taken for the answer to a HEAD.
    let blank = Case::blank();
    Transcript {
        first: masked(case, conversation.first),
        first_closed: conversation.first.closed,
        probe: conversation.probe.map(|heard| (masked(&blank, heard), heard.closed)),
    }
}

/// Whether the bytes themselves are equal: the cheap question, which nearly always spares us the transcripts.
pub fn is_same_to_the_byte(left: &Conversation<'_>, right: &Conversation<'_>) -> bool {
    let same = |a: &Heard<'_>, b: &Heard<'_>| a.closed == b.closed && a.received == b.received;
    let is_probe_same = match (&left.probe, &right.probe) {
        (Some(a), Some(b)) => same(a, b),
        (None, None) => true,
        _ => false,
    };
    is_probe_same && left.gate == right.gate && same(&left.first, &right.first)
}

impl Transcript {
    /// For people: what `other` has that this one lacks, and the reverse.
    pub fn diff(&self, other: &Transcript) -> String {
        let mut text = visible_diff(&self.first, &other.first);
        if self.first_closed != other.first_closed {
            text += &format!("    - closed: {}\n    + closed: {}\n", self.first_closed, other.first_closed);
        }
        match (&self.probe, &other.probe) {
            (left, right) if left == right => {}
            (Some((left, left_closed)), Some((right, right_closed))) => {
                text += "    after the further GET /:\n";
                text += &visible_diff(left, right);
                if left_closed != right_closed {
                    text += &format!("    - closed: {left_closed}\n    + closed: {right_closed}\n");
                }
            }
            (left, right) => {
                let (left, right) = (left.is_some(), right.is_some());
                text += &format!("    - asked a further GET /: {left}\n    + asked a further GET /: {right}\n");
            }
        }
        text
    }
}

fn masked(case: &Case, heard: Heard<'_>) -> Vec<u8> {
    let mut answers = Answers::new(case, heard.received, heard.closed);
    let mut bytes = Vec::with_capacity(heard.received.len());
    // Whatever cannot be read as an answer stands as it came.
    while let Ok(Some(response)) = answers.next() {
        if response.is_interim() {
            continue;
        }
        let start = bytes.len();
        bytes.extend_from_slice(response.bytes);
        for date in response.values_of("date") {
            let offset = date.as_ptr().addr() - response.bytes.as_ptr().addr();
            // The length stays visible: a Date that is sometimes longer is a fault.
            bytes[start + offset..][..date.len()].fill(b'#');
        }
    }
    bytes.extend_from_slice(answers.rest);
    bytes
}
