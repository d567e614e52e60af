use std::mem::MaybeUninit;

use crate::head;
use crate::limits::Limits;
use crate::reject::Reject;
use crate::target::{self, Form, Target};

/// Form, path, query, host, and whether the path holds an escape.
type Read = (Form, String, Option<String>, Option<String>, bool);

fn read(line: &str, host: &str) -> Result<Read, Reject> {
    let input = format!("{line} HTTP/1.1\r\n{host}\r\n");
    let mut slots = [const { MaybeUninit::uninit() }; 8];
    let (head, known) = head::parse(input.as_bytes(), &mut slots, &Limits::DEFAULT)?;
    if let Some(host) = known.host {
        target::check_host(host)?;
    }
    let read = target::read(&head, known.host);
    if target::is_plain(&head, known.host) {
        assert_eq!(read, Ok(Target::plain(head.target)), "{line}: plain, and yet not");
    }
    let t = read?;
    Ok((
        t.form,
        t.path.to_owned(),
        t.query.map(str::to_owned),
        target::host(&head, t.form, known.host).map(str::to_owned),
        t.escaped,
    ))
}

#[track_caller]
fn accepts(line: &str, form: Form, path: &str, query: Option<&str>) {
    let (got_form, got_path, got_query, ..) = read(line, "Host: a\r\n").unwrap_or_else(|r| panic!("{line}: {r:?}"));
    assert_eq!((got_form, &*got_path, got_query.as_deref()), (form, path, query), "{line}");
}

#[track_caller]
fn refuses(line: &str, reject: Reject) {
    assert_eq!(read(line, "Host: a\r\n").map(|_| ()), Err(reject), "{line}");
}

#[test]
fn the_four_forms_go_with_their_methods() {
    accepts("GET /", Form::Origin, "/", None);
    accepts("GET /a/b?c=d?e", Form::Origin, "/a/b", Some("c=d?e"));
    accepts("GET /a?", Form::Origin, "/a", Some(""));
    accepts("GET http://h/a?b", Form::Absolute, "/a", Some("b"));
    accepts("GET hTTpS://h:80", Form::Absolute, "/", None);
    accepts("GET http://h?q", Form::Absolute, "/", Some("q"));
    accepts("OPTIONS *", Form::Asterisk, "*", None);
    accepts("CONNECT h:443", Form::Authority, "", None);
    for line in [
        "GET *",
        "GET foo",
        "GET ?a=b",
        "CONNECT /",
        "CONNECT h",
        "CONNECT :1",
        "OPTIONS *a",
        "GET ftp://h/",
        "GET http:///",
        "GET http://:80/",
    ] {
        refuses(line, Reject::Target);
    }
    refuses("GET http://u:p@h/", Reject::Userinfo);
}

/// Found while the fuzz target `head` was written.
#[test]
fn an_authority_form_needs_a_port_behind_an_address_in_brackets_too() {
    accepts("CONNECT [::1]:80", Form::Authority, "", None);
    refuses("CONNECT [::1]", Reject::Target);
}

#[test]
fn a_path_holds_only_what_the_grammar_allows() {
    accepts("GET /a-b._~!$&'()*+,;=:@", Form::Origin, "/a-b._~!$&'()*+,;=:@", None);
    for byte in ["\"", "<", ">", "\\", "^", "`", "{", "|", "}", "#", "[", "]", "\u{e9}"] {
        refuses(&format!("GET /a{byte}"), Reject::TargetByte);
    }
}

#[test]
fn a_query_also_holds_what_browsers_do_not_escape() {
    accepts("GET /?a[b]=c|d{e}^`\\", Form::Origin, "/", Some("a[b]=c|d{e}^`\\"));
    accepts("GET /?x=%", Form::Origin, "/", Some("x=%"));
    for byte in ["\"", "<", ">", "#", "\u{e9}"] {
        refuses(&format!("GET /?a{byte}"), Reject::TargetByte);
    }
}

