//! `POST /internal/sync-user`: another system says how a user is: name, whether active, and exactly these roles at this
//! client. Who is not active has no session from then on, in all instances.

use serde::{Deserialize, Serialize};
use sprat::{Json, Later, Rejection};

use crate::guards::{ClientId, FromService};
use crate::handlers::{email, is_storable};
use crate::routes::App;
use crate::store::{Store, Synced, WantedUser};
use crate::{refusals, tokens};

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
}

fn yes() -> bool {
    true
}

#[derive(Serialize)]
struct Answer {
    user_id: String,
    created: bool,
    sessions_ended: u64,
}

pub fn sync_user(app: &mut App, _: FromService, later: Later<App>, Json(form): Json<Form>) -> Result<(), Rejection> {
    let email = email(&form.email).ok_or_else(refusals::invalid_email)?;
    if !is_storable(&form.name, 256) {
        return Err(refusals::unstorable("name"));
    }
    let Form { client_id, name, active, mut roles, .. } = form;
    if roles.len() > 32 || roles.iter().any(|role| role.is_empty() || !is_storable(role, 64)) {
        return Err(refusals::invalid_roles());
    }
    if !ClientId::is_well_formed(&client_id) {
        return Err(refusals::unknown_client());
    }
    roles.sort_unstable();
    roles.dedup();
    let wanted = WantedUser { id: tokens::random_id(), email, name, active, roles, now: tokens::now() };
    let sync = move |store: &mut Store| store.sync_user(&client_id, &wanted);
    app.database.run(later, sync, |_, synced, later| match synced {
        Some(Synced { user_id, created, sessions_ended }) => {
            later.answer(Json(Answer { user_id, created, sessions_ended }))
        }
        None => later.answer(refusals::unknown_client()),
    });
    Ok(())
}
