//! Dates, against a calendar that counts days.

use sprat::internals::date_line;

use super::input::Input;

/// The line of any second, whatever the line said before, is what a calendar that counts day by day says.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let first = input.number();
    let mut then = Vec::new();
    while !input.is_empty() && then.len() < 8 {
        // Near the last one, or anywhere.
        let last = *then.last().unwrap_or(&first);
        then.push(match input.byte() {
            255 => input.number(),
            254 => last % LAST,
            step => last.wrapping_add(u64::from(step)).wrapping_sub(64),
        });
        let line = date_line(first, &then);
        assert_eq!(std::str::from_utf8(&line), Ok(&*naive(then[then.len() - 1])));
    }
    assert_eq!(std::str::from_utf8(&date_line(first, &[])), Ok(&*naive(first)));
}

/// The last second of the year 9999, where a broken clock stays.
const LAST: u64 = 253_402_300_799;

/// 97 of them are leap years.
const DAYS_IN_400_YEARS: u64 = 400 * 365 + 97;

fn naive(unix_seconds: u64) -> String {
    let unix_seconds = unix_seconds.min(LAST);
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // The calendar repeats itself after 400 years, so that no more than those are counted.
    let (mut year, mut day) = (1970 + 400 * (days / DAYS_IN_400_YEARS), days % DAYS_IN_400_YEARS);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][month];
    let name = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("Date: {name}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT\r\n", day + 1)
}
