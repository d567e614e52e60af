//! The state of the loop, and its table.

use sprat::{ByAddress, RateLimit, routes};

use crate::config::Config;
use crate::database::Database;
use crate::guards::ClientId;
use crate::handlers::{authorize, health, login, me, register, sync_user, validate, version};
use crate::refusals;
use crate::store::Store;
use crate::tokens::Tokens;

/// The state: owned by the loop's thread, without a lock.
pub struct App {
    pub config: Config,
    pub tokens: Tokens,
    pub service_key: String,
    /// What the password of nobody is verified against.
    pub decoy: String,
    /// Where all queries are done, but for one.
    pub database: Database,
    /// For that one: a connection of the loop's own. SQLite only.
    pub here: Option<Store>,
    pub flows_by_address: RateLimit<ByAddress>,
    pub logins_by_address: RateLimit<ByAddress>,
    pub registrations_by_address: RateLimit<ByAddress>,
    pub logins: RateLimit<ClientId>,
    pub registrations: RateLimit<ClientId>,
}

routes! {
    Common for App {
        GET  "/health"             => health::health(request),
        GET  "/version"            => version::version(),
        GET  "/oauth/authorize"    => authorize::authorize(limit, later, query),
        POST "/oauth/login"        => login::login(client, limit, request, later, form) [body_max = 4096],
        POST "/oauth/register"     => register::register(client, limit, request, later, form) [body_max = 4096],
        GET  "/oauth/me"           => me::me(token, later),
        POST "/internal/sync-user" => sync_user::sync_user(service, later, form) [body_max = 16384],
    }
}

routes! {
    /// With the database in this process.
    pub Embedded for App [errors = refusals::in_json] {
        ""                        => Common,
        POST "/internal/validate" => validate::here(service, form) [body_max = 4096],
    }
}

routes! {
    /// With the database behind a network.
    pub Remote for App [errors = refusals::in_json] {
        ""                        => Common,
        POST "/internal/validate" => validate::there(service, later, form) [body_max = 4096],
    }
}
