//! `SetCookie`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sprat::testing::Client;
use sprat::{Respond, SameSite, SetCookie, routes};

#[track_caller]
fn writes(cookie: &SetCookie, text: &str) {
    assert_eq!((cookie.fault(), cookie.to_string().as_str()), (None, text));
    assert_eq!(AsRef::<[u8]>::as_ref(cookie), text.as_bytes());
}

#[track_caller]
fn faults(cookie: &SetCookie) {
    assert!(cookie.fault().is_some(), "{cookie} is taken");
    assert_eq!(AsRef::<[u8]>::as_ref(cookie), b"\n");
}

#[test]
fn attributes_stand_in_the_order_they_are_given() {
    writes(&SetCookie::new("a", "1"), "a=1");
    let at = UNIX_EPOCH + Duration::from_secs(784_887_151);
    let cookie = SetCookie::new("a", "1").domain("example.org").expires(at).path("/x y").http_only().partitioned();
    writes(
        &cookie.secure().same_site(SameSite::None).max_age(Duration::from_millis(1999)),
        "a=1; Domain=example.org; Expires=Tue, 15 Nov 1994 08:12:31 GMT; Path=/x y; HttpOnly; Partitioned; Secure; \
         SameSite=None; Max-Age=1",
    );
    writes(&SetCookie::new("a", "").same_site(SameSite::Strict), "a=; SameSite=Strict");
    writes(&SetCookie::removal("a").path("/"), "a=; Max-Age=0; Path=/");
}

#[test]
fn names_are_tokens() {
    writes(&SetCookie::new("a!b", "1"), "a!b=1");
    for name in ["", "a b", "a=b", "a;b", "a\"b", "a\r\nb", "é"] {
        faults(&SetCookie::new(name, "1"));
    }
}

#[test]
fn values_are_cookie_octets_possibly_in_quotes() {
    writes(&SetCookie::new("a", "!#+-:<[]~=%"), "a=!#+-:<[]~=%");
    writes(&SetCookie::new("a", "\"b\""), "a=\"b\"");
    for value in ["a b", "a;b", "a,b", "a\\b", "a\"b", "\"a", "a\"", "a\r\nSet-Cookie: b=1", "\t", "é", "\u{7f}"] {
        faults(&SetCookie::new("a", value));
    }
}

#[test]
fn names_and_values_have_4096_bytes_at_most() {
    assert_eq!(SetCookie::new("a", &"b".repeat(4095)).fault(), None);
    faults(&SetCookie::new("a", &"b".repeat(4096)));
}

#[test]
fn paths_and_domains_cannot_add_attributes() {
    writes(&SetCookie::new("a", "1").path("/,"), "a=1; Path=/,");
    for path in ["", "x", "/;Secure", "/\r\n", "/\u{e9}"] {
        faults(&SetCookie::new("a", "1").path(path));
    }
    writes(&SetCookie::new("a", "1").domain(".a-b.org"), "a=1; Domain=.a-b.org");
    for domain in ["", "a.org;", "a org", "a.org:80", "a\n"] {
        faults(&SetCookie::new("a", "1").domain(domain));
    }
}

#[test]
fn an_attribute_is_given_once() {
    writes(&SetCookie::new("a", "1").path("/"), "a=1; Path=/");
    faults(&SetCookie::new("a", "1").path("/").path("/"));
    faults(&SetCookie::removal("a").max_age(Duration::from_secs(1)));
}

#[test]
fn prefixes_of_names_demand_their_attributes() {
    writes(&SetCookie::new("__Secure-a", "1").secure(), "__Secure-a=1; Secure");
    faults(&SetCookie::new("__Secure-a", "1"));
    faults(&SetCookie::new("__secure-a", "1").http_only());
    writes(&SetCookie::new("__Host-a", "1").secure().path("/"), "__Host-a=1; Secure; Path=/");
    faults(&SetCookie::new("__Host-a", "1").secure());
    faults(&SetCookie::new("__HOST-a", "1").path("/"));
    faults(&SetCookie::new("__Host-a", "1").secure().path("/x"));
    faults(&SetCookie::new("__Host-a", "1").secure().path("/").domain("a.org"));
    writes(&SetCookie::new("__Hosta", "1"), "__Hosta=1");
}

#[test]
fn cookies_for_other_sites_are_secure() {
    writes(&SetCookie::new("a", "1").same_site(SameSite::Lax), "a=1; SameSite=Lax");
    faults(&SetCookie::new("a", "1").same_site(SameSite::None));
    faults(&SetCookie::new("a", "1").partitioned());
}

#[test]
fn any_time_can_be_written() {
    let far = UNIX_EPOCH + Duration::from_secs(1 << 40);
    writes(&SetCookie::new("a", "1").expires(far), "a=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT");
    let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    writes(&SetCookie::new("a", "1").expires(before), "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT");
}

#[test]
fn a_cookie_with_a_fault_makes_the_answer_a_500() {
    routes! { Cookies for () { GET "/{value}" => set(value), } }
    fn set(_: &mut (), value: &str) -> impl Respond {
        "ok".field("Set-Cookie", SetCookie::new("a", value)).field("Set-Cookie", SetCookie::new("b", "2"))
    }
    let mut client = Client::new(Cookies, ());
    let answer = client.get("/1");
    let mut set: Vec<_> =
        answer.fields().iter().filter(|(name, _)| name == "Set-Cookie").map(|(_, v)| v.as_str()).collect();
    set.sort_unstable();
    assert_eq!(set, ["a=1", "b=2"]);
    let answer = client.get("/1%0d%0aX-Evil:1");
    assert_eq!((answer.status(), answer.field("x-evil"), answer.field("set-cookie")), (500, None, None));
    assert_eq!(client.get("/1;2").status(), 500);
}
