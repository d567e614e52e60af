//! `POST /internal/validate`, the hottest route: is this token good, and whose is it? As in RFC 7662, a token that is
//! not is no error: `{"active":false}`.
//!
//! The session is looked up each time. A cache would have to hear of revocations in the other instances before it
//! answers, and asking whether it is still right costs as much as the look-up.
//!
//! With SQLite the look-up runs on the loop: it is a search by primary key in pages that are in memory, readers never
//! wait for the writer (WAL), and both ways through another thread would cost more than the search. A page that is not
//! in memory keeps the loop for as long as the disk takes. With PostgreSQL a look-up waits for a network, so it goes
//! through [`crate::database`] like all others.

use serde::{Deserialize, Serialize};
use sprat::{Json, Later, Rejection};

use crate::guards::FromService;
use crate::refusals;
use crate::routes::App;
use crate::store::{Alive, Store};
use crate::tokens::{self, Claims};

#[derive(Deserialize)]
pub struct Form<'r> {
    token: &'r str,
}

#[derive(Default, Serialize)]
pub struct Validity {
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

pub fn here<'r>(app: &mut App, _: FromService, Json(form): Json<Form<'r>>) -> Result<Json<Validity>, Rejection> {
    let Some(claims) = app.tokens.check(form.token) else { return Ok(Json(Validity::default())) };
    let store = app.here.as_mut().ok_or_else(refusals::internal)?;
    let alive = store.session(&claims.sid, tokens::now()).map_err(|error| refusals::store_failed(&error))?;
    Ok(Json(validity(claims, alive)))
}

pub fn there<'r>(app: &mut App, _: FromService, later: Later<App>, Json(form): Json<Form<'r>>) {
    let Some(claims) = app.tokens.check(form.token) else { return later.answer(Json(Validity::default())) };
    let look_up = move |store: &mut Store| {
        let alive = store.session(&claims.sid, tokens::now())?;
        Ok(validity(claims, alive))
    };
    app.database.run(later, look_up, |_, validity, later| later.answer(Json(validity)));
}

fn validity(claims: Claims, alive: Option<Alive>) -> Validity {
    let Some(alive) = alive else { return Validity::default() };
    Validity {
        active: true,
        user_id: Some(alive.user_id),
        client_id: Some(alive.client_id),
        session_id: Some(claims.sid),
        expires_at: Some(alive.expires_at),
    }
}
