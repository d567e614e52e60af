//! Rate limits: exact while the clock is held, even over time, bounded in memory, and closed where there is no key.

use std::time::Duration;

use sprat::testing::Client;
use sprat::{ByAddress, FromRequest, Limited, LimitedBy, Nothing, RateLimit, Rejection, Request, Status, routes};

const MINUTE: Duration = Duration::from_secs(60);

struct App {
    logins: RateLimit<ByAddress>,
    keys: RateLimit<ApiKey>,
    users: RateLimit<String>,
    ran: u32,
}

impl App {
    fn new() -> App {
        App {
            logins: RateLimit::new(100, MINUTE),
            keys: RateLimit::new(2, Duration::from_secs(1)),
            users: RateLimit::new(1, MINUTE),
            ran: 0,
        }
    }
}

struct Logins;

impl LimitedBy<App> for Logins {
    type Key = ByAddress;
    fn limit(app: &mut App) -> &mut RateLimit<ByAddress> {
        &mut app.logins
    }
}

/// A key from a field.
#[derive(Hash, PartialEq, Eq, Debug)]
struct ApiKey(String);

impl<'r, S> FromRequest<'r, S> for ApiKey {
    type Takes = Nothing;
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        match request.field("x-api-key") {
            Some(key) => Ok(ApiKey(key.to_owned())),
            None => Err(Rejection::text(Status::UNAUTHORIZED, "say who you are")),
        }
    }
}

struct PerKey;

impl LimitedBy<App> for PerKey {
    type Key = ApiKey;
    fn limit(app: &mut App) -> &mut RateLimit<ApiKey> {
        &mut app.keys
    }
}

routes! {
    Api for App {
        POST "/login" => login(limit, body),
        GET  "/key"   => by_key(limit),
        POST "/user"  => by_user(request, body),
    }
}

fn login(app: &mut App, _: Limited<Logins>, _body: Vec<u8>) -> &'static str {
    app.ran += 1;
    "welcome"
}

fn by_key(_: &mut App, _: Limited<PerKey>) -> &'static str {
    "known"
}

fn by_user(app: &mut App, request: Request<'_>, body: Vec<u8>) -> Result<String, Rejection> {
    let left = app.users.admit(String::from_utf8_lossy(&body).into_owned(), request.now())?;
    Ok(left.to_string())
}

fn client() -> Client<App> {
    Client::new(Api, App::new()).with_peer(([192, 0, 2, 1], 5000).into())
}

#[test]
fn with_the_clock_held_exactly_100_of_1000_pass() {
    let mut client = client();
    let mut passed = 0;
    for _ in 0..1000 {
        match client.post("/login", b"x").status() {
            200 => passed += 1,
            status => assert_eq!(status, 429),
        }
    }
    assert_eq!((passed, client.state().ran), (100, 100));
    let counts = client.state().logins.counts();
    assert_eq!((counts.admitted, counts.refused), (100, 900));
}

#[test]
fn over_time_burst_and_refill_pass_and_not_one_more() {
    let mut client = client();
    let mut passed = 0;
    // Ten minutes, ten requests a second.
    for _ in 0..6000 {
        passed += u32::from(client.post("/login", b"x").status() == 200);
        client.advance(Duration::from_millis(100));
    }
    // 100 at the start, and one for each 600 ms of the 599.9 s that follow.
    assert_eq!(passed, 100 + 599_900 / 600);
}

