//! A limit whose key cannot be taken from a request at all, and one whose key needs the state of another table.

use sprat::{FromRequest, Limited, LimitedBy, Nothing, RateLimit, Rejection, Request, routes};

struct App(RateLimit<Tenant>);

#[derive(Hash, PartialEq, Eq)]
struct Tenant(String);

struct PerTenant;

impl LimitedBy<App> for PerTenant {
    type Key = Tenant;
    fn limit(app: &mut App) -> &mut RateLimit<Tenant> {
        &mut app.0
    }
}

mod key {
    use super::*;
    struct Public(RateLimit<User>);
    #[derive(Hash, PartialEq, Eq)]
    struct User(u64);
    impl<'r> FromRequest<'r, Public> for User {
        type Takes = Nothing;
        fn from_request(_: &Request<'r>, (): (), _: &mut Public) -> Result<User, Rejection> {
            Ok(User(1))
        }
    }
    struct PerUser;
    impl LimitedBy<Public> for PerUser {
        type Key = User;
        fn limit(app: &mut Public) -> &mut RateLimit<User> {
            &mut app.0
        }
    }
    fn list(_: &mut App, _: Limited<PerUser>) -> &'static str {
        "all"
    }
    routes! { Api for App { GET "/list" => list(limit), } }
}

fn main() {}
