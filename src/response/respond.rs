//! Values that are answers.

use std::borrow::Cow;
use std::sync::Arc;

use super::{BYTES, Response, Sent, TEXT};
use crate::output::{Borrowed, COPY_BYTES_MAX};
use crate::reject::Reject;
use crate::rejection::Rejection;
use crate::status::Status;

/// An answer: a value that writes itself into a [`Response`].
///
/// | value | answer |
/// |---|---|
/// | `&str`, `String`, `Cow<str>` | 200, `text/plain; charset=utf-8` |
/// | `&[u8]`, `Vec<u8>`, `&[u8; N]`, [`Static`], `Arc<[u8]>` | 200, `application/octet-stream` |
/// | [`Html<T>`](Html) | 200, `text/html; charset=utf-8` |
/// | `Json<T>` | 200, `application/json` |
/// | [`Status`] | that status, its reason as text |
/// | `(Status, T)` | `T` with that status; a refusal keeps its own unless that is an error too |
/// | `Result<T, E>` | either |
/// | `Option<T>` | `T`, or 404 |
/// | `()` | 204 |
/// | [`Redirect`] | 303, 307 or 308 with `Location` |
///
/// ```
/// use sprat::{Respond, Status};
/// fn made(_: &mut ()) -> impl Respond {
///     (Status::CREATED, "made").field("Cache-Control", "no-store")
/// }
/// # sprat::routes! { Api for () { POST "/" => made(), } }
/// # let answer = sprat::testing::Client::new(Api, ()).post("/", b"");
/// # assert_eq!((answer.status(), answer.field("cache-control")), (201, Some("no-store")));
/// ```
///
/// An error of your own becomes an answer by way of [`Rejection`](crate::Rejection), so that `?` works:
///
/// ```
/// use sprat::{Rejection, Status};
///
/// enum ApiError { Gone }
///
/// impl From<ApiError> for Rejection {
///     fn from(error: ApiError) -> Rejection {
///         match error {
///             ApiError::Gone => Rejection::json(Status::GONE, "gone", "it is gone"),
///         }
///     }
/// }
///
/// fn find(id: u64) -> Result<String, ApiError> { if id == 7 { Ok("seven".into()) } else { Err(ApiError::Gone) } }
/// fn show(_: &mut (), id: u64) -> Result<String, Rejection> { Ok(find(id)?) }
/// # sprat::routes! { Api for () { GET "/{id}" => show(id), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # assert_eq!(client.get("/7").text(), "seven");
/// # assert_eq!(client.get("/8").text(), r#"{"error":"gone","message":"it is gone"}"#);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as an answer",
    label = "answers are text, bytes, `Json<T>`, `Status`, `(Status, T)`, `Result<T, E>`, `Option<T>` and `()`",
    note = "`Json<T>` needs `T: Serialize` (`#[derive(Serialize)]` of serde)",
    note = "of `Result<T, E>` both must be answers: for an `E` of your own implement `From<E> for Rejection` and return \
            `Rejection`",
    note = "implement `sprat::Respond` to answer with your own type"
)]
pub trait Respond: Sized {
    /// Writes the answer to its end.
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r>;

    /// The same answer with one more field, checked as in [`Response::field`].
    fn field<N: AsRef<str>, V: AsRef<[u8]>>(self, name: N, value: V) -> WithField<Self, N, V> {
        WithField { answer: self, name, value }
    }
}

/// An answer and a field for it; see [`Respond::field`].
#[derive(Debug)]
pub struct WithField<T, N, V> {
    answer: T,
    name: N,
    value: V,
}

#[diagnostic::do_not_recommend]
impl<T: Respond, N: AsRef<str>, V: AsRef<[u8]>> Respond for WithField<T, N, V> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        self.answer.respond(response.field(self.name.as_ref(), self.value))
    }
}

#[diagnostic::do_not_recommend]
impl Respond for &str {
    #[inline]
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.text(self)
    }
}

