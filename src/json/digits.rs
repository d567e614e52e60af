//! Numbers that take long to read, before anything reads them.
//!
//! A float is read as fast as its digits come, but for one case: more than 19 significant digits that are so close to the
//! middle between two floats that the first 19 do not tell which of the two it is. To decide that exactly takes up to
//! 50 µs for 25 bytes. Of honest numbers of that length at most one in a hundred is so hard; a body of nothing else would
//! hold up the loop for a second.

use std::fmt::Write as _;

/// What fits into a `u64`, whatever the digits are.
const EASY_DIGITS: usize = 19;

/// Whether more numbers of a JSON text are hard than honest ones would be.
///
/// A text without a run of digits of that length, as nearly all are, costs a look at one byte in twenty.
#[inline]
pub(super) fn are_hard(text: &[u8]) -> bool {
    let mut looked_at = text.iter().enumerate().skip(EASY_DIGITS).step_by(EASY_DIGITS + 1);
    looked_at.any(|(at, &byte)| is_of_mantissa(byte) && is_long_around(text, at)) && count(text)
}

fn is_of_mantissa(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.')
}

fn is_long_around(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev().take(EASY_DIGITS).take_while(|b| is_of_mantissa(**b)).count();
    let after = text[at..].iter().take(EASY_DIGITS + 1).take_while(|b| is_of_mantissa(**b)).count();
    before + after > EASY_DIGITS
}

/// Looks at the numbers between the strings until too many of them are hard.
#[cold]
fn count(text: &[u8]) -> bool {
    let (mut at, mut inside) = (0, false);
    let (mut long, mut hard) = (0_usize, 0_usize);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        at += match byte {
            b'\\' if inside => 2,
            b'"' => {
                inside = !inside;
                1
            }
            b'0'..=b'9' if !inside => {
                let is_of_number = |b: &&u8| is_of_mantissa(**b) || b"eE+-".contains(b);
                let len = rest.iter().take_while(is_of_number).count();
                if let Some(first) = First::of(&rest[..len]) {
                    long += 1;
                    hard += usize::from(first.is_hard());
                    if hard > 16 + long / 50 {
                        return true;
                    }
                }
                len
            }
            _ => 1,
        };
    }
    false
}

/// The first 19 significant digits of a longer number, and the power of ten behind them.
struct First {
    digits: u64,
    exponent: i64,
}

impl First {
    /// `None` for a number that has no more, that is a `u64`, or that is none.
    fn of(number: &[u8]) -> Option<First> {
        let (mut digits, mut taken, mut left) = (0_u64, 0, 0);
        let mut exponent = 0_i64;
        let mut behind_point = false;
        let mut bytes = number.iter();
        for &byte in &mut bytes {
            match byte {
                b'0' if taken == 0 => exponent -= i64::from(behind_point),
                b'0'..=b'9' if taken < EASY_DIGITS => {
                    digits = digits * 10 + u64::from(byte - b'0');
                    taken += 1;
                    exponent -= i64::from(behind_point);
                }
                b'0'..=b'9' => {
                    left += 1;
                    exponent += i64::from(!behind_point);
                }
                b'.' if !behind_point => behind_point = true,
                b'e' | b'E' => {
                    let power: i64 = std::str::from_utf8(bytes.as_slice()).ok()?.parse().ok()?;
                    exponent = exponent.saturating_add(power);
                    break;
                }
                _ => return None,
            }
        }
        let is_u64 = number.len() == EASY_DIGITS + 1 && exponent == 1 && !behind_point;
        (left > 0 && !is_u64).then_some(First { digits, exponent })
    }

    /// Whether the floats below and above it differ.
    fn is_hard(&self) -> bool {
        let mut text = String::with_capacity(48);
        let mut float = |digits: u64| {
            text.clear();
            let _ = write!(text, "{digits}e{}", self.exponent);
            text.parse::<f64>().ok()
        };
        float(self.digits) != float(self.digits + 1)
    }
}

/// A decimal number of no more digits than are read at once, if this one has more. It is smaller by less than one part in
/// 10^18.
pub(crate) fn shortened(number: &str) -> Option<String> {
    let (sign, magnitude) = number.split_at(usize::from(number.starts_with('-')));
    let First { digits, exponent } = First::of(magnitude.as_bytes())?;
    Some(format!("{sign}{digits}e{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The middle between the two smallest floats, and a little less.
    const HARD: &str = "2.4703282292062327208e-324";

    fn is_hard(number: &str) -> Option<bool> {
        First::of(number.as_bytes()).map(|first| first.is_hard())
    }

    #[test]
    fn a_number_is_hard_if_its_first_19_digits_do_not_tell_which_float_it_is() {
        for number in [
            HARD,
            "9007199254740993.00000000001",
            "1.00000000000000011102230246251565404",
            "0.500000000000000055511151231257827",
        ] {
            assert_eq!(is_hard(number), Some(true), "{number}");
        }
        for number in [
            "0.1000000000000000055511151231257827",
            "3.14159265358979323846",
            "123456789012345678901",
            "2.4703282292062327208e-9999",
        ] {
            assert_eq!(is_hard(number), Some(false), "{number}");
        }
    }

    #[test]
    fn a_number_of_19_digits_or_a_whole_one_of_20_is_never_hard() {
        for number in [
            "2.470328229206232720e-324",
            "9007199254740993.000",
            "0.0000000000000000000000000000001",
            "18446744073709551615",
            "9007199254740993",
        ] {
            assert_eq!(is_hard(number), None, "{number}");
        }
    }

    #[test]
    fn a_few_hard_numbers_are_read_and_a_body_of_them_is_not() {
        let list = |count: usize| format!("[{}]", vec![HARD; count].join(","));
        assert!(!are_hard(list(16).as_bytes()));
        assert!(are_hard(list(17).as_bytes()));
        // Honest ones around them earn more.
        let honest = vec!["0.1000000000000000055511"; 50].join(",");
        assert!(!are_hard(format!("[{honest},{}]", vec![HARD; 17].join(",")).as_bytes()));
        // Strings are no numbers, also behind an escaped quote.
        let text = format!("[\"\\\"{}\"]", vec![HARD; 1000].join(","));
        assert!(!are_hard(text.as_bytes()));
    }

    #[test]
    fn a_long_run_of_digits_is_seen_wherever_it_begins() {
        for before in 0..64 {
            let text = format!("[{}{}]", " ".repeat(before), vec![HARD; 17].join(","));
            assert!(are_hard(text.as_bytes()), "{before}");
            for end in 0..text.len() {
                let _ = are_hard(&text.as_bytes()[..end]);
            }
        }
    }

    #[test]
    fn what_is_shortened_is_the_same_float_unless_it_is_hard() {
        assert_eq!(shortened("1.5"), None);
        for none in
            ["12345678901234567890.1.1", "12345678901234567890-1", "12345678901234567890e", "12345678901234567890x"]
        {
            assert_eq!(shortened(none), None, "{none}");
        }
        for number in
            ["-0.1000000000000000055511151231257827", "3.14159265358979323846e-7", "-123456789012345678901234567890.5"]
        {
            let short = shortened(number).unwrap();
            assert_eq!(short.parse::<f64>(), number.parse::<f64>(), "{number} {short}");
        }
        assert_eq!(shortened(HARD).as_deref(), Some("2470328229206232720e-342"));
    }
}
