//! `POST /oauth/login`: the flow's PKCE verifier, an email and a password, for a token and its session.
//!
//! ```text
//!   loop: limit by address --> database: flow, user --> loop: limit by client
//!     --> pool: bcrypt --> database: session, flow is over --> answer
//! ```

use serde::{Deserialize, Serialize};
use sprat::{Json, Later, Limited, Rejection, Request, Respond as _};

use crate::guards::{ClientId, Logins};
use crate::handlers::{email, is_storable};
use crate::routes::App;
use crate::store::{Candidate, Flow, Opened, Session, Store};
use crate::{passwords, refusals, tokens};

#[derive(Deserialize)]
pub struct Form {
    flow_id: String,
    code_verifier: String,
    email: String,
    password: String,
}

#[derive(Serialize)]
struct Welcome {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    user_id: String,
    session_id: String,
    redirect_uri: String,
    state: String,
}

pub fn login(
    app: &mut App,
    client: ClientId,
    _: Limited<Logins>,
    request: Request<'_>,
    later: Later<App>,
    Json(form): Json<Form>,
) -> Result<(), Rejection> {
    if !tokens::is_verifier(&form.code_verifier) || !is_storable(&form.flow_id, 64) {
        return Err(refusals::invalid_flow());
    }
    let Form { flow_id, code_verifier, email: text, password } = form;
    // What cannot be an email is nobody's, and goes the whole way like any other that is nobody's.
    let email = email(&text).unwrap_or_default();
    let look_up = {
        let ClientId(client) = client.clone();
        move |store: &mut Store| Ok((store.flow(&flow_id, tokens::now())?, store.candidate(&email, &client)?))
    };
    let now = request.now();
    app.database.run(later, look_up, move |app, (flow, candidate), later| {
        let of_this_client =
            |flow: &Flow| flow.client_id == client.0 && flow.challenge == tokens::challenge_of(&code_verifier);
        let Some(flow) = flow.filter(of_this_client) else { return later.answer(refusals::invalid_flow()) };
        // Not before there is a flow: else anybody could use up what the client has.
        match app.logins.admit(client, now) {
            Ok(_) => verify(app, flow, candidate, password, later),
            Err(too_many) => later.answer(refusals::too_many(too_many)),
        }
    });
    Ok(())
}

/// Every login comes to this, whoever it is for, so that an unknown email takes as long as a wrong password.
fn verify(app: &mut App, flow: Flow, candidate: Option<Candidate>, password: String, later: Later<App>) {
    let hash = candidate.as_ref().map_or(&app.decoy, |candidate| &candidate.password_hash).clone();
    let verified = move || passwords::verify(&password, &hash);
    later.offload_then(verified, move |app, right, later| match candidate {
        Some(user) if right => open_session(app, flow, user, later),
        _ => later.answer(refusals::invalid_credentials()),
    });
}

fn open_session(app: &mut App, flow: Flow, user: Candidate, later: Later<App>) {
    let (now, lasts) = (tokens::now(), app.config.session.as_secs());
    let session = Session {
        id: tokens::random_id(),
        user_id: user.user_id,
        client_id: flow.client_id,
        created_at: now,
        expires_at: now + lasts as i64,
    };
    let token = app.tokens.mint(&session.user_id, &session.client_id, &session.id, now, session.expires_at);
    let Some(access_token) = token else { return later.answer(refusals::internal()) };
    let welcome = Welcome {
        access_token,
        token_type: "Bearer",
        expires_in: lasts,
        user_id: session.user_id.clone(),
        session_id: session.id.clone(),
        redirect_uri: flow.redirect_uri,
        state: flow.state,
    };
    let open = move |store: &mut Store| store.open_session(&flow.id, &user.password_hash, &session);
    app.database.run(later, open, move |_, opened, later| match opened {
        Opened::Session => later.answer(Json(welcome).field("Cache-Control", "no-store")),
        // Somebody was faster with the same flow: it opens one session and no second.
        Opened::FlowUsed => later.answer(refusals::invalid_flow()),
        // The password was right when it was looked up, and is not any more.
        Opened::UserChanged => later.answer(refusals::invalid_credentials()),
    });
}
