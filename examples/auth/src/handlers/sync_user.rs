//! `POST /internal/sync-user`: another system says how a user is: name, whether active, and exactly these roles at this
//! client. Who is not active has no session from then on, in all instances.
//!
//! Anybody can register any address. So a user who has registered and is synced for the first time loses password and
//! sessions, and the owner of the address gets a password from that other system: it can send one along.

use serde::{Deserialize, Serialize};
use sprat::{Json, Later, Rejection};

use crate::guards::{ClientId, FromService};
use crate::handlers::{email, is_storable};
use crate::routes::App;
use crate::store::{Store, Synced, WantedUser};
use crate::{passwords, refusals, tokens};

#[derive(Deserialize)]
pub struct Form {
    client_id: String,
    email: String,
    #[serde(default)]
    name: String,
    #[serde(default = "yes")]
    active: bool,
    #[serde(default)]
    roles: Vec<String>,
    /// From now on. Ends all sessions.
    password: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Serialize)]
struct Answer {
    user_id: String,
    created: bool,
    taken_over: bool,
    sessions_ended: u64,
}

pub fn sync_user(app: &mut App, _: FromService, later: Later<App>, Json(form): Json<Form>) -> Result<(), Rejection> {
    let email = email(&form.email).ok_or_else(refusals::invalid_email)?;
    if !is_storable(&form.name, 256) {
        return Err(refusals::unstorable("name"));
    }
    let Form { client_id, name, active, mut roles, password, .. } = form;
    if roles.len() > 32 || roles.iter().any(|role| role.is_empty() || !is_storable(role, 64)) {
        return Err(refusals::invalid_roles());
    }
    if !ClientId::is_well_formed(&client_id) {
        return Err(refusals::unknown_client());
    }
    if password.as_deref().is_some_and(|password| !passwords::is_acceptable(password)) {
        return Err(refusals::invalid_password());
    }
    roles.sort_unstable();
    roles.dedup();
    let (id, password_hash) = (tokens::random_id(), String::new());
    let wanted = WantedUser { id, email, name, active, roles, password_hash, now: tokens::now() };
    let Some(password) = password else {
        sync(app, client_id, wanted, later);
        return Ok(());
    };
    let cost = app.config.bcrypt_cost;
    later.offload_then(
        move || passwords::hash(&password, cost),
        move |app, hash, later| match hash {
            Some(password_hash) => sync(app, client_id, WantedUser { password_hash, ..wanted }, later),
            None => later.answer(refusals::internal()),
        },
    );
    Ok(())
}

fn sync(app: &mut App, client: String, wanted: WantedUser, later: Later<App>) {
    let sync = move |store: &mut Store| store.sync_user(&client, &wanted);
    app.database.run(later, sync, |_, synced, later| match synced {
        Some(Synced { user_id, created, taken_over, sessions_ended }) => {
            later.answer(Json(Answer { user_id, created, taken_over, sessions_ended }))
        }
        None => later.answer(refusals::unknown_client()),
    });
}