#[test]
fn escapes_in_a_path_decode_to_text() {
    for (path, escaped) in [("/a%20b", true), ("/%C3%A9", true), ("/%2F", true), ("/a", false)] {
        assert_eq!(read(&format!("GET {path}"), "Host: a\r\n").map(|t| t.4), Ok(escaped), "{path}");
    }
    for path in ["/%", "/%2", "/%zz", "/%00", "/a%00b", "/%ff", "/%c0%af", "/%ed%a0%80", "/%u002e", "/%+1"] {
        refuses(&format!("GET {path}"), Reject::TargetEscape);
    }
}

/// Every escaped sequence of up to three bytes from those that matter to UTF-8, and some longer ones, whole and cut by a
/// byte that is not escaped: accepted if and only if the whole is UTF-8 once decoded.
#[test]
fn escapes_are_taken_only_where_the_whole_is_utf8() {
    let edges =
        [0x01, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5];
    let mut sequences: Vec<Vec<u8>> = edges.iter().map(|&byte| vec![byte]).collect();
    for len in 1..3 {
        let longer = sequences.iter().filter(|sequence| sequence.len() == len);
        let longer: Vec<_> = longer.flat_map(|s| edges.iter().map(|&byte| [&s[..], &[byte]].concat())).collect();
        sequences.extend(longer);
    }
    for fourth in [0x7f, 0x80, 0xbf, 0xc0] {
        sequences.extend(
            [[0xf0, 0x90, 0x80, fourth], [0xf4, 0x8f, 0xbf, fourth], [0xf4, 0x90, 0x80, fourth]].map(Vec::from),
        );
    }
    for sequence in sequences {
        let escaped: String = sequence.iter().map(|byte| format!("%{byte:02x}")).collect();
        let expected = if std::str::from_utf8(&sequence).is_ok() { Ok(()) } else { Err(Reject::TargetEscape) };
        for path in [format!("/{escaped}"), format!("/a{escaped}b/c"), format!("/{escaped}{escaped}")] {
            assert_eq!(read(&format!("GET {path}"), "Host: a\r\n").map(|_| ()), expected, "{path}");
        }
        if sequence.len() > 1 && sequence[0] >= 0x80 {
            refuses(&format!("GET /{}a{}", &escaped[..3], &escaped[3..]), Reject::TargetEscape);
        }
    }
}

#[test]
fn dot_segments_never_reach_a_route() {
    for path in ["/.", "/..", "/a/../b", "/a/./b", "/%2e", "/%2E%2e/", "/.%2e", "/..;/a", "/..;x=y"] {
        refuses(&format!("GET {path}"), Reject::DotSegment);
    }
    for path in ["/...", "/.a", "/a.", "/a..b", "/%2ea", "/..a"] {
        accepts(&format!("GET {path}"), Form::Origin, path, None);
    }
}

#[test]
fn host_is_present_once_and_well_formed() {
    assert_eq!(read("GET /", "").map(|_| ()), Err(Reject::HostMissing));
    for good in
        ["a", "", "a:8080", "a:", "127.0.0.1:80", "[::1]:8080", "[v1.a:b]", "my_host", "A.B", "a%20b", "a.b.c-d~"]
    {
        let read = read("GET /", &format!("Host: {good}\r\n"));
        assert_eq!(read.map(|t| t.3), Ok(Some(good.to_owned())), "{good}");
    }
    for bad in [
        "a b", "a/b", "u@a", "http://a", "a:80:90", "[::1", "[::1]x", "[zz]", "a\\b", "\"a\"", "<a>", "a%zz", "a%2",
        "a,b", "a:8o", "::1",
    ] {
        assert_eq!(read("GET /", &format!("Host: {bad}\r\n")).map(|_| ()), Err(Reject::Host), "{bad}");
    }
}

#[test]
fn the_host_of_an_absolute_form_wins() {
    assert_eq!(read("GET http://h:1/", "Host: a\r\n").map(|t| t.3), Ok(Some("h:1".to_owned())));
}
