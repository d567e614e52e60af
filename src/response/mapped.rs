//! A refusal, written by a mapper.

use super::{Asked, Facts, Response, Sent, write_status_line};
use crate::caught::caught;
use crate::output::Output;
use crate::rejection::Rejection;

/// An answer to a refusal, which a mapper is to write.
///
/// The mapper's function calls [`map`](Refusing::map), and not the machine: so a program without a mapper holds none of
/// the code.
#[doc(hidden)]
#[derive(Debug)]
pub struct Refusing<'o> {
    pub(crate) output: &'o mut Output,
    pub(crate) facts: Facts,
}

/// What became of it.
#[doc(hidden)]
#[derive(Debug)]
pub enum Mapped {
    Answered,
    /// And the connection is to be closed.
    Closing,
    /// Nothing is written.
    Panicked,
}

impl Refusing<'_> {
    /// Writes what `map` makes of the refusal.
    ///
    /// The fields of the refusal stay, for a 401 without `WWW-Authenticate` would break a rule, and so does its status
    /// unless the mapper gives another: an error that says 200 because somebody forgot it would be believed.
    #[doc(hidden)]
    pub fn map<S>(
        self,
        state: &mut S,
        mut rejection: Rejection,
        map: impl for<'r> FnOnce(&mut S, Rejection, Response<'r>) -> Sent<'r>,
    ) -> Mapped {
        let Refusing { output, facts } = self;
        let (mark, status) = (output.mark(), rejection.status());
        let mut asked = Asked::Nothing;
        let mapped = caught(|| {
            let mut response = Response::new(output, &mut asked, facts);
            for (name, value) in rejection.take_fields() {
                // The type is that of other content.
                if !name.eq_ignore_ascii_case("content-type") {
                    response = response.field(&name, value.as_bytes());
                }
            }
            let _ = map(state, rejection, response);
        });
        if mapped.is_none() {
            output.roll_back(mark);
            return Mapped::Panicked;
        }
        if status.has_content() {
            let mut line = Vec::new();
            write_status_line(&mut line, status);
            output.replace_start(mark, b"HTTP/1.1 200 OK\r\n", &line);
        }
        // What it answered with may be a refusal, but nobody is asked about that.
        output.source = None;
        if asked == Asked::Close { Mapped::Closing } else { Mapped::Answered }
    }
}
