//! One request and what it was answered with, for logs and counters: the option `observe` of
//! [`routes!`](crate::routes).
//!
//! Holds what is known, and decides nothing: who is told of what is up to `connection`.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::request::Request;
use crate::status::Status;
use crate::target::Form;

/// A request and its answer, once that is written; see the option `observe` of [`routes!`](crate::routes#observing).
///
/// Its text is one line for a log. Like the text of a [`Request`] it leaves out the query, which is a credential too
/// often; what of it, and of the fields, may stand in a log is for its owner to say.
///
/// ```
/// use std::collections::BTreeMap;
/// use sprat::{Exchange, routes};
///
/// #[derive(Default)]
/// struct App { answers: BTreeMap<(&'static str, u16), u64>, log: Vec<String> }
///
/// routes! {
///     Api for App [observe = note] {
///         GET "/users/{id}" => user(id),
///         GET "/health"     => const text("ok") [observe = nothing],
///     }
/// }
///
/// fn note(app: &mut App, exchange: &Exchange<'_>) {
///     let route = exchange.route().unwrap_or("none");
///     *app.answers.entry((route, exchange.status().code())).or_default() += 1;
///     app.log.push(exchange.to_string());
/// }
/// fn nothing(_: &mut App, _: &Exchange<'_>) {}
/// fn user(_: &mut App, id: u64) -> String { id.to_string() }
///
/// let mut client = sprat::testing::Client::new(Api, App::default());
/// for path in ["/users/7?key=secret", "/users/x", "/admin.php", "/health"] {
///     client.get(path);
/// }
/// let app = client.state();
/// assert_eq!(app.answers[&("/users/{id}", 200)], 1);
/// assert_eq!(app.answers[&("/users/{id}", 400)], 1);
/// assert_eq!(app.answers[&("none", 404)], 1);
/// assert!(app.log[0].starts_with("- \"GET /users/7\" 200 "), "{}", app.log[0]);
/// assert_eq!(app.log.len(), 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'e> {
    pub(crate) request: Option<Request<'e>>,
    pub(crate) route: Option<&'static str>,
    pub(crate) status: Status,
    pub(crate) len: usize,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) waited: Duration,
}

/// What is told of the answers of a table.
pub type Observe<S> = fn(&mut S, &Exchange<'_>);

impl<'e> Exchange<'e> {
    /// The request. None where a message broke a rule before a row was looked for: what it asks for is not certain.
    pub fn request(&self) -> Option<Request<'e>> {
        self.request
    }

    /// The whole pattern of the row that answered. None for 404, 405, what the server itself says to OPTIONS, and what was
    /// refused without a row.
    pub fn route(&self) -> Option<&'static str> {
        self.route
    }

    /// The status of the answer.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Bytes of the answer, head included. Of an answer in parts ([`Stream`](crate::Stream)) only its head: it is told
    /// when it begins.
    pub fn answer_len(&self) -> usize {
        self.len
    }

    /// Who asked; see [`Request::peer`].
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// How long the body was waited for, and the answer where it was made elsewhere ([`Later`](crate::Later)). By the
    /// clock of [`Request::now`], so it is zero for what came whole and was answered at once, however long its handler
    /// took: that is told as [`Event::Stalled`](crate::Event::Stalled).
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

/// `192.0.2.7 "GET /users/7" 200 149`: peer, method and path, status and bytes; and ` waited 12ms` if it did.
impl fmt::Display for Exchange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(f, "{}", peer.ip())?,
            None => f.write_str("-")?,
        }
        match self.request {
            Some(request) => {
                let path = match request.form() {
                    Form::Origin | Form::Absolute => request.path(),
                    Form::Authority | Form::Asterisk => request.target(),
                };
                // Escaped, for a path may hold a quotation mark.
                write!(f, " \"{} {}\"", request.method().as_str(), path.escape_default())?;
            }
            None => f.write_str(" -")?,
        }
        write!(f, " {} {}", self.status.code(), self.len)?;
        match self.waited {
            Duration::ZERO => Ok(()),
            waited => write!(f, " waited {}ms", waited.as_millis()),
        }
    }
}
