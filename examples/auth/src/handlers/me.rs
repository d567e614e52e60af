//! `GET /oauth/me`: who the token's session belongs to, with the roles at its client.

use serde::Serialize;
use sprat::{Json, Later, Respond as _};

use crate::guards::HasToken;
use crate::refusals;
use crate::routes::App;
use crate::store::Store;
use crate::tokens;

#[derive(Serialize)]
struct Me {
    user_id: String,
    email: String,
    name: String,
    client_id: String,
    roles: Vec<String>,
    session_id: String,
    expires_at: i64,
}

pub fn me(app: &mut App, HasToken(claims): HasToken, later: Later<App>) {
    let load = move |store: &mut Store| {
        let Some(alive) = store.session(&claims.sid, tokens::now())? else { return Ok(None) };
        let Some((email, name)) = store.profile(&alive.user_id)? else { return Ok(None) };
        let roles = store.roles(&alive.user_id, &alive.client_id)?;
        Ok(Some(Me {
            user_id: alive.user_id,
            email,
            name,
            client_id: alive.client_id,
            roles,
            session_id: claims.sid,
            expires_at: alive.expires_at,
        }))
    };
    app.database.run(later, load, |_, me, later| match me {
        Some(me) => later.answer(Json(me).field("Cache-Control", "no-store")),
        None => later.answer(refusals::invalid_token()),
    });
}
