//! Reads `Date`.

/// Seconds since 1970 of an IMF-fixdate (RFC 9110 5.6.7), such as `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// `None` for anything else: a one-digit day, a wrong name of the day, the two obsolete forms, a date before 1970.
pub fn parse_imf_fixdate(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let punctuation = text.get(3..5)? == ", "
        && text.get(7..8)? == " "
        && text.get(11..12)? == " "
        && text.get(16..17)? == " "
        && text.get(19..20)? == ":"
        && text.get(22..23)? == ":"
        && text.get(25..)? == " GMT";
    if !punctuation {
        return None;
    }
    let day = digits(text.get(5..7)?)?;
    let month = MONTHS.iter().position(|name| Some(*name) == text.get(8..11))?;
    let year = digits(text.get(12..16)?)?;
    let (hour, minute) = (digits(text.get(17..19)?)?, digits(text.get(20..22)?)?);
    let second = digits(text.get(23..25)?)?;

    let in_range = year >= 1970 && (1..=days_in_month(year, month)).contains(&day) && hour < 24 && minute < 60;
    // 60 is a leap second.
    if !in_range || second > 60 {
        return None;
    }
    let days = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum::<u64>()
        + (0..month).map(|month| days_in_month(year, month)).sum::<u64>()
        + (day - 1);
    if text.get(..3)? != DAYS[(days % 7) as usize] {
        return None;
    }
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Not `str::parse` alone: it takes a leading `+`.
fn digits(text: &str) -> Option<u64> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn days_in_month(year: u64, month: usize) -> u64 {
    const DAYS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    DAYS[month] + u64::from(month == 1 && is_leap(year))
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// From Thursday on, since 1 January 1970 was one.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
