//! Integers are exact or refused; floats are the nearest.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

use super::{Any, accepted, malformed, misshapen, read, well_formed};
use crate::testing::Random;

#[test]
fn a_number_that_the_grammar_does_not_derive_is_malformed() {
    for (refused, neighbour) in [
        ("01", "1"),
        ("-01", "-1"),
        ("00", "0"),
        ("+1", "1"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("1.", "1.0"),
        ("1.e5", "1.0e5"),
        ("1e", "1e0"),
        ("1e+", "1e+0"),
        ("1E-", "1E-0"),
        ("1e5.5", "1e55"),
        ("1.5.5", "1.55"),
        ("--1", "-1"),
        ("-", "-0"),
        ("1-", "1"),
        ("1_000", "1000"),
        ("0x10", "0"),
        ("1f", "1"),
        ("1n", "1"),
        ("12345678901234567890123x", "12345678901234567890123"),
        ("\u{ff11}", "1"),
    ] {
        malformed(refused);
        malformed(format!("[{refused}]"));
        well_formed(neighbour);
        well_formed(format!("[{neighbour}]"));
    }
}

#[track_caller]
fn bounds<T>(low: T, high: T, below: &str, above: &str, message: &str)
where
    T: DeserializeOwned + Debug + PartialEq + ToString + Copy,
{
    accepted(low.to_string(), low);
    accepted(high.to_string(), high);
    for refused in [below, above, "1.0", "1e0", "0.5", "\"1\"", "true", "null", "[1]", "{}"] {
        misshapen::<T>(refused, message, "");
    }
}

#[test]
fn integers_are_in_range_or_of_the_wrong_shape() {
    bounds(u8::MIN, u8::MAX, "-1", "256", "expected an integer from 0 to 255");
    bounds(u16::MIN, u16::MAX, "-1", "65536", "expected an integer from 0 to 65535");
    let message = "expected an integer of 32 bits, not negative";
    bounds(u32::MIN, u32::MAX, "-1", "4294967296", message);
    let message = "expected an integer of 64 bits, not negative";
    bounds(u64::MIN, u64::MAX, "-1", "18446744073709551616", message);
    bounds(0, u128::from(u64::MAX), "-1", "18446744073709551616", message);
    bounds(i8::MIN, i8::MAX, "-129", "128", "expected an integer from -128 to 127");
    bounds(i16::MIN, i16::MAX, "-32769", "32768", "expected an integer from -32768 to 32767");
    let message = "expected an integer of 32 bits";
    bounds(i32::MIN, i32::MAX, "-2147483649", "2147483648", message);
    let message = "expected an integer of 64 bits";
    bounds(i64::MIN, i64::MAX, "-9223372036854775809", "9223372036854775808", message);
    let (low, high) = (i128::from(i64::MIN), i128::from(u64::MAX));
    bounds(low, high, "-9223372036854775809", "18446744073709551616", message);
}

#[test]
fn long_integers_are_never_rounded_into_an_integer() {
    for digits in 21..=309 {
        let message = "expected an integer of 64 bits, not negative";
        misshapen::<u64>(&format!("1{}", "0".repeat(digits - 1)), message, "");
        let minus = format!("-1{}", "0".repeat(digits - 1));
        misshapen::<i64>(&minus, "expected an integer of 64 bits", "");
    }
    malformed(format!("1{}", "0".repeat(309)));
    accepted("9007199254740993", 9_007_199_254_740_993_u64);
    misshapen::<i64>("9007199254740993.0", "expected an integer of 64 bits", "");
}

#[test]
fn minus_zero_is_the_integer_zero_and_the_float_minus_zero() {
    accepted("-0", 0_u8);
    accepted("-0", 0_i64);
    for json in ["-0", "-0.0", "-0e5", "-0e99999999999", "-1e-400"] {
        assert_eq!(read::<f64>(json).map(f64::to_bits), Ok((-0.0_f64).to_bits()), "{json}");
        assert_eq!(read::<f32>(json).map(f32::to_bits), Ok((-0.0_f32).to_bits()), "{json}");
    }
    assert_eq!(read::<f64>("0").map(f64::to_bits), Ok(0));
    accepted("-0", Any::Signed(0));
}

#[test]
fn integers_are_read_into_floats_as_the_nearest() {
    for int in ["1", "-1", "9007199254740993", "18446744073709551615", "-9223372036854775807"] {
        accepted(int, int.parse::<f64>().unwrap());
        accepted(int, int.parse::<f32>().unwrap());
    }
    for int in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"] {
        accepted(int, int.parse::<f64>().unwrap());
    }
    // Between two f32, one step above the middle: by way of f64 it would fall to the even one.
    accepted("9007199791611905", 9_007_200_328_482_816_f32);
}

#[test]
fn a_literal_beside_the_middle_of_two_f32_is_taken_for_it_only_if_f64_cannot_tell() {
    let (even, odd) = (1.0_f32, 1.0_f32.next_up());
    // The middle goes to the even one, as everywhere.
    accepted("1.000000059604644775390625", even);
    // Nearer to it than half a step of f64: by itself it is nearer to the odd one.
    assert_eq!("1.0000000596046447753906251".parse(), Ok(odd));
    accepted("1.0000000596046447753906251", even);
    accepted("1.0000000596046448", even);
    // One step of f64 further, on both sides.
    accepted("1.0000000596046450", odd);
    accepted("1.0000000596046446", even);
}

