//! `GET /oauth/authorize`: a login page asks to begin. Client and redirect address have to be registered, letter for
//! letter, and the challenge of PKCE is kept until the login.

use serde::{Deserialize, Serialize};
use sprat::{Json, Later, Query, Rejection, Respond as _};

use crate::guards::ClientId;
use crate::handlers::is_storable;
use crate::refusals;
use crate::routes::App;
use crate::store::{Flow, Registered, Store};
use crate::tokens;

#[derive(Deserialize)]
pub struct Asked<'r> {
    response_type: &'r str,
    client_id: &'r str,
    redirect_uri: &'r str,
    /// The client's own; it comes back with the login.
    #[serde(default)]
    state: &'r str,
    code_challenge: &'r str,
    code_challenge_method: &'r str,
}

#[derive(Serialize)]
struct Begun {
    flow_id: String,
    expires_in: u64,
}

pub fn authorize<'r>(app: &mut App, later: Later<App>, Query(asked): Query<Asked<'r>>) -> Result<(), Rejection> {
    if !ClientId::is_well_formed(asked.client_id) {
        return Err(refusals::unknown_client());
    }
    if asked.response_type != "code" {
        return Err(refusals::unsupported_response_type());
    }
    if asked.code_challenge_method != "S256" || !tokens::is_challenge(asked.code_challenge) {
        return Err(refusals::wrong_challenge());
    }
    for (name, value) in [("state", asked.state), ("redirect_uri", asked.redirect_uri)] {
        if !is_storable(value, 2048) {
            return Err(refusals::unstorable(name));
        }
    }
    let flow = Flow {
        id: tokens::random_id(),
        client_id: asked.client_id.to_owned(),
        redirect_uri: asked.redirect_uri.to_owned(),
        state: asked.state.to_owned(),
        challenge: asked.code_challenge.to_owned(),
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
