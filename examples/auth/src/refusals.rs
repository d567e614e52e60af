//! What the handlers refuse, in one place: status, code and sentence; and what the framework refuses, as JSON of the same
//! form.

use sprat::{Rejection, Status, TooMany};

use crate::log;
use crate::routes::App;
use crate::store::StoreError;

/// The mapper of the tables.
pub fn in_json(_: &mut App, refusal: Rejection) -> Rejection {
    refusal.into_json()
}

pub fn missing_client() -> Rejection {
    let text = "the field X-Client-Id must hold the id of the application: 1 to 64 letters, digits, '-', '_', '.'";
    Rejection::json(Status::BAD_REQUEST, "invalid_client", text)
}

pub fn unknown_client() -> Rejection {
    Rejection::json(Status::BAD_REQUEST, "invalid_client", "no application has this id")
}

/// The answer stays here: nobody is sent to an address that the client has not registered (RFC 6749 4.1.2.1).
pub fn wrong_redirect() -> Rejection {
    Rejection::json(Status::BAD_REQUEST, "invalid_redirect_uri", "the client has not registered this redirect_uri")
        .at("redirect_uri")
}

pub fn unsupported_response_type() -> Rejection {
    Rejection::json(Status::BAD_REQUEST, "unsupported_response_type", "response_type must be code").at("response_type")
}

pub fn wrong_challenge() -> Rejection {
    let text = "PKCE is required: code_challenge_method S256 and a code_challenge of 43 base64url characters";
    Rejection::json(Status::BAD_REQUEST, "invalid_request", text).at("code_challenge")
}

pub fn unstorable(path: &'static str) -> Rejection {
    Rejection::json(Status::BAD_REQUEST, "invalid_request", "the value is too long, or holds a zero byte").at(path)
}

/// The same for every way in which a flow can be wrong: who guesses learns nothing.
pub fn invalid_flow() -> Rejection {
    let text = "the flow is unknown, used or over, or client or code_verifier are not those that it began with";
    Rejection::json(Status::BAD_REQUEST, "invalid_grant", text)
}

/// The same for an unknown email, a wrong password, a user that is no member, and one that is not active.
///
/// A 401 has to name a way to authenticate (RFC 9110 15.5.2). None of the registered ones is that of a form in JSON, and
/// at the name of one that browsers know, they would ask for a password themselves.
pub fn invalid_credentials() -> Rejection {
    Rejection::json(Status::UNAUTHORIZED, "invalid_credentials", "email or password are wrong")
        .field("WWW-Authenticate", "Password realm=\"login\"")
}

pub fn invalid_email() -> Rejection {
    Rejection::json(Status::UNPROCESSABLE_CONTENT, "invalid_email", "this is no email address").at("email")
}

pub fn invalid_password() -> Rejection {
    let text = "a password has 8 to 72 bytes, and no zero byte";
    Rejection::json(Status::UNPROCESSABLE_CONTENT, "invalid_password", text).at("password")
}

pub fn invalid_roles() -> Rejection {
    let text = "at most 32 roles, of 1 to 64 bytes each";
    Rejection::json(Status::UNPROCESSABLE_CONTENT, "invalid_roles", text).at("roles")
}

pub fn email_taken() -> Rejection {
    Rejection::json(Status::CONFLICT, "email_taken", "there is a user with this email already").at("email")
}

/// For limits that are asked after the head; those of the head say the same.
pub fn too_many(too_many: TooMany) -> Rejection {
    Rejection::from(too_many).into_json()
}

/// A token without a session that is alive.
pub fn invalid_token() -> Rejection {
    Rejection::json(Status::UNAUTHORIZED, "invalid_token", "the token or its session are not valid")
        .field("WWW-Authenticate", "Bearer error=\"invalid_token\"")
}

pub fn wrong_service_key() -> Rejection {
    Rejection::json(Status::UNAUTHORIZED, "invalid_service_key", "the field X-Service-Key is missing or wrong")
        .field("WWW-Authenticate", "Service-Key realm=\"internal\"")
}

/// What the database says is for the log. The client hears that it is busy or away, or that we have made a mistake.
pub fn store_failed(error: &StoreError) -> Rejection {
    log::line(format_args!("database: {error}"));
    match error {
        StoreError::Unavailable(_) => {
            let text = "the database cannot answer at the moment";
            Rejection::json(Status::SERVICE_UNAVAILABLE, "unavailable", text).field("Retry-After", "1")
        }
        StoreError::Fault(_) => internal(),
    }
}

pub fn internal() -> Rejection {
    Rejection::json(Status::INTERNAL_SERVER_ERROR, "internal", "")
}
