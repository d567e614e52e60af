//! `POST /oauth/register`: a new user, who is a member of the client from then on.

use serde::{Deserialize, Serialize};
use sprat::{Json, Later, Limited, Rejection, Request, Status};

use crate::guards::{ClientId, Registrations};
use crate::handlers::{email, is_storable};
use crate::routes::App;
use crate::store::{NewUser, Store};
use crate::{passwords, refusals, tokens};

#[derive(Deserialize)]
pub struct Form {
    email: String,
    password: String,
    #[serde(default)]
    name: String,
}

#[derive(Serialize)]
struct Registered {
    user_id: String,
    email: String,
}

pub fn register(
    app: &mut App,
    client: ClientId,
    _: Limited<Registrations>,
    request: Request<'_>,
    later: Later<App>,
    Json(form): Json<Form>,
) -> Result<(), Rejection> {
    let email = email(&form.email).ok_or_else(refusals::invalid_email)?;
    if !passwords::is_acceptable(&form.password) {
        return Err(refusals::invalid_password());
    }
    if !is_storable(&form.name, 256) {
        return Err(refusals::unstorable("name"));
    }
    let Form { password, name, .. } = form;
    let is_known = {
        let ClientId(client) = client.clone();
        move |store: &mut Store| store.client_exists(&client)
    };
    let now = request.now();
    // Before the hash: a made-up client gets no work done.
    app.database.run(later, is_known, move |app, known, later| {
        if !known {
            return later.answer(refusals::unknown_client());
        }
        if let Err(too_many) = app.registrations.admit(client.clone(), now) {
            return later.answer(refusals::too_many(too_many));
        }
        let cost = app.config.bcrypt_cost;
        later.offload_then(
            move || passwords::hash(&password, cost),
            move |app, hash, later| {
                let Some(password_hash) = hash else { return later.answer(refusals::internal()) };
                let user = NewUser { id: tokens::random_id(), email, name, password_hash, now: tokens::now() };
                insert(app, client.0, user, later);
            },
        );
    });
    Ok(())
}

fn insert(app: &mut App, client: String, user: NewUser, later: Later<App>) {
    let registered = Registered { user_id: user.id.clone(), email: user.email.clone() };
    let insert = move |store: &mut Store| store.register(&client, &user);
    app.database.run(later, insert, move |_, inserted, later| match inserted {
        true => later.answer((Status::CREATED, Json(registered))),
        false => later.answer(refusals::email_taken()),
    });
}
