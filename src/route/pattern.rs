//! The grammar of patterns, and the sentence for each way to break it.
//!
//! ```text
//! pattern = 1*( "/" segment )
//! segment = literal / "{" name "}" / "{*" name "}"
//! ```
//!
//! A literal holds what RFC 3986 calls `pchar`, without escapes, or letters beyond ASCII: it is compared with the decoded
//! segment of a path. Everything here is `const`, so that the compiler is the one that refuses a pattern. Knows no table.

use crate::request::PARAMS_MAX;

/// The most segments of one pattern.
pub(crate) const SEGMENTS_MAX: usize = 32;

/// The most bytes of one literal segment.
pub(crate) const LITERAL_BYTES_MAX: usize = 255;

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    NoSlash,
    Byte(u8),
    EmptySegment,
    DotSegment,
    OtherParam,
    Brace,
    Name,
    NameTwice,
    RestNotLast,
    TooManyParams,
    TooManySegments,
    LiteralTooLong,
}

impl Fault {
    /// The rule, to follow `GET "/pattern": `.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Fault::NoSlash => "a pattern begins with `/`",
            Fault::Byte(b'?') => "a pattern cannot contain `?`: the query is not part of the path, so it never matches",
            Fault::Byte(b'#') => "a pattern cannot contain `#`: a fragment is never sent, so it never matches",
            Fault::Byte(b'%') => "a pattern cannot contain `%`: it is compared with the decoded path",
            Fault::Byte(b' ') => "a pattern cannot contain a blank",
            Fault::Byte(0..0x20 | 0x7f) => "a pattern cannot contain a control byte",
            Fault::Byte(_) => "a literal holds letters, digits and -._~!$&'()*+,;=:@ only",
            Fault::EmptySegment => "an empty segment can stand at the end only",
            Fault::DotSegment => "a dot segment matches nothing, for such paths are refused",
            Fault::OtherParam => "a parameter is written `{name}`, or `{*name}` for all that follows, not `:name`",
            Fault::Brace => "a parameter takes a whole segment: `{name}`, or `{*name}` at the end",
            Fault::Name => "the name of a parameter is an identifier in ASCII: it is the name of an argument",
            Fault::NameTwice => "two parameters have the same name",
            Fault::RestNotLast => "a parameter `{*name}` takes all that follows, so it stands at the end",
            Fault::TooManyParams => "a pattern has 8 parameters at most",
            Fault::TooManySegments => "a pattern has 32 segments at most",
            Fault::LiteralTooLong => "a literal segment has 255 bytes at most",
        }
    }
}

const _: () = assert!(PARAMS_MAX == 8 && SEGMENTS_MAX == 32 && LITERAL_BYTES_MAX == 255, "the sentences say so");

// What follows indexes instead of slicing: the compiler's interpreter pays for each call, and slicing is a dozen.

/// The names of the parameters of a pattern, in order, by where they stand in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    bounds: [(usize, usize); PARAMS_MAX],
    len: usize,
}

impl Names {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The name at this place.
    pub(crate) const fn get<'t>(&self, pattern: &'t str, place: usize) -> &'t [u8] {
        let (start, end) = self.bounds[place];
        pattern.as_bytes().split_at(end).0.split_at(start).1
    }
}

/// Checks a pattern. Returns the names of its parameters.
pub(crate) const fn check(pattern: &str) -> Result<Names, Fault> {
    let pattern = pattern.as_bytes();
    let mut names = Names { bounds: [(0, 0); PARAMS_MAX], len: 0 };
    let mut segments_len = 0;
    let mut at = 0;
    if pattern.is_empty() || pattern[0] != b'/' {
        return Err(Fault::NoSlash);
    }
    while at < pattern.len() {
        let start = at + 1;
        let mut end = start;
        let mut seen = 0;
        while end < pattern.len() && pattern[end] != b'/' {
            seen |= CLASS[pattern[end] as usize];
            end += 1;
        }
        at = end;
        if seen & REFUSED != 0 {
            return Err(Fault::Byte(first_refused(pattern, start)));
        }
        let fault = if seen & BRACE == 0 {
            literal_fault(pattern, start, end)
        } else {
            param_fault(pattern, start, end, &mut names)
        };
        if let Some(fault) = fault {
            return Err(fault);
        }
        segments_len += 1;
        if segments_len > SEGMENTS_MAX {
            return Err(Fault::TooManySegments);
        }
    }
    Ok(names)
}

const fn literal_fault(pattern: &[u8], start: usize, end: usize) -> Option<Fault> {
    if start == end {
        return if end < pattern.len() { Some(Fault::EmptySegment) } else { None };
    }
    let mut dots = 0;
    while start + dots < end && pattern[start + dots] == b'.' {
        dots += 1;
    }
    // `;` ends the segment for some servers, so the server refuses `..;x` like `..`.
    if (dots == 1 || dots == 2) && (start + dots == end || pattern[start + dots] == b';') {
        return Some(Fault::DotSegment);
    }
    // How other routers write a parameter. It would be a row that waits for a colon.
    if pattern[start] == b':' || pattern[start] == b'*' {
        return Some(Fault::OtherParam);
    }
    if end - start > LITERAL_BYTES_MAX { Some(Fault::LiteralTooLong) } else { None }
}