#[test]
fn a_body_in_pieces_counts_once() {
    let mut client = client();
    for _ in 0..50 {
        let mut link = client.connect();
        link.send_bytewise(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(link.answers()[0].status(), 200);
    }
    assert_eq!(client.state().logins.counts().admitted, 50);
}

#[test]
fn a_refusal_says_when_to_come_again() {
    let mut client = client();
    for _ in 0..100 {
        assert_eq!(client.post("/login", b"x").status(), 200);
    }
    let refused = client.post("/login", b"x");
    assert_eq!((refused.status(), refused.text()), (429, "too many requests"));
    assert_eq!(refused.field("retry-after"), Some("1"));
    assert_eq!(refused.field("ratelimit-policy"), Some("\"default\";q=100;w=60"));
    assert_eq!(refused.field("ratelimit"), Some("\"default\";r=0;t=1"));
    client.advance(Duration::from_millis(599));
    assert_eq!(client.post("/login", b"x").status(), 429);
    client.advance(Duration::from_millis(1));
    assert_eq!(client.post("/login", b"x").status(), 200);
    assert_eq!(client.post("/login", b"x").status(), 429);
}

#[test]
fn each_address_has_its_own_bucket() {
    let mut first = client();
    for _ in 0..101 {
        first.post("/login", b"x");
    }
    assert_eq!(first.post("/login", b"x").status(), 429);
    let mut other = first.with_peer(([192, 0, 2, 2], 5000).into());
    assert_eq!(other.post("/login", b"x").status(), 200);
}

#[test]
fn addresses_of_one_ipv6_network_share_a_bucket() {
    let mut client = client();
    client.state().logins = RateLimit::new(1, MINUTE);
    let mut client = client.with_peer("[2001:db8:1:2::1]:9".parse().expect("an address"));
    assert_eq!(client.post("/login", b"x").status(), 200);
    let mut client = client.with_peer("[2001:db8:1:2:ffff::9]:9".parse().expect("an address"));
    assert_eq!(client.post("/login", b"x").status(), 429);
    let mut client = client.with_peer("[2001:db8:1:3::1]:9".parse().expect("an address"));
    assert_eq!(client.post("/login", b"x").status(), 200);
}

#[test]
fn a_key_can_come_from_a_field_and_without_it_nobody_passes() {
    let mut client = client();
    let ask =
        |client: &mut Client<App>, key: &str| client.request(sprat::Method::Get, "/key").field("X-Api-Key", key).send();
    assert_eq!([(); 3].map(|()| ask(&mut client, "a").status()), [200, 200, 429]);
    assert_eq!(ask(&mut client, "b").status(), 200);
    assert_eq!(client.get("/key").status(), 401);
    assert_eq!(client.state().keys.counts().without_key, 1);
    let mut client = Client::new(Api, App::new());
    assert_eq!(client.post("/login", b"x").status(), 500);
    assert_eq!((client.state().logins.counts().without_key, client.state().ran), (1, 0));
}

#[test]
fn a_key_can_come_from_a_body() {
    let mut client = client();
    assert_eq!(client.post("/user", b"ada").text(), "0");
    assert_eq!(client.post("/user", b"ada").status(), 429);
    assert_eq!(client.post("/user", b"bob").status(), 200);
}

#[test]
fn memory_is_bounded_and_made_up_keys_win_nothing() {
    let mut limit = RateLimit::new(10, MINUTE).keys_max(100);
    let now = Duration::from_secs(1000);
    let passed = (0..10_000_u32).filter(|&key| limit.admit(key, now).is_ok()).count();
    // Each of 100 keys has its bucket, and all others share one.
    assert_eq!((passed, limit.keys()), (100 + 10, 100));
    assert_eq!(limit.counts().overflowed, 9_900);
    // Those who have their place keep it.
    assert_eq!(limit.admit(7, now), Ok(8));
    // A bucket that is full again is forgotten.
    assert!(limit.admit(77_777, now + MINUTE).is_ok());
    assert_eq!(limit.keys(), 1);
}

#[test]
fn what_is_left_counts_down_and_fills_up_evenly() {
    let mut limit = RateLimit::new(4, Duration::from_secs(4));
    let at = |ms| Duration::from_secs(1) + Duration::from_millis(ms);
    assert_eq!([(); 4].map(|()| limit.admit("k", at(0))), [Ok(3), Ok(2), Ok(1), Ok(0)]);
    let refused = limit.admit("k", at(250)).expect_err("empty");
    assert_eq!(refused.retry_after(), Duration::from_millis(750));
    assert_eq!(limit.admit("k", at(2000)), Ok(1));
    assert_eq!(limit.admit("k", at(100_000)), Ok(3));
}