#[test]
fn an_f32_is_read_back_from_what_it_is_printed_as() {
    let mut bits = 1_u32;
    for _ in 0..20_000 {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let float = f32::from_bits(bits);
        if float.is_finite() {
            for text in [format!("{float:e}"), format!("{float:.9e}"), format!("{float:.17e}")] {
                assert_eq!(read::<f32>(&text).map(f32::to_bits), Ok(bits), "{text}");
            }
        }
    }
}

#[test]
fn a_number_beyond_f64_is_malformed_and_one_beyond_f32_is_misshapen() {
    for (refused, neighbour) in [
        ("1e309", "1e308"),
        ("-1e309", "-1e308"),
        ("1e400", "1e-400"),
        ("1.7976931348623159e308", "1.7976931348623157e308"),
        ("1e99999999999999999999", "1e-99999999999999999999"),
    ] {
        malformed(refused);
        well_formed(neighbour);
    }
    malformed("9".repeat(400));
    well_formed("9".repeat(308));

    accepted("3.4028235e38", f32::MAX);
    let message = "expected a number in the range of f32";
    for refused in ["3.4028236e38", "-3.5e38", "1e39", "1e308"] {
        misshapen::<f32>(refused, message, "");
        accepted(refused, refused.parse::<f64>().unwrap());
    }
    accepted("1e-60", 0.0_f32);
    misshapen::<f32>("\"1\"", "expected a number", "");
    misshapen::<f64>("null", "expected a number", "");
}

/// A decimal that strains a parser: many digits, zeros at both ends, exponents near the bounds,
/// halfway points.
fn decimal(random: &mut Random) -> String {
    let mut text = String::new();
    if random.below(3) == 0 {
        text.push('-');
    }
    match random.below(4) {
        0 => {
            let float = f64::from_bits(random.next());
            let float = if float.is_finite() { float.abs() } else { 1.5 };
            return text + &format!("{float:e}");
        }
        // The middle between two neighbours, exactly, and by a digit beside it.
        1 => {
            let even = (1_u64 << 53) | (random.next() >> 12);
            let mut middle = (u128::from(even) << random.between(1, 10)).to_string();
            let last = middle.pop().map_or('0', |_| char::from(b'0' + random.below(10) as u8));
            middle.push(last);
            return text + &middle + random.pick::<&str>(&[".0", ".5", "e0", ".00000000000000001"]);
        }
        _ => {}
    }
    let digits = |random: &mut Random, most: u64, text: &mut String| {
        for _ in 0..random.between(1, most) {
            text.push(char::from(b'0' + random.below(10) as u8));
        }
    };
    if random.below(3) == 0 {
        text.push('0');
    } else {
        text.push(char::from(b'1' + random.below(9) as u8));
        digits(random, 25, &mut text);
    }
    if random.below(4) != 0 {
        text.push('.');
        if random.below(3) == 0 {
            text.push_str(&"0".repeat(random.len(0, 24)));
        }
        digits(random, 25, &mut text);
    }
    if random.below(2) == 0 {
        text += random.pick::<&str>(&["e", "E", "e+", "e-"]);
        text += &random.below(330).to_string();
    }
    text
}

#[test]
fn random_decimals_are_read_as_the_nearest_float() {
    let mut random = Random::new(0x5EED);
    for _ in 0..20_000 {
        let json = decimal(&mut random);
        let nearest: f64 = json.parse().unwrap();
        if nearest.is_infinite() {
            malformed(&json);
            continue;
        }
        let mut bytes = [json.as_bytes(), &[b'7'; 64]].concat();
        let tape = &mut super::Tape::default();
        let float: f64 = super::parse(&mut bytes, json.len(), tape).unwrap();
        assert_eq!(float.to_bits(), nearest.to_bits(), "{json}");
    }
}

#[test]
fn keys_are_read_as_integers_and_booleans() {
    use std::collections::BTreeMap;

    accepted("{\"1\":2,\"-3\":4}", BTreeMap::from([(1_i8, 2_u8), (-3, 4)]));
    accepted("{\"18446744073709551615\":0}", BTreeMap::from([(u64::MAX, 0)]));
    let wide = u128::MAX.to_string();
    accepted(format!("{{\"{wide}\":0}}"), BTreeMap::from([(u128::MAX, 0)]));
    accepted("{\"true\":1,\"false\":0}", BTreeMap::from([(true, 1), (false, 0)]));

    #[derive(Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Id(u16);
    accepted("{\"7\":1}", BTreeMap::from([(Id(7), 1)]));
    accepted("{\"7\":1}", BTreeMap::from([(Some(7_u8), 1)]));

    for key in ["", " 1", "1 ", "+1", "01", "1.0", "1e2", "0x1", "256", "-1", "-", "--1", "\\u0660"] {
        let message = "expected keys that are integers in range";
        misshapen::<BTreeMap<u8, u8>>(&format!("{{\"{key}\":1}}"), message, "");
    }
    let message = "expected keys that are booleans";
    misshapen::<BTreeMap<bool, u8>>("{\"True\":1}", message, "");
}