const fn param_fault(pattern: &[u8], start: usize, end: usize, names: &mut Names) -> Option<Fault> {
    if pattern[start] != b'{' || pattern[end - 1] != b'}' {
        return Some(Fault::Brace);
    }
    let rest = pattern[start + 1] == b'*';
    if rest && end < pattern.len() {
        return Some(Fault::RestNotLast);
    }
    let (start, end) = (start + 1 + rest as usize, end - 1);
    if start >= end || pattern[start].is_ascii_digit() {
        return Some(Fault::Name);
    }
    let mut at = start;
    while at < end {
        if !pattern[at].is_ascii_alphanumeric() && pattern[at] != b'_' {
            return Some(if pattern[at] == b'{' || pattern[at] == b'}' { Fault::Brace } else { Fault::Name });
        }
        at += 1;
    }
    let mut place = 0;
    while place < names.len {
        let (other_start, other_end) = names.bounds[place];
        if other_end - other_start == end - start && is_at(pattern, other_start, pattern, start, end - start) {
            return Some(Fault::NameTwice);
        }
        place += 1;
    }
    if names.len == PARAMS_MAX {
        return Some(Fault::TooManyParams);
    }
    names.bounds[names.len] = (start, end);
    names.len += 1;
    None
}

/// Whether the same bytes stand at two places.
const fn is_at(a: &[u8], a_start: usize, b: &[u8], b_start: usize, len: usize) -> bool {
    let mut at = 0;
    while at < len {
        if a[a_start + at] != b[b_start + at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The place of a parameter among those of a pattern, or `None` if it has none of that name.
///
/// Faults are reported elsewhere; here they give some place or none.
pub(crate) const fn place(pattern: &str, name: &str) -> Option<usize> {
    let (pattern, name) = (pattern.as_bytes(), plain(name));
    let mut place = 0;
    let mut at = 0;
    while at < pattern.len() {
        at += 1;
        if pattern[at - 1] == b'{' {
            if at < pattern.len() && pattern[at] == b'*' {
                at += 1;
            }
            let end = at + name.len();
            if end < pattern.len() && pattern[end] == b'}' && is_at(pattern, at, name, 0, name.len()) {
                return Some(place);
            }
            place += 1;
        }
    }
    None
}

/// The name of an argument without the mark of a raw identifier.
pub(crate) const fn plain(name: &str) -> &[u8] {
    match name.as_bytes() {
        [b'r', b'#', name @ ..] => name,
        name => name,
    }
}

/// Equality of bytes, which `==` is not in a `const fn`.
pub(crate) const fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && is_at(a, 0, b, 0, a.len())
}

/// Whether two names differ by one letter in three at most: put in, left out or changed.
pub(crate) const fn is_near(a: &[u8], b: &[u8]) -> bool {
    const LEN_MAX: usize = 64;
    if a.len() >= LEN_MAX || b.len() >= LEN_MAX {
        return false;
    }
    // How far the letters of `a` so far are from each start of `b` (Levenshtein's distance, row by row).
    let mut distances = [0; LEN_MAX];
    let mut at = 0;
    while at <= b.len() {
        distances[at] = at;
        at += 1;
    }
    let mut row = 0;
    while row < a.len() {
        let mut diagonal = distances[0];
        distances[0] = row + 1;
        at = 0;
        while at < b.len() {
            let changed = diagonal + (a[row] != b[at]) as usize;
            diagonal = distances[at + 1];
            let mut least = changed;
            if distances[at] + 1 < least {
                least = distances[at] + 1;
            }
            if diagonal + 1 < least {
                least = diagonal + 1;
            }
            distances[at + 1] = least;
            at += 1;
        }
        row += 1;
    }
    let longer = if a.len() > b.len() { a.len() } else { b.len() };
    let most = if longer < 3 { 1 } else { longer / 3 };
    distances[b.len()] <= most && longer > 1
}

// What a byte means to the grammar, one bit each.
const REFUSED: u8 = 1;
const BRACE: u8 = 2;

/// Taken are `pchar` without escapes (RFC 3986 3.3), the braces of parameters, and all that is not ASCII: that can only
/// be sent escaped, and is compared decoded.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 0x80 {
        class[byte as usize] = match byte {
            b'{' | b'}' => BRACE,
            b'!' | b'$' | b'&'..=b'.' | b':' | b';' | b'=' | b'@' | b'_' | b'~' => 0,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => 0,
            _ => REFUSED,
        };
        byte += 1;
    }
    class
};

