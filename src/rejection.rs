//! A refusal by an extractor, a guard or the core, as an answer.

use std::borrow::Cow;

use crate::reject::Reject;
use crate::response::{Respond, Response, Sent};
use crate::status::Status;

/// Why an argument could not be extracted from a request: a status, a message, and how to say it.
///
/// Extractors return it, and it answers as any other value does. The body is one short line of text, or JSON of the
/// form `{"error":"code","message":"...","path":"..."}` for those made with [`Rejection::json`].
///
/// ```
/// use sprat::{Rejection, Status};
/// let rejection = Rejection::text(Status::FORBIDDEN, "only for members");
/// assert_eq!(rejection.status(), Status::FORBIDDEN);
/// let rejection = Rejection::json(Status::CONFLICT, "name_taken", "the name is taken").at("name");
/// assert_eq!(rejection.path(), Some("name"));
/// ```
#[derive(Debug)]
pub struct Rejection(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: Status,
    /// The code of a JSON body; text otherwise.
    error: Option<Cow<'static, str>>,
    message: Cow<'static, str>,
    path: Option<String>,
    /// What is not shown: it may quote the peer.
    detail: Option<String>,
    fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl Rejection {
    /// A refusal whose body is `message` as text/plain, unless a mapper says it otherwise; see
    /// [`into_json`](Rejection::into_json).
    #[cold]
    pub fn text(status: Status, message: impl Into<Cow<'static, str>>) -> Rejection {
        let (error, path, detail, fields) = (None, None, None, Vec::new());
        Rejection(Box::new(Inner { status, error, message: message.into(), path, detail, fields }))
    }

    /// A refusal whose body is JSON. An empty `message` is left out.
    #[cold]
    pub fn json(
        status: Status,
        error: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Rejection {
        let mut rejection = Rejection::text(status, message);
        rejection.0.error = Some(error.into());
        rejection
    }

    /// Names the place in the request that was wrong, for example `items[2].price`.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Rejection {
        self.0.path = Some(path.into());
        self
    }

    /// Keeps what is not for the answer, because it may quote the request: for a log, or for words of your own.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Rejection {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a field to the answer. One that cannot be written makes the answer a 500.
    #[must_use]
    pub fn field(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Rejection {
        self.0.fields.push((name.into(), value.into().into()));
        self
    }

    /// The status of the answer.
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// The short code in a JSON body.
    pub fn error(&self) -> Option<&str> {
        self.0.error.as_deref()
    }

    /// What was wrong, in one sentence.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it was wrong.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The same refusal with a body of JSON. One that was made as text gets a code from its status, for example
    /// `content_too_large`.
    ///
    /// A table whose every answer is to be JSON says so once:
    ///
    /// ```
    /// use sprat::{Rejection, routes};
    ///
    /// routes! {
    ///     Api for () [errors = in_json] {
    ///         GET "/users/{id}" => user(id),
    ///     }
    /// }
    /// fn in_json(_: &mut (), error: Rejection) -> Rejection { error.into_json() }
    /// fn user(_: &mut (), id: u64) -> String { id.to_string() }
    ///
    /// let mut client = sprat::testing::Client::new(Api, ());
    /// assert_eq!(
    ///     client.get("/users/x").text(),
    ///     r#"{"error":"bad_request","message":"path parameter id: expected a whole number in digits (u64)"}"#,
    /// );
    /// assert_eq!(client.get("/").text(), r#"{"error":"not_found","message":"no route matches this path"}"#);
    /// ```
    #[must_use]
    pub fn into_json(mut self) -> Rejection {
        let status = self.0.status;
        self.0.error.get_or_insert_with(|| Cow::Owned(code_of(status)));
        self
    }

    /// Takes over what an answer around it says.
    pub(crate) fn wrap(&mut self, status: Option<Status>, fields: Vec<(String, String)>) {
        self.0.status = status.unwrap_or(self.0.status);
        self.0.fields.splice(..0, fields.into_iter().map(|(name, value)| (name.into(), value.into())));
    }

    /// Takes the fields away, for them to be written whatever is made of the rest.
    pub(crate) fn take_fields(&mut self) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
        std::mem::take(&mut self.0.fields)
    }

    /// What a type said in its own words about a value that it did not take. Not in the answer.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }
}

/// The reason of the status as its text, so that `ok_or(Status::NOT_FOUND)?` does.
impl From<Status> for Rejection {
    fn from(status: Status) -> Rejection {
        Rejection::text(status, status.reason())
    }
}

impl From<Reject> for Rejection {
    fn from(reject: Reject) -> Rejection {
        let rejection = Rejection::text(reject.status(), reject.sentence());
        match reject {
            // It passes: others are done with theirs.
            Reject::BodiesTooLarge => rejection.field("Retry-After", "1"),
            _ => rejection,
        }
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Rejection {
    #[cold]
    fn respond<'r>(mut self, mut response: Response<'r>) -> Sent<'r> {
        response.unwrap_into(&mut self);
        let Inner { error, message, path, .. } = &*self.0;
        let (is_json, body) = match (error, path) {
            (Some(error), path) => (true, Cow::Owned(json_body(error, message, path.as_deref()))),
            (None, Some(path)) => (false, Cow::Owned(format!("{path}: {message}"))),
            (None, None) => (false, message.clone()),
        };
        response = response.status(self.0.status);
        for (name, value) in &self.0.fields {
            response = response.field(name, value.as_bytes());
        }
        if is_json {
            response = response.content_type("application/json");
        }
        response.keep(self);
        response.text(&body)
    }
}

/// `{"error":"code","message":"...","path":"..."}`, without what is empty.
fn json_body(error: &str, message: &str, path: Option<&str>) -> String {
    let mut body = String::with_capacity(128);
    body.push_str("{\"error\":");
    push_json_string(&mut body, error);
    if !message.is_empty() {
        body.push_str(",\"message\":");
        push_json_string(&mut body, message);
    }
    if let Some(path) = path {
        body.push_str(",\"path\":");
        push_json_string(&mut body, path);
    }
    body.push('}');
    body
}

/// `string` of RFC 8259 section 7. Here and not in `json`, because a build without that feature refuses too.
fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\0'..' ' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
    }
    out.push('"');
}

/// The reason of a status as a code, `content_too_large`; or, for one without a reason, `error`.
fn code_of(status: Status) -> String {
    match status.reason() {
        "Unknown" => "error".to_owned(),
        reason => reason.to_ascii_lowercase().replace(['-', ' '], "_"),
    }
}
