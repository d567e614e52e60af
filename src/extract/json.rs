//! JSON as an argument and as an answer.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::media_type;
use super::optional::Optional;
use crate::json::{self, JsonError, Kind};
use crate::rejection::Rejection;
use crate::request::{Body, FromRequest, Request, TheBody};
use crate::response::{JSON, Respond, Response, Sent};
use crate::status::Status;

/// As an argument: a body of JSON (RFC 8259), read as `T`. As an answer: `T`, written as JSON.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use sprat::Json;
/// #[derive(Deserialize, Serialize)]
/// struct Order<'r> { item: &'r str, count: u32 }
/// fn order<'r>(_: &mut (), Json(order): Json<Order<'r>>) -> Json<Order<'r>> {
///     Json(Order { count: order.count + 1, ..order })
/// }
/// # sprat::routes! { Api for () { POST "/" => order(body), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # assert_eq!(client.post("/", br#"{"item":"a\"b","count":1}"#).text(), r#"{"item":"a\"b","count":2}"#);
/// # let answer = client.post("/", br#"{"item":5,"count":1}"#);
/// # assert_eq!((answer.status(), answer.text()), (422,
/// #     r#"{"error":"invalid_body","message":"expected a string","path":"item"}"#));
/// ```
///
/// # As an argument
///
/// The body is parsed in the receive buffer, and strings are unescaped where they stand: a `&'r str` field takes any
/// string, and nothing is allocated that `T` does not allocate. What is not right is answered with JSON:
///
/// | status | when | body |
/// |---|---|---|
/// | 415 | another media type, another charset than UTF-8, or a Content-Encoding; on the head, before the body is read | `{"error":"unsupported_media_type","message":"..."}` |
/// | 400 | no body (on the head), or no JSON: also a repeated key, invalid UTF-8, a byte order mark, more than 128 levels, a number beyond `f64` | `{"error":"invalid_body","message":"...","path":"..."}` |
/// | 422 | JSON that does not fit `T` | the same; `path` as in `items[2].price` |
///
/// `message` is one of a few sentences and quotes nothing of the peer's. For what is no JSON it says, where the parser
/// knows, at which byte of the body, counted from 0: the first that cannot be, or near its end where the text ends too
/// early.
///
/// Integers are exact or refused, and numbers into `f64` are the nearest. Into `f32` they are rounded from there, so a
/// literal that is not the middle of two `f32`, but nearer to it than an `f64` can tell, may become the other one.
///
/// A number of more than 19 digits that lies next to the middle between two `f64` takes a hundred times as long to read
/// as others do. A body may hold 16 such, and more among many others of that length; with more of them it is refused
/// with 400, so that none holds up the loop.
///
/// The media type is `application/json` or `application/*+json`, in any letter case and with any parameters. **Without
/// a Content-Type the body is taken for JSON**: many senders of webhooks leave it out. (So does a page of another site
/// that sends a request with the user's cookies and does not want to be asked about it first: where cookies are the
/// only credentials, mark them [`SameSite`](crate::SameSite) or look at Origin.)
///
/// `Option<Json<T>>` is `None` without a body, and `Result<Json<T>, Rejection>` leaves every refusal to the handler. A
/// table says them in words of its own with the option `errors` of [`routes!`](crate::routes), which also covers what
/// has nothing to do with JSON: without it a body beyond `body_max`, a bad path parameter and 405 are a line of text.
/// To change the words of this extractor alone, wrap it once:
///
/// ```
/// use serde::Deserialize;
/// use sprat::{Body, FromRequest, Json, Rejection, Request, TheBody};
/// struct MyJson<T>(T);
/// impl<'r, S, T: Deserialize<'r>> FromRequest<'r, S> for MyJson<T> {
///     type Takes = TheBody;
///     fn check(request: &Request<'_>, state: &mut S) -> Result<(), Rejection> {
///         Json::<T>::check(request, state).map_err(in_my_words)
///     }
///     fn from_request(request: &Request<'r>, body: Body<'r>, state: &mut S) -> Result<Self, Rejection> {
///         Json::from_request(request, body, state).map(|Json(value)| MyJson(value)).map_err(in_my_words)
///     }
/// }
/// fn in_my_words(rejection: Rejection) -> Rejection {
///     Rejection::json(rejection.status(), "bad_request", format!("sorry: {}", rejection.message()))
/// }
/// fn double(_: &mut (), MyJson(number): MyJson<u32>) -> String { (number * 2).to_string() }
/// # sprat::routes! { Api for () { POST "/" => double(number), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # assert_eq!(client.post("/", b"4").text(), "8");
/// # assert_eq!(client.post("/", b"").text(), r#"{"error":"bad_request","message":"sorry: empty body"}"#);
/// ```
///
/// # As an answer
///
/// The value is written straight to the end of the loop's write buffer, as `application/json` unless another
/// Content-Type is given. A value that cannot be written, because its `Serialize` fails or a map has keys that are no
/// text, is answered with 500, and nothing of it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, T: Deserialize<'r>> FromRequest<'r, S> for Json<T> {
    type Takes = TheBody;

    #[inline]
    fn check(request: &Request<'_>, _: &mut S) -> Result<(), Rejection> {
        media_type::expect(request, "application/json", media_type::is_json)?;
        // Chunks without content are seen later, by the parser.
        if request.has_body() { Ok(()) } else { Err(refusal(Status::BAD_REQUEST, "empty body")) }
    }

    #[inline]
    fn from_request(_: &Request<'r>, body: Body<'r>, _: &mut S) -> Result<Self, Rejection> {
        let Body { padded, len, tape } = body;
        json::parse(padded, len, tape).map(Json).map_err(refused)
    }
}

#[diagnostic::do_not_recommend]
impl<T> Optional for Json<T> {
    fn is_absent(request: &Request<'_>) -> bool {
        !request.has_body()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Respond for Json<T> {
    #[inline]
    fn respond<'r>(self, response: Response<'r>) -> Sent<'r> {
        response.written(&JSON, |out| json::write(out, &self.0))
    }
}

#[cold]
fn refused(error: JsonError) -> Rejection {
    let status = match error.kind() {
        Kind::Malformed => Status::BAD_REQUEST,
        Kind::Shape => Status::UNPROCESSABLE_CONTENT,
    };
    let mut rejection = refusal(status, error.sentence());
    let path = error.path().to_string();
    if !path.is_empty() {
        rejection = rejection.at(path);
    }
    match error.detail() {
        Some(detail) => rejection.with_detail(detail),
        None => rejection,
    }
}

#[cold]
fn refusal(status: Status, message: impl Into<Cow<'static, str>>) -> Rejection {
    Rejection::json(status, "invalid_body", message)
}
