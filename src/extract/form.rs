//! A form that was sent as the body, as a value of any type that serde can read.

use serde::Deserialize;

use super::media_type;
use super::optional::Optional;
use super::urlencoded::{self, Fault, Kind};
use crate::rejection::Rejection;
use crate::request::{Body, FromRequest, Request, TheBody};
use crate::status::Status;

/// A body of the type `application/x-www-form-urlencoded`, read as `T`. [`Query`](crate::Query) says what fits what.
///
/// Escapes are decoded in the receive buffer, so that `&'r str` holds any text, and nothing is copied.
///
/// ```
/// use serde::Deserialize;
/// use sprat::Form;
/// #[derive(Deserialize)]
/// struct Login<'r> { name: &'r str, password: &'r str }
/// fn log_in<'r>(_: &mut (), Form(login): Form<Login<'r>>) -> String {
///     format!("{}, whose password has {} letters", login.name, login.password.len())
/// }
/// # sprat::routes! { Api for () { POST "/" => log_in(form), } }
/// # let mut client = sprat::testing::Client::new(Api, ());
/// # let mut send = |form: &str| client.request(sprat::Method::Post, "/").body(form).send();
/// # assert_eq!(send("name=Alice+B%2e&password=%C3%A9").text(), "Alice B., whose password has 2 letters");
/// # let answer = send("name=alice");
/// # assert_eq!((answer.status(), answer.text()),
/// #     (422, r#"{"error":"invalid_body","message":"missing field","path":"password"}"#));
/// ```
///
/// Another media type, another charset than UTF-8, or a Content-Encoding is answered with 415 on the head, before the
/// body is read; without a Content-Type the body is taken for a form. Text that is no form is answered with 400, one that
/// does not fit the type with 422, both with `{"error":"invalid_body","message":"...","path":"..."}`. A form has at most
/// 1000 pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form<T>(pub T);

#[diagnostic::do_not_recommend]
impl<'r, S: ?Sized, T: Deserialize<'r>> FromRequest<'r, S> for Form<T> {
    type Takes = TheBody;

    fn check(request: &Request<'_>, _: &mut S) -> Result<(), Rejection> {
        media_type::expect(request, "application/x-www-form-urlencoded", media_type::is_form)
    }

    fn from_request(_: &Request<'r>, body: Body<'r>, _: &mut S) -> Result<Self, Rejection> {
        let refused = |fault: Fault| {
            let malformed = fault.kind() == Kind::Malformed;
            let status = if malformed { Status::BAD_REQUEST } else { Status::UNPROCESSABLE_CONTENT };
            fault.into_rejection(status, "invalid_body")
        };
        urlencoded::from_form(body.into_slice()).map(Form).map_err(refused)
    }
}

#[diagnostic::do_not_recommend]
impl<T> Optional for Form<T> {
    fn is_absent(request: &Request<'_>) -> bool {
        !request.has_body()
    }
}
