//! What a request must have before a handler runs: the client's id, the service key, a token. All of it is in the head,
//! so that none of them reads a body first.

use sprat::{Bearer, ByAddress, FromRequest, LimitedBy, Nothing, RateLimit, Rejection, Request, constant_time_eq};

use crate::refusals;
use crate::routes::App;
use crate::tokens::Claims;

/// The application that a request is for, by the field `X-Client-Id`. It claims an id; whether there is such a client,
/// and whether the rest of the request is its own, the database says.
///
/// So nothing is counted by it before that: whoever knows an id, and it is no secret, could use up its limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(pub String);

impl ClientId {
    pub fn is_well_formed(id: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=64).contains(&id.len()) && id.bytes().all(allowed)
    }
}

impl<'r> FromRequest<'r, App> for ClientId {
    type Takes = Nothing;

    fn check(request: &Request<'_>, app: &mut App) -> Result<(), Rejection> {
        ClientId::from_request(request, (), app).map(|_| ())
    }

    fn from_request(request: &Request<'r>, (): (), _: &mut App) -> Result<ClientId, Rejection> {
        match request.field("x-client-id") {
            Some(id) if ClientId::is_well_formed(id) => Ok(ClientId(id.to_owned())),
            _ => Err(refusals::missing_client()),
        }
    }
}

/// Flows that begin, counted for each address. Nobody has proved anything yet, and each is a commit.
pub struct Flows;

impl LimitedBy<App> for Flows {
    type Key = ByAddress;
    fn limit(app: &mut App) -> &mut RateLimit<ByAddress> {
        &mut app.flows_by_address
    }
}

/// Logins, counted for each address. For each client [`App::logins`] counts those that belong to a flow.
pub struct Logins;

impl LimitedBy<App> for Logins {
    type Key = ByAddress;
    fn limit(app: &mut App) -> &mut RateLimit<ByAddress> {
        &mut app.logins_by_address
    }
}

/// Registrations, counted for each address. For each client [`App::registrations`] counts those that are well-formed.
pub struct Registrations;

impl LimitedBy<App> for Registrations {
    type Key = ByAddress;
    fn limit(app: &mut App) -> &mut RateLimit<ByAddress> {
        &mut app.registrations_by_address
    }
}

/// The request comes from a service of ours: it has the key.
pub struct FromService;

impl<'r> FromRequest<'r, App> for FromService {
    type Takes = Nothing;

    fn check(request: &Request<'_>, app: &mut App) -> Result<(), Rejection> {
        match request.field("x-service-key") {
            Some(key) if constant_time_eq(key.as_bytes(), app.service_key.as_bytes()) => Ok(()),
            _ => Err(refusals::wrong_service_key()),
        }
    }

    fn from_request(_: &Request<'r>, (): (), _: &mut App) -> Result<FromService, Rejection> {
        Ok(FromService)
    }
}

/// Has a token that we made and that is not over. Whether its session still is, the database says.
pub struct HasToken(pub Claims);

impl<'r> FromRequest<'r, App> for HasToken {
    type Takes = Nothing;

    fn from_request(request: &Request<'r>, (): (), app: &mut App) -> Result<HasToken, Rejection> {
        let bearer = Bearer::read(request)?;
        app.tokens.check(bearer.token()).map(HasToken).ok_or_else(refusals::invalid_token)
    }
}