#[diagnostic::do_not_recommend]
impl Respond for String {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        if self.len() <= COPY_BYTES_MAX {
            return response.text(&self);
        }
        response.borrowed(&TEXT, Borrowed::Owned(self.into_bytes()))
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Cow<'_, str> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.text(&self)
    }
}

#[diagnostic::do_not_recommend]
impl Respond for &[u8] {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.body(self)
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> Respond for &[u8; N] {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.body(self)
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Vec<u8> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.borrowed(&BYTES, Borrowed::Owned(self))
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Arc<[u8]> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.body_shared(self)
    }
}

/// Bytes of the program itself. Above 16 KiB they are sent from where they are, without a copy.
///
/// A type of its own, because `&[u8]` as an answer may also borrow from the request, and such bytes must be copied.
///
/// ```
/// use sprat::{Respond, Static};
/// fn logo(_: &mut ()) -> impl Respond {
///     Static(b"<svg/>").field("Content-Type", "image/svg+xml")
/// }
/// # sprat::routes! { Api for () { GET "/" => logo(), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/").field("content-type"), Some("image/svg+xml"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Static(pub &'static [u8]);

#[diagnostic::do_not_recommend]
impl Respond for Static {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.body_static(self.0)
    }
}

/// Text that is HTML: `text/html; charset=utf-8`.
///
/// ```
/// fn page(_: &mut ()) -> sprat::Html<&'static str> {
///     sprat::Html("<p>hello</p>")
/// }
/// # sprat::routes! { Api for () { GET "/" => page(), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/").text(), "<p>hello</p>");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Html<T>(pub T);

#[diagnostic::do_not_recommend]
impl<T: AsRef<str>> Respond for Html<T> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.content_type("text/html; charset=utf-8").text(self.0.as_ref())
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Status {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        if self.code() >= 400 {
            return response.refuse_alone(self, self.reason());
        }
        response.status(self).text(self.reason())
    }
}

#[diagnostic::do_not_recommend]
impl<T: Respond> Respond for (Status, T) {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        self.1.respond(response.status(self.0))
    }
}

#[diagnostic::do_not_recommend]
impl Respond for () {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.status(Status::NO_CONTENT).empty()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Respond> Respond for Option<T> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        match self {
            Some(answer) => answer.respond(response),
            None => response.refuse_alone(Status::NOT_FOUND, "nothing is found here"),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Respond, E: Respond> Respond for Result<T, E> {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        match self {
            Ok(answer) => answer.respond(response),
            Err(error) => error.respond(response),
        }
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Reject {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        Rejection::from(self).respond(response)
    }
}

/// An answer that sends the client elsewhere (RFC 9110 15.4).
///
/// ```
/// fn old(_: &mut ()) -> sprat::Redirect {
///     sprat::Redirect::permanent("/new")
/// }
/// # sprat::routes! { Api for () { GET "/old" => old(), } }
/// # let answer = sprat::testing::Client::new(Api, ()).get("/old");
/// # assert_eq!((answer.status(), answer.field("location")), (308, Some("/new")));
/// ```
#[derive(Clone, Debug)]
pub struct Redirect {
    status: Status,
    location: Cow<'static, str>,
}

impl Redirect {
    /// 303: fetch that with GET. The usual answer to a form.
    pub fn see_other(location: impl Into<Cow<'static, str>>) -> Redirect {
        Redirect { status: Status::SEE_OTHER, location: location.into() }
    }

    /// 307: send the same request there, this time.
    pub fn temporary(location: impl Into<Cow<'static, str>>) -> Redirect {
        Redirect { status: Status::TEMPORARY_REDIRECT, location: location.into() }
    }

    /// 308: send the same request there, from now on.
    pub fn permanent(location: impl Into<Cow<'static, str>>) -> Redirect {
        Redirect { status: Status::PERMANENT_REDIRECT, location: location.into() }
    }
}

#[diagnostic::do_not_recommend]
impl Respond for Redirect {
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.status(self.status).field("Location", self.location.as_bytes()).empty()
    }
}
