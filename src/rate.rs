//! Limits on how often: a token bucket for each key, in bounded memory, as a guard in a handler's signature.
//!
//! Asks no clock: the time of a request is that of its loop ([`Request::now`]).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::time::Duration;

use crate::rejection::Rejection;
use crate::request::{FromRequest, Nothing, Request};
use crate::status::Status;

/// A rate limit per key: `count` at once, and `count` more in each period.
///
/// The state holds it, so with several [workers](crate::Server::serve_workers) each has its own and the limit is that of
/// one loop: divide it by their number, or run one loop.
///
/// A handler says that it is limited by an argument of type [`Limited`]. For a key that only a body holds, a handler
/// calls [`admit`](RateLimit::admit) itself. What is kept is bounded in number, not in size, so bound what peers choose:
///
/// ```
/// use std::time::Duration;
/// use sprat::{RateLimit, Rejection, Request, routes};
///
/// struct App { logins: RateLimit<String> }
/// routes! { Api for App { POST "/login" => login(request, body) [body_max = 256], } }
///
/// fn login(app: &mut App, request: Request<'_>, body: Vec<u8>) -> Result<&'static str, Rejection> {
///     let user = String::from_utf8_lossy(&body).into_owned();
///     app.logins.admit(user, request.now())?;
///     Ok("welcome")
/// }
/// # let logins = RateLimit::new(1, Duration::from_secs(60));
/// # let mut client = sprat::testing::Client::new(Api, App { logins });
/// # assert_eq!(client.post("/login", b"ada").status(), 200);
/// # assert_eq!(client.post("/login", b"ada").status(), 429);
/// # assert_eq!(client.post("/login", b"bob").status(), 200);
/// ```
#[derive(Debug)]
pub struct RateLimit<K> {
    count: u32,
    period: Duration,
    keys_max: usize,
    /// Per key, the moment at which its bucket is full again.
    full_at: HashMap<K, u64>,
    /// The bucket of all keys for which there is no room.
    overflow_full_at: u64,
    /// When keys whose buckets are full again were last looked for.
    swept: u64,
    counts: RateCounts,
}

/// What a [`RateLimit`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateCounts {
    /// Let through.
    pub admitted: u64,
    /// Refused with 429.
    pub refused: u64,
    /// Refused because the request had no key.
    pub without_key: u64,
    /// Counted in the common bucket, for lack of room for their keys. Some of them were refused.
    pub overflowed: u64,
}

impl<K: Hash + Eq> RateLimit<K> {
    /// `count` at once for each key, and `count` more in each period, evenly. For up to 10,000 keys at a time.
    ///
    /// # Panics
    /// If the count or the period is zero, or the period is longer than a year.
    #[track_caller]
    pub fn new(count: u32, period: Duration) -> RateLimit<K> {
        assert!(count > 0 && !period.is_zero(), "a rate of nothing lets nobody in");
        assert!(period <= Duration::from_secs(366 * 24 * 3600), "a period is at most a year");
        RateLimit {
            count,
            period,
            keys_max: KEYS_DEFAULT,
            full_at: HashMap::new(),
            overflow_full_at: 0,
            swept: 0,
            counts: RateCounts::default(),
        }
    }

    /// How many keys are told apart at a time. A key needs its place until its bucket is full again. Keys beyond the
    /// number share one bucket, so that making up keys wins nothing. Default 10,000.
    #[must_use]
    pub fn keys_max(mut self, keys: usize) -> RateLimit<K> {
        self.keys_max = keys;
        self
    }

    /// Takes a token from the bucket of a key, and tells how many are left.
    ///
    /// # Errors
    /// [`TooMany`] when no token is left; as an answer it is 429 with `Retry-After` and the `RateLimit` fields
    /// (draft-ietf-httpapi-ratelimit-headers). A [`Rejection`] can be made from it.
    pub fn admit(&mut self, key: K, now: Duration) -> Result<u32, TooMany> {
        let now = nanos(now);
        if self.full_at.len() >= self.keys_max && !self.full_at.contains_key(&key) {
            self.sweep(now);
        }
        let room = self.full_at.len() < self.keys_max;
        let full_at = match self.full_at.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) if room => entry.insert(0),
            Entry::Vacant(_) => {
                self.counts.overflowed += 1;
                &mut self.overflow_full_at
            }
        };
        let token = token_nanos(self.period, self.count);
        // The bucket is full at `full_at`, and holds one token less for each `token` before that.
        let filled = (*full_at).max(now) + token;
        let capacity = token * u64::from(self.count);
        if filled > now + capacity {
            self.counts.refused += 1;
            let wait = Duration::from_nanos(filled - capacity - now);
            return Err(TooMany { count: self.count, period: self.period, wait });
        }
        *full_at = filled;
        self.counts.admitted += 1;
        Ok(u32::try_from((now + capacity - filled) / token).unwrap_or(u32::MAX))
    }

    /// Forgets keys whose buckets are full: they are as if they had never been there.
    fn sweep(&mut self, now: u64) {
        // Not for each key of a flood: a token's time must have passed, else nothing much has changed.
        if now < self.swept.saturating_add(token_nanos(self.period, self.count)) && self.swept != 0 {
            return;
        }
        self.swept = now.max(1);
        self.full_at.retain(|_, full_at| *full_at > now);
    }

    /// How many keys have their place.
    pub fn keys(&self) -> usize {
        self.full_at.len()
    }

    /// What it has done so far.
    pub fn counts(&self) -> RateCounts {
        self.counts
    }
}