const fn first_refused(pattern: &[u8], start: usize) -> u8 {
    let mut at = start;
    while CLASS[pattern[at] as usize] & REFUSED == 0 {
        at += 1;
    }
    pattern[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(pattern: &str, fault: Fault) {
        assert_eq!(check(pattern).err(), Some(fault), "{pattern:?}");
    }

    #[track_caller]
    fn takes(pattern: &str) {
        assert_eq!(check(pattern).err(), None, "{pattern:?}");
    }

    #[test]
    fn a_pattern_begins_with_a_slash() {
        takes("/");
        takes("/a");
        refuses("", Fault::NoSlash);
        refuses("a", Fault::NoSlash);
        refuses("{a}", Fault::NoSlash);
    }

    #[test]
    fn bytes_that_no_decoded_path_is_compared_with_are_refused() {
        for byte in ["?", "#", "%", " ", "\t", "\n", "\0", "\x7f", "\"", "<", ">", "[", "]", "\\", "^", "`", "|"] {
            refuses(&format!("/a{byte}"), Fault::Byte(byte.as_bytes()[0]));
        }
        takes("/-._~!$&'()*+,;=:@");
        takes("/ABCxyz019");
        takes("/über");
    }

    #[test]
    fn an_empty_segment_stands_at_the_end_only() {
        takes("/a/");
        refuses("/a//", Fault::EmptySegment);
        refuses("//", Fault::EmptySegment);
        refuses("//a", Fault::EmptySegment);
        refuses("/a//b", Fault::EmptySegment);
    }

    #[test]
    fn parameters_as_other_routers_write_them_are_refused() {
        for pattern in ["/x/:id", "/:id/x", "/*rest", "/*", "/:"] {
            refuses(pattern, Fault::OtherParam);
        }
        takes("/x/a:id");
        takes("/x:batch/a*");
    }

    #[test]
    fn dot_segments_are_refused() {
        refuses("/.", Fault::DotSegment);
        refuses("/a/../b", Fault::DotSegment);
        refuses("/..;x", Fault::DotSegment);
        takes("/...");
        takes("/.well-known/a");
        takes("/a.b");
    }

    #[test]
    fn a_parameter_takes_a_whole_segment() {
        takes("/{a}");
        takes("/{a}/{b}/");
        for pattern in ["/x{a}", "/{a}x", "/{a}{b}", "/{a", "/a}", "/{", "/}", "/}{", "/{a}.json"] {
            assert!(matches!(check(pattern), Err(Fault::Brace | Fault::Name)), "{pattern}");
        }
    }

    #[test]
    fn a_parameter_has_the_name_of_an_argument() {
        takes("/{_a1}");
        takes("/{type}");
        for pattern in ["/{}", "/{*}", "/{1a}", "/{a-b}", "/{a b}", "/{ä}", "/{a:u64}"] {
            assert!(check(pattern).is_err(), "{pattern}");
        }
        refuses("/{a}/{a}", Fault::NameTwice);
        refuses("/{a}/{*a}", Fault::NameTwice);
        takes("/{a}/{b}");
    }

    #[test]
    fn the_rest_stands_at_the_end() {
        takes("/{*rest}");
        takes("/a/{*rest}");
        refuses("/{*rest}/", Fault::RestNotLast);
        refuses("/{*rest}/b", Fault::RestNotLast);
    }

    #[test]
    fn a_pattern_has_at_most_8_parameters_32_segments_and_literals_of_255_bytes() {
        takes("/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}");
        refuses("/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", Fault::TooManyParams);
        takes(&"/a".repeat(32));
        refuses(&"/a".repeat(33), Fault::TooManySegments);
        takes(&format!("/{}", "a".repeat(255)));
        refuses(&format!("/{}", "a".repeat(256)), Fault::LiteralTooLong);
    }

    #[test]
    fn parameters_are_found_by_name() {
        assert_eq!(place("/a/{b}/{c}/{*d}", "b"), Some(0));
        assert_eq!(place("/a/{b}/{c}/{*d}", "d"), Some(2));
        assert_eq!(place("/a/{type}", "r#type"), Some(0));
        assert_eq!(place("/a/{b}", "a"), None);
        assert_eq!(place("/a/{bb}", "b"), None);
        assert_eq!(place("/a/{b", "b"), None);
        assert_eq!(place("/a/{b}", "bb"), None);
    }

    #[test]
    fn a_name_with_one_letter_in_three_wrong_is_near() {
        for (a, b) in [("id", "idd"), ("id", "i"), ("user_id", "userid"), ("name", "nmae"), ("path", "paht")] {
            let far = a == "name" || a == "path";
            assert_eq!(is_near(a.as_bytes(), b.as_bytes()), !far, "{a} {b}");
            assert_eq!(is_near(b.as_bytes(), a.as_bytes()), !far, "{b} {a}");
        }
        assert!(is_near(b"resource", b"ressource") && is_near(b"customer", b"custoemr"));
        assert!(!is_near(b"id", b"body") && !is_near(b"a", b"b") && !is_near(b"response", b"resource_name"));
    }

    #[test]
    fn bytes_are_equal_or_not_at_every_length() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        for len in 0..text.len() {
            assert!(same(&text[..len], &text[..len]));
            for at in 0..len {
                let mut other = text.to_vec();
                other[at] = b'!';
                assert!(!same(&text[..len], &other[..len]));
            }
            assert!(!same(&text[..len], &text[..len + 1]));
        }
    }
}
