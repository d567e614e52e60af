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
    /// What is still to be read, from a slash on. Empty at the end.
    rest: &'t [u8],
}

impl<'t> Segments<'t> {
    /// # Errors
    /// [`Fault::NoSlash`].
    pub(crate) const fn of(pattern: &'t str) -> Result<Segments<'t>, Fault> {
        match pattern.as_bytes() {
            [b'/', ..] => Ok(Segments { rest: pattern.as_bytes() }),
            _ => Err(Fault::NoSlash),
        }
    }

    /// The next segment, `None` behind the last one.
    pub(crate) const fn next(&mut self) -> Result<Option<Segment<'t>>, Fault> {
        let [b'/', after @ ..] = self.rest else { return Ok(None) };
        let mut len = 0;
        let mut braces = false;
        while len < after.len() && after[len] != b'/' {
            let byte = after[len];
            braces |= byte == b'{' || byte == b'}';
            if !is_pattern_byte(byte) {
                return Err(Fault::Byte(byte));
            }
            len += 1;
        }
        let (segment, rest) = after.split_at(len);
        self.rest = rest;
        if !braces {
            return match literal_fault(segment, rest.is_empty()) {
                Some(fault) => Err(fault),
                None => Ok(Some(Segment::Literal(segment))),
            };
        }
        let parameter = match segment {
            [b'{', b'*', name @ .., b'}'] if rest.is_empty() => (name, Segment::Rest(name)),
            [b'{', b'*', _name @ .., b'}'] => return Err(Fault::RestNotLast),
            [b'{', name @ .., b'}'] => (name, Segment::Param(name)),
            _ => return Err(Fault::Brace),
        };
        match is_name(parameter.0) {
            true => Ok(Some(parameter.1)),
            false => Err(Fault::Name),
        }
    }
}

/// Checks what takes more than one segment to see. Each segment is read once here and once as it becomes a node.
pub(crate) const fn check(pattern: &str) -> Result<(), Fault> {
    let mut segments = match Segments::of(pattern) {
        Ok(segments) => segments,
        Err(fault) => return Err(fault),
    };
    let mut names: [&[u8]; PARAMS_MAX] = [b""; PARAMS_MAX];
    let mut names_len = 0;
    let mut segments_len = 0;
    loop {
        let name = match segments.next() {
            Err(fault) => return Err(fault),
            Ok(None) => return Ok(()),
            Ok(Some(Segment::Literal(_))) => None,
            Ok(Some(Segment::Param(name) | Segment::Rest(name))) => Some(name),
        };
        segments_len += 1;
        if segments_len > SEGMENTS_MAX {
            return Err(Fault::TooManySegments);
        }
        let Some(name) = name else { continue };
        let mut at = 0;
        while at < names_len {
            if same(names[at], name) {
                return Err(Fault::NameTwice);
            }
            at += 1;
        }
        if names_len == PARAMS_MAX {
            return Err(Fault::TooManyParams);
        }
        names[names_len] = name;
        names_len += 1;
    }
}

/// The names of the parameters of a pattern, in order. Faults are reported elsewhere; here they give some name or none.
#[derive(Clone, Copy)]
pub(crate) struct Names<'t> {
    rest: &'t [u8],
}

impl<'t> Names<'t> {
    pub(crate) const fn of(pattern: &'t str) -> Names<'t> {
        Names { rest: pattern.as_bytes() }
    }

    pub(crate) const fn next(&mut self) -> Option<&'t [u8]> {
        while let [byte, after @ ..] = self.rest {
            self.rest = after;
            if *byte == b'{' {
                let from = match after {
                    [b'*', from @ ..] => from,
                    from => from,
                };
                let mut len = 0;
                while len < from.len() && from[len] != b'}' {
                    len += 1;
                }
                let (name, rest) = from.split_at(len);
                self.rest = rest;
                return Some(name);
            }
        }
        None
    }
}

/// The place of a parameter among those of a pattern, or `None` if it has none of that name.
pub(crate) const fn place(pattern: &str, name: &str) -> Option<usize> {
    let mut names = Names::of(pattern);
    let mut place = 0;
    while let Some(found) = names.next() {
        if same(found, plain(name)) {
            return Some(place);
        }
        place += 1;
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

/// `pchar` without escapes (RFC 3986 3.3), the braces of parameters, and all that is not ASCII: that can only be sent
/// escaped, and is compared decoded.
const fn is_pattern_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || byte >= 0x80
        || matches!(byte, b'{' | b'}' | b'!' | b'$' | b'&'..=b'.' | b':' | b';' | b'=' | b'@' | b'_' | b'~')
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
        assert_eq!(check(pattern), Err(fault), "{pattern:?}");
    }

    #[track_caller]
    fn takes(pattern: &str) {
        assert_eq!(check(pattern), Ok(()), "{pattern:?}");
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
        assert_eq!(place("/a/{b", "b"), Some(0));
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