const KEYS_DEFAULT: usize = 10_000;

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// How long a bucket takes for one token; rounded up, so that no period has more than its count.
fn token_nanos(period: Duration, count: u32) -> u64 {
    nanos(period).div_ceil(u64::from(count)).max(1)
}

/// A rate was exceeded: 429 (RFC 6585 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    count: u32,
    period: Duration,
    wait: Duration,
}

impl TooMany {
    /// How long until the next one is let through.
    pub fn retry_after(&self) -> Duration {
        self.wait
    }
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many requests")
    }
}

impl std::error::Error for TooMany {}

impl From<TooMany> for Rejection {
    #[cold]
    fn from(too_many: TooMany) -> Rejection {
        let TooMany { count, period, wait } = too_many;
        let seconds = |duration: Duration| duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        Rejection::text(Status::TOO_MANY_REQUESTS, "too many requests")
            .field("Retry-After", seconds(wait).to_string())
            .field("RateLimit-Policy", format!("\"default\";q={count};w={}", seconds(period)))
            .field("RateLimit", format!("\"default\";r=0;t={}", seconds(wait)))
    }
}

#[diagnostic::do_not_recommend]
impl crate::response::Respond for TooMany {
    fn respond<'r>(self, response: crate::response::Response<'r>) -> crate::response::Sent<'r> {
        Rejection::from(self).respond(response)
    }
}

/// A limit by name: where it is kept, and by what key it counts. See [`Limited`].
pub trait LimitedBy<S> {
    /// What is counted separately: any extractor of the head that is owned.
    type Key: for<'x> FromRequest<'x, S, Takes = Nothing> + Hash + Eq;

    /// Where the limit is kept.
    fn limit(state: &mut S) -> &mut RateLimit<Self::Key>;
}

/// A guard: the handler runs only within the limit `L`.
///
/// The key is taken from the head of the request, before the body is read, and exactly once. A limit whose key cannot
/// be taken from a request of this state does not compile, and a request without the key is refused by the key's own
/// rejection and counted ([`RateCounts::without_key`]): no request slips by for want of a key.
///
/// ```
/// use std::time::Duration;
/// use sprat::{ByAddress, Limited, LimitedBy, RateLimit, routes};
///
/// struct App { logins: RateLimit<ByAddress> }
///
/// struct Logins;
/// impl LimitedBy<App> for Logins {
///     type Key = ByAddress;
///     fn limit(app: &mut App) -> &mut RateLimit<ByAddress> { &mut app.logins }
/// }
///
/// routes! { Api for App { POST "/login" => login(limit), } }
/// fn login(_: &mut App, _: Limited<Logins>) -> &'static str { "welcome" }
///
/// # let app = App { logins: RateLimit::new(2, Duration::from_secs(60)) };
/// # let mut client = sprat::testing::Client::new(Api, app).with_peer(([192, 0, 2, 1], 5000).into());
/// # let statuses = [(); 3].map(|()| client.post("/login", b"").status());
/// # assert_eq!(statuses, [200, 200, 429]);
/// ```
pub struct Limited<L>(PhantomData<fn() -> L>);

impl<L> fmt::Debug for Limited<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Limited")
    }
}

#[diagnostic::do_not_recommend]
impl<'r, S, L: LimitedBy<S>> FromRequest<'r, S> for Limited<L> {
    type Takes = Nothing;

    fn check(request: &Request<'_>, state: &mut S) -> Result<(), Rejection> {
        let key = L::Key::check(request, state).and_then(|()| L::Key::from_request(request, (), state));
        match key {
            Ok(key) => {
                L::limit(state).admit(key, request.now())?;
                Ok(())
            }
            Err(rejection) => {
                L::limit(state).counts.without_key += 1;
                Err(rejection)
            }
        }
    }

    fn from_request(_: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        Ok(Limited(PhantomData))
    }
}

/// The address of the peer as a key. Of an IPv6 address the first 64 bits count: what a client can choose freely makes
/// no difference.
///
/// Behind a proxy all clients have the proxy's address. Take a key from a field that it sets instead, as below, and let
/// nobody but the proxy connect.
///
/// ```
/// use std::net::IpAddr;
/// use sprat::{FromRequest, Nothing, Rejection, Request, Status};
///
/// #[derive(PartialEq, Eq, Hash)]
/// struct RealIp(IpAddr);
///
/// impl<'r, S> FromRequest<'r, S> for RealIp {
///     type Takes = Nothing;
///     fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<RealIp, Rejection> {
///         let address = request.field("x-real-ip").and_then(|text| text.parse().ok());
///         address.map(RealIp).ok_or_else(|| Rejection::text(Status::BAD_REQUEST, "no X-Real-IP"))
///     }
/// }
/// # fn who(_: &mut (), RealIp(address): RealIp) -> String { address.to_string() }
/// # sprat::routes! { Api for () { GET "/" => who(ip), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/").status(), 400);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByAddress(IpAddr);

#[diagnostic::do_not_recommend]
impl<'r, S> FromRequest<'r, S> for ByAddress {
    type Takes = Nothing;
    fn from_request(request: &Request<'r>, (): (), _: &mut S) -> Result<Self, Rejection> {
        match request.peer().map(|peer| peer.ip()) {
            Some(IpAddr::V6(address)) => Ok(ByAddress(IpAddr::V6((address.to_bits() >> 64 << 64).into()))),
            Some(address) => Ok(ByAddress(address)),
            None => {
                Err(Rejection::text(Status::INTERNAL_SERVER_ERROR, "this connection has no address to be limited by"))
            }
        }
    }
}
