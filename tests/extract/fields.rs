//! `Header` and `Cookies`.

use sprat::fields::{Accept, Origin, UserAgent};
use sprat::testing::Client;
use sprat::{Cookies, FieldName, Header, Method, Optional, Request, routes};

use crate::get;

routes! {
    Agents for () { GET "/" => agent(agent), }
}
routes! {
    MaybeAgents for () { GET "/" => maybe_agent(agent), }
}
routes! {
    Lists for () { GET "/" => list(accept), }
}
routes! {
    CookieLists for () { GET "/" => cookies(cookies), }
}
routes! {
    Named for () { GET "/" => named(cookies), }
}

fn agent<'r>(_: &mut (), agent: Header<'r, UserAgent>) -> &'r str {
    agent.as_str()
}

fn maybe_agent<'r>(_: &mut (), agent: Option<Header<'r, UserAgent>>) -> &'r str {
    agent.map_or("none", |agent| agent.as_str())
}

fn list(_: &mut (), accept: Header<'_, Accept>) -> String {
    format!("{accept} => {}", accept.elements().collect::<Vec<_>>().join("|"))
}

fn cookies(_: &mut (), cookies: Option<Cookies<'_>>) -> String {
    let Some(cookies) = cookies else { return "none".into() };
    cookies.iter().map(|(name, value)| format!("[{name}]={value}")).collect::<Vec<_>>().join(" ")
}

fn named<'r>(_: &mut (), cookies: Cookies<'r>) -> Option<&'r str> {
    cookies.get("id")
}

#[test]
fn a_field_is_found_in_any_letter_case() {
    assert_eq!(get(Agents, &[("user-AGENT", "curl/8")]).text(), "curl/8");
    assert_eq!(get(Agents, &[("User-Agent", "")]).text(), "");
}

#[test]
fn a_missing_field_is_named() {
    let answer = get(Agents, &[("User-Agents", "curl/8")]);
    let body = r#"{"error":"invalid_field","message":"the field is missing","path":"User-Agent"}"#;
    assert_eq!((answer.status(), answer.text()), (400, body));
}

#[test]
fn a_field_that_is_no_list_comes_once() {
    assert_eq!(get(Agents, &[("User-Agent", "a")]).text(), "a");
    let answer = get(Agents, &[("User-Agent", "a"), ("user-agent", "a")]);
    let body = r#"{"error":"invalid_field","message":"the field comes more than once","path":"User-Agent"}"#;
    assert_eq!((answer.status(), answer.text()), (400, body));
}

#[test]
fn a_field_is_text() {
    let mut client = Client::new(Agents, ());
    let mut ask = |value: &[u8]| client.request(Method::Get, "/").field("User-Agent", value).send();
    assert_eq!(ask(b"caf\xc3\xa9").text(), "café");
    let body = r#"{"error":"invalid_field","message":"the field is not UTF-8","path":"User-Agent"}"#;
    assert_eq!(ask(b"caf\xc3").text(), body);
}

#[test]
fn an_optional_field_is_none_only_when_it_is_missing() {
    assert_eq!(get(MaybeAgents, &[]).text(), "none");
    assert_eq!(get(MaybeAgents, &[("User-Agent", "a")]).text(), "a");
    assert_eq!(get(MaybeAgents, &[("User-Agent", "")]).text(), "");
    assert_eq!(get(MaybeAgents, &[("User-Agent", "a"), ("User-Agent", "b")]).status(), 400);
}

#[test]
fn a_list_comes_on_any_number_of_lines() {
    assert_eq!(get(Lists, &[("Accept", "a, b;q=1")]).text(), "a, b;q=1 => a|b;q=1");
    assert_eq!(get(Lists, &[("Accept", "a"), ("accept", ",b ,, c")]).text(), "a => a|b|c");
}

#[test]
fn field_names_are_types() {
    assert_eq!((UserAgent::NAME, UserAgent::LIST), ("User-Agent", false));
    assert_eq!((Accept::NAME, Accept::LIST), ("Accept", true));
    let _: fn(&Request<'_>) -> bool = <Header<'_, Origin> as Optional>::is_absent;
}

#[test]
fn cookies_are_read_as_browsers_send_them() {
    let read = |lines: &[&str]| {
        let fields: Vec<_> = lines.iter().map(|line| ("Cookie", *line)).collect();
        get(CookieLists, &fields).text().to_owned()
    };
    assert_eq!(read(&["a=1; b=2"]), "[a]=1 [b]=2");
    assert_eq!(read(&["a=1;b=2"]), "[a]=1 [b]=2");
    assert_eq!(read(&["a=1", "b=2; c=3"]), "[a]=1 [b]=2 [c]=3");
    assert_eq!(read(&["a = 1 ;; ; b=2;"]), "[a]=1 [b]=2");
    assert_eq!(read(&["a=1=2; b=\"3\""]), "[a]=1=2 [b]=\"3\"");
    assert_eq!(read(&["flag; a=; =x"]), "[]=flag [a]= []=x");
    assert_eq!(read(&["a=%20+; b=x y"]), "[a]=%20+ [b]=x y");
    assert_eq!(read(&[""]), "");
    assert_eq!(read(&[]), "none");
}

#[test]
fn a_cookie_that_is_no_text_does_not_hide_the_others() {
    let mut client = Client::new(CookieLists, ());
    let answer = client.request(Method::Get, "/").field("Cookie", b"a=\xff; b=\xc3\xa9").send();
    assert_eq!(answer.text(), "[b]=é");
}

#[test]
fn the_first_cookie_with_a_name_counts_and_names_have_a_letter_case() {
    assert_eq!(get(Named, &[("Cookie", "ID=0; id=1; id=2")]).text(), "1");
    assert_eq!(get(Named, &[("Cookie", "Id=1; xid=2; id2=3")]).status(), 404);
}

#[test]
fn a_list_of_which_any_line_is_no_text_is_refused() {
    let mut client = Client::new(Lists, ());
    let mut ask = |second: &[u8]| client.request(Method::Get, "/").field("Accept", "a").field("Accept", second).send();
    assert_eq!(ask(b"b, c").text(), "a => a|b|c");
    let answer = ask(b"b, \xff");
    assert_eq!(answer.status(), 400);
    assert!(answer.text().contains("the field is not UTF-8"), "{}", answer.text());
}

routes! {
    Shown for () { GET "/in" => shown(request), }
}

fn shown(_: &mut (), request: Request<'_>) -> String {
    format!("{request:?}")
}

#[test]
fn a_request_can_be_shown_in_a_log_without_its_secrets() {
    let mut client = Client::new(Shown, ());
    let request = client.request(Method::Get, "/in?token=SECRET").field("Authorization", "Bearer SECRET");
    let text = request.field("Cookie", "id=SECRET").send().text().to_owned();
    assert!(!text.contains("SECRET"), "{text}");
    assert!(text.contains("\"/in\"") && text.contains("Cookie") && text.contains("Get"), "{text}");
}
