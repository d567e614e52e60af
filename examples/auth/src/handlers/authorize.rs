//! `GET /oauth/authorize`: a login page asks to begin. Client and redirect address have to be registered, letter for
//! letter, and the challenge of PKCE is kept until the login.

use serde::{Deserialize, Serialize};
use sprat::{Json, Later, Limited, Query, Rejection, Respond as _};

use crate::guards::{ClientId, Flows};
use crate::handlers::is_storable;
use crate::refusals;
use crate::routes::App;
use crate::store::{Flow, Registered, Store};
use crate::tokens;

#[derive(Deserialize)]
pub struct Asked {
    response_type: String,
    client_id: String,
    redirect_uri: String,
    /// The client's own; it comes back with the login.
    #[serde(default)]
    state: String,
    code_challenge: String,
    code_challenge_method: String,
}

#[derive(Serialize)]
struct Begun {
    flow_id: String,
    expires_in: u64,
}

pub fn authorize(
    app: &mut App,
    _: Limited<Flows>,
    later: Later<App>,
    Query(asked): Query<Asked>,
) -> Result<(), Rejection> {
    if !ClientId::is_well_formed(&asked.client_id) {
        return Err(refusals::unknown_client());
    }
    if asked.response_type != "code" {
        return Err(refusals::unsupported_response_type());
    }
    if asked.code_challenge_method != "S256" || !tokens::is_challenge(&asked.code_challenge) {
        return Err(refusals::wrong_challenge());
    }
    for (name, value) in [("state", &asked.state), ("redirect_uri", &asked.redirect_uri)] {
        if !is_storable(value, 2048) {
            return Err(refusals::unstorable(name));
        }
    }
    let flow = Flow {
        id: tokens::random_id(),
        client_id: asked.client_id,
        redirect_uri: asked.redirect_uri,
        state: asked.state,
        challenge: asked.code_challenge,
        expires_at: tokens::now() + app.config.flow.as_secs() as i64,
    };
    let begun = Begun { flow_id: flow.id.clone(), expires_in: app.config.flow.as_secs() };
    let begin = move |store: &mut Store| {
        let registered = store.registered(&flow.client_id, &flow.redirect_uri)?;
        if registered == Registered::Both {
            store.begin_flow(&flow)?;
        }
        Ok(registered)
    };
    app.database.run(later, begin, move |_, registered, later| match registered {
        Registered::Nothing => later.answer(refusals::unknown_client()),
        Registered::Client => later.answer(refusals::wrong_redirect()),
        Registered::Both => later.answer(Json(begun).field("Cache-Control", "no-store")),
    });
    Ok(())
}
