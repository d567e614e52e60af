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

/// One part of a pattern, between two slashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment<'t> {
    /// Equal bytes. Empty only at the end, where it stands for a trailing slash.
    Literal(&'t [u8]),
    /// `{name}`: one segment that is not empty.
    Param(&'t [u8]),
    /// `{*name}`: all that follows, possibly nothing.
    Rest(&'t [u8]),
}

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    NoSlash,
    Byte(u8),
    EmptySegment,
    DotSegment,
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
            Fault::Byte(b'?') => "a pattern holds no `?`: it would match nothing, for the query is no part of a path",
            Fault::Byte(b'#') => "a pattern holds no `#`: it would match nothing, for a fragment is never sent",
            Fault::Byte(b'%') => "a pattern holds no `%`: it is compared with the decoded path",
            Fault::Byte(b' ') => "a pattern holds no blank",
            Fault::Byte(0..0x20 | 0x7f) => "a pattern holds no control byte",
            Fault::Byte(_) => "a literal holds letters, digits and -._~!$&'()*+,;=:@ only",
            Fault::EmptySegment => "an empty segment can stand at the end only",
            Fault::DotSegment => "a dot segment matches nothing, for such paths are refused",
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

/// Reads a pattern segment by segment.
#[derive(Clone, Copy)]
pub(crate) struct Segments<'t> {
    pattern: &'t [u8],
    /// How much of it has been read: up to a slash, or the end.
    at: usize,
}

impl<'t> Segments<'t> {
    /// # Errors
    /// [`Fault::NoSlash`].
    pub(crate) const fn of(pattern: &'t str) -> Result<Segments<'t>, Fault> {
        match pattern.as_bytes() {
            [b'/', ..] => Ok(Segments { pattern: pattern.as_bytes(), at: 0 }),
            _ => Err(Fault::NoSlash),
        }
    }

    /// What has been read.
    pub(crate) const fn text(&self) -> &'t [u8] {
        self.pattern.split_at(self.at).0
    }

    /// The next segment, `None` behind the last one.
    pub(crate) const fn next(&mut self) -> Result<Option<Segment<'t>>, Fault> {
        if self.at == self.pattern.len() {
            return Ok(None);
        }
        let (pattern, start) = (self.pattern, self.at + 1);
        let mut end = start;
        let mut seen = 0;
        while end < pattern.len() && pattern[end] != b'/' {
            seen |= CLASS[pattern[end] as usize];
            end += 1;
        }
        self.at = end;
        let segment = pattern.split_at(end).0.split_at(start).1;
        let last = end == pattern.len();
        if seen & REFUSED != 0 {
            return Err(Fault::Byte(first_refused(segment)));
        }
        if seen & BRACE == 0 {
            return match literal_fault(segment, last) {
                Some(fault) => Err(fault),
                None => Ok(Some(Segment::Literal(segment))),
            };
        }
        let (name, parameter) = match segment {
            [b'{', b'*', name @ .., b'}'] if last => (name, Segment::Rest(name)),
            [b'{', b'*', _name @ .., b'}'] => return Err(Fault::RestNotLast),
            [b'{', name @ .., b'}'] => (name, Segment::Param(name)),
            _ => return Err(Fault::Brace),
        };
        match is_name(name) {
            true => Ok(Some(parameter)),
            false => Err(Fault::Name),
        }
    }
}

/// The names of the parameters of a pattern, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'t> {
    names: [&'t [u8]; PARAMS_MAX],
    len: usize,
}

impl<'t> Names<'t> {
    pub(crate) const fn as_slice(&self) -> &[&'t [u8]] {
        self.names.split_at(self.len).0
    }
}

/// Checks a pattern, and what takes more than one segment to see. Returns the names of its parameters.
pub(crate) const fn check(pattern: &str) -> Result<Names<'_>, Fault> {
    let mut segments = match Segments::of(pattern) {
        Ok(segments) => segments,
        Err(fault) => return Err(fault),
    };
    let mut names = Names { names: [b""; PARAMS_MAX], len: 0 };
    let mut segments_len = 0;
    loop {
        let name = match segments.next() {
            Err(fault) => return Err(fault),
            Ok(None) => return Ok(names),
            Ok(Some(Segment::Literal(_))) => None,
            Ok(Some(Segment::Param(name) | Segment::Rest(name))) => Some(name),
        };
        segments_len += 1;
        if segments_len > SEGMENTS_MAX {
            return Err(Fault::TooManySegments);
        }
        let Some(name) = name else { continue };
        let mut at = 0;
        while at < names.len {
            if same(names.names[at], name) {
                return Err(Fault::NameTwice);
            }
            at += 1;
        }
        if names.len == PARAMS_MAX {
            return Err(Fault::TooManyParams);
        }
        names.names[names.len] = name;
        names.len += 1;
    }
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
            let mut found = pattern.split_at(at).1;
            if let [b'*', behind @ ..] = found {
                found = behind;
            }
            if let Some((start, [b'}', ..])) = found.split_at_checked(name.len())
                && same(start, name)
            {
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
    if a.len() != b.len() {
        return false;
    }
    let (mut a, mut b) = (a, b);
    // Words first: the compiler's interpreter pays by the step.
    while let (Some((x, a_rest)), Some((y, b_rest))) = (a.split_first_chunk::<8>(), b.split_first_chunk::<8>()) {
        if u64::from_le_bytes(*x) != u64::from_le_bytes(*y) {
            return false;
        }
        (a, b) = (a_rest, b_rest);
    }
    while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (a_rest, b_rest);
    }
    true
}

const fn literal_fault(segment: &[u8], last: bool) -> Option<Fault> {
    if segment.is_empty() && !last {
        return Some(Fault::EmptySegment);
    }
    // `;` ends the segment for some servers, so the server refuses `..;x` like `..`.
    if let [b'.'] | [b'.', b'.'] | [b'.', b';', ..] | [b'.', b'.', b';', ..] = segment {
        return Some(Fault::DotSegment);
    }
    if segment.len() > LITERAL_BYTES_MAX {
        return Some(Fault::LiteralTooLong);
    }
    None
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

#[cold]
const fn first_refused(segment: &[u8]) -> u8 {
    let mut at = 0;
    while CLASS[segment[at] as usize] & REFUSED == 0 {
        at += 1;
    }
    segment[at]
}

const fn is_name(name: &[u8]) -> bool {
    if let [] | [b'0'..=b'9', ..] = name {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        if !name[at].is_ascii_alphanumeric() && name[at] != b'_' {
            return false;
        }
        at += 1;
    }
    true
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
    fn a_pattern_is_bounded() {
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
