//! Each route: what it does, and what it refuses.

mod common;

use std::time::{Duration, Instant};

use auth::tokens::{self, Tokens};
use common::{CLIENT, JWT_SECRET, Lab, PASSWORD, REDIRECT, SERVICE_KEY, VERIFIER, authorize_target, credentials};
use serde_json::{Value, json};

#[test]
fn health_and_version_answer_and_a_draining_instance_says_so() {
    let lab = Lab::new();
    let mut client = lab.connect();
    let health = client.get("/health");
    assert_eq!((health.status, &health.json), (200, &json!({"status": "ok"})));
    let version = client.get("/version");
    assert_eq!((version.status, version.text("version")), (200, env!("CARGO_PKG_VERSION")));
    lab.handle.shutdown_after(Duration::from_secs(5));
    let started = Instant::now();
    while client.get("/health").json != json!({"status": "draining"}) {
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn what_no_handler_answers_is_json_too() {
    let lab = Lab::new();
    lab.connect().get("/none").is(404, "not_found");
    lab.connect().ask("POST", "/health", &[], None).is(405, "method_not_allowed");
    lab.connect().ask("GET", "/health", &[("Content-Length", "x")], None).is(400, "bad_request");
    let large = Value::String("x".repeat(5000));
    lab.connect().ask("POST", "/oauth/login", &[("X-Client-Id", CLIENT)], Some(&large)).is(413, "content_too_large");
}

// ---- authorize ---------------------------------------------------------------------------------------------------

#[test]
fn a_flow_begins_for_a_registered_client_and_its_address() {
    let mut lab = Lab::new();
    let answer = lab.connect().get(&authorize_target(&[]));
    assert_eq!((answer.status, answer.json["expires_in"].as_u64()), (200, Some(600)));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    let flow = lab.store.flow(answer.text("flow_id"), tokens::now()).unwrap().expect("it is stored");
    assert_eq!((&*flow.client_id, &*flow.redirect_uri, &*flow.state), (CLIENT, REDIRECT, "xyz"));
    assert_eq!(flow.challenge, tokens::challenge_of(VERIFIER));
}

#[test]
fn a_flow_needs_exactly_what_was_registered_and_pkce() {
    let lab = Lab::new();
    let mut client = lab.connect();
    let mut refused = |name, value| client.get(&authorize_target(&[(name, value)]));
    refused("client_id", "unknown").is(400, "invalid_client");
    refused("client_id", "no%20id").is(400, "invalid_client");
    // An address that only begins, or ends, or compares like the registered one is another.
    for near in [
        "http://localhost:8080/callback/",
        "http://localhost:8080/callback?x=1",
        "http://localhost:8080/Callback",
        "https://localhost:8080/callback",
        "http://localhost:8080/callbac",
    ] {
        let answer = refused("redirect_uri", near);
        answer.is(400, "invalid_redirect_uri");
        assert_eq!(answer.field("location"), None);
    }
    refused("response_type", "token").is(400, "unsupported_response_type");
    refused("code_challenge_method", "plain").is(400, "invalid_request");
    refused("code_challenge", "short").is(400, "invalid_request");
    refused("state", "%00").is(400, "invalid_request");
    for missing in ["client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method"] {
        let answer = refused(missing, "");
        assert!((400..=422).contains(&answer.status), "{}", answer.json);
        assert!(answer.json.to_string().contains(missing), "{}", answer.json);
    }
    assert_eq!(refused("state", "").status, 200);
}

// ---- register ----------------------------------------------------------------------------------------------------

#[test]
fn who_registers_can_log_in_and_has_the_role_of_a_member() {
    let lab = Lab::new();
    let mut client = lab.connect();
    let registered = client.register(" Ada@Example.org ");
    assert_eq!((registered.status, registered.text("email")), (201, "ada@example.org"));
    let welcome = client.log_in("ada@example.org");
    assert_eq!(welcome.text("user_id"), registered.text("user_id"));
    assert_eq!(client.me(welcome.text("access_token")).json["roles"], json!(["member"]));
}

#[test]
fn a_registration_is_refused_for_what_is_wrong_with_it() {
    let lab = Lab::new();
    let mut client = lab.connect();
    let mut register = |fields: &[(&str, &str)], form| client.ask("POST", "/oauth/register", fields, Some(&form));
    let demo = [("X-Client-Id", CLIENT)];
    register(&[], credentials("a@x")).is(400, "invalid_client");
    register(&[("X-Client-Id", "a b")], credentials("a@x")).is(400, "invalid_client");
    register(&[("X-Client-Id", "unknown")], credentials("a@x")).is(400, "invalid_client");
    register(&demo, credentials("nobody")).is(422, "invalid_email");
    register(&demo, json!({"email": "a@x", "password": "short"})).is(422, "invalid_password");
    register(&demo, json!({"email": "a@x", "password": "x".repeat(73)})).is(422, "invalid_password");
    register(&demo, json!({"email": "a@x", "password": PASSWORD, "name": "\0"})).is(400, "invalid_request");
    register(&demo, json!({"email": "a@x"})).is(422, "invalid_body");
    assert_eq!(register(&demo, credentials("a@x")).status, 201);
    register(&demo, credentials("A@X")).is(409, "email_taken");
}

#[test]
fn of_many_registrations_of_one_email_one_succeeds() {
    let lab = Lab::new();
    let mut clients: Vec<_> = (0..20).map(|_| lab.connect()).collect();
    for client in &mut clients {
        client.send("POST", "/oauth/register", &[("X-Client-Id", CLIENT)], Some(&credentials("ada@example.org")));
    }
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.read().status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 19, "{statuses:?}");
}

// ---- login -------------------------------------------------------------------------------------------------------

#[test]
fn a_login_gives_a_token_for_a_session_and_sends_back_to_the_client() {
    let lab = Lab::new();
    let mut client = lab.connect();
    client.register("ada@example.org");
    let welcome = client.log_in("ADA@example.org");
    assert_eq!((welcome.text("redirect_uri"), welcome.text("state")), (REDIRECT, "xyz"));
    assert_eq!((welcome.text("token_type"), welcome.json["expires_in"].as_u64()), ("Bearer", Some(43_200)));
    assert_eq!(welcome.field("cache-control"), Some("no-store"));
    let claims = Tokens::new(JWT_SECRET.as_bytes(), "sprat-auth").unwrap().check(welcome.text("access_token")).unwrap();
    assert_eq!((&*claims.sub, &*claims.aud), (welcome.text("user_id"), CLIENT));
    assert_eq!(claims.sid, welcome.text("session_id"));
}

#[test]
fn a_wrong_password_an_unknown_email_and_a_stranger_look_the_same() {
    let mut lab = Lab::new();
    lab.store.put_client("other", "other", &[REDIRECT.into()], tokens::now()).unwrap();
    let mut client = lab.connect();
    client.register("ada@example.org");
    client.sync(&json!({"client_id": CLIENT, "email": "no-password@example.org"}));
    client.sync(&json!({"client_id": "other", "email": "stranger@example.org"}));
    let register =
        client.ask("POST", "/oauth/register", &[("X-Client-Id", "other")], Some(&credentials("other@example.org")));
    assert_eq!(register.status, 201);
    let flow = client.authorize();
    let mut bodies = Vec::new();
    for (email, password) in [
        ("ada@example.org", "wrong password"),
        ("ada@example.org", ""),
        ("ada@example.org", &*"x".repeat(100)),
        ("unknown@example.org", PASSWORD),
        ("no email at all", PASSWORD),
        ("no-password@example.org", PASSWORD),
        ("stranger@example.org", PASSWORD),
        ("other@example.org", PASSWORD),
    ] {
        let answer = client.login(&flow, email, password);
        answer.is(401, "invalid_credentials");
        assert_eq!(answer.field("www-authenticate"), Some("Password realm=\"login\""));
        bodies.push(answer.json);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    // The flow is as good as before.
    assert_eq!(client.login(&flow, "ada@example.org", PASSWORD).status, 200);
}

#[test]
fn a_flow_is_for_its_own_client_and_verifier_and_opens_one_session() {
    let mut lab = Lab::new();
    lab.store.put_client("other", "other", &[REDIRECT.into()], tokens::now()).unwrap();
    let mut client = lab.connect();
    client.register("ada@example.org");
    let flow = client.authorize();
    let mut login = |id: &str, flow: &str, verifier: &str| {
        let form = json!({
            "flow_id": flow, "code_verifier": verifier, "email": "ada@example.org", "password": PASSWORD
        });
        client.ask("POST", "/oauth/login", &[("X-Client-Id", id)], Some(&form))
    };
    login(CLIENT, &flow, &"x".repeat(43)).is(400, "invalid_grant");
    login(CLIENT, &flow, "short").is(400, "invalid_grant");
    login("other", &flow, VERIFIER).is(400, "invalid_grant");
    login(CLIENT, "unknown", VERIFIER).is(400, "invalid_grant");
    login(CLIENT, "\0", VERIFIER).is(400, "invalid_grant");
    assert_eq!(login(CLIENT, &flow, VERIFIER).status, 200);
    login(CLIENT, &flow, VERIFIER).is(400, "invalid_grant");
}

#[test]
fn of_many_logins_with_one_flow_one_succeeds() {
    let lab = Lab::new();
    let mut client = lab.connect();
    client.register("ada@example.org");
    let flow = client.authorize();
    let mut clients: Vec<_> = (0..20).map(|_| lab.connect()).collect();
    clients.iter_mut().for_each(|client| client.send_login(&flow, "ada@example.org", PASSWORD));
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.read().status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 400).count(), 19, "{statuses:?}");
}

#[test]
fn a_flow_is_over_after_its_time() {
    let lab = Lab::with(&[("FLOW_SECONDS", "1")], |_| {});
    let mut client = lab.connect();
    client.register("ada@example.org");
    let flow = client.authorize();
    std::thread::sleep(Duration::from_millis(2100));
    client.login(&flow, "ada@example.org", PASSWORD).is(400, "invalid_grant");
}

#[test]
fn without_room_for_a_hash_the_answer_is_503_at_once() {
    let mut lab = Lab::with(&[("LOGIN_THREADS", "1"), ("LOGIN_QUEUE", "0"), ("BCRYPT_COST", "10")], |_| {});
    lab.begin_flows((0..10).map(|id| format!("f{id}")));
    let mut clients: Vec<_> = (0..10).map(|_| lab.connect()).collect();
    for (id, client) in clients.iter_mut().enumerate() {
        client.send_login(&format!("f{id}"), "unknown@example.org", PASSWORD);
    }
    let mut busy = 0;
    for client in &mut clients {
        let answer = client.read();
        if answer.status == 503 {
            answer.is(503, "service_unavailable");
            assert_eq!(answer.field("retry-after"), Some("1"));
            busy += 1;
        } else {
            answer.is(401, "invalid_credentials");
        }
    }
    assert!((1..=9).contains(&busy), "{busy}");
}

// ---- me and validate ---------------------------------------------------------------------------------------------

#[test]
fn me_tells_user_client_roles_and_session() {
    let lab = Lab::new();
    let mut client = lab.connect();
    client.register("ada@example.org");
    let welcome = client.log_in("ada@example.org");
    let me = client.me(welcome.text("access_token"));
    assert_eq!(me.status, 200);
    assert_eq!((me.text("email"), me.text("name"), me.text("client_id")), ("ada@example.org", "Ada", CLIENT));
    assert_eq!(me.text("session_id"), welcome.text("session_id"));
    assert!(me.json["expires_at"].as_i64().unwrap() > tokens::now() + 43_000);
}

#[test]
fn me_needs_a_token_of_ours_with_a_session() {
    let lab = Lab::new();
    let mut client = lab.connect();
    let answer = client.get("/oauth/me");
    answer.is(401, "Unauthorized");
    assert_eq!(answer.field("www-authenticate"), Some("Bearer"));
    client.me("no.jwt.token").is(401, "invalid_token");
    let (now, ours) = (tokens::now(), Tokens::new(JWT_SECRET.as_bytes(), "sprat-auth").unwrap());
    let forged = Tokens::new(&[7; 32], "sprat-auth").unwrap().mint("u", CLIENT, "s", now, now + 60).unwrap();
    client.me(&forged).is(401, "invalid_token");
    // Signed by us, but there is no such session.
    let answer = client.me(&ours.mint("u", CLIENT, "s", now, now + 60).unwrap());
    answer.is(401, "invalid_token");
    assert_eq!(answer.field("www-authenticate"), Some("Bearer error=\"invalid_token\""));
}

#[test]
fn validate_tells_services_whose_a_token_is() {
    let lab = Lab::new();
    let mut client = lab.connect();
    client.register("ada@example.org");
    let welcome = client.log_in("ada@example.org");
    let valid = client.validate(welcome.text("access_token"));
    assert_eq!((valid.status, &valid.json["active"]), (200, &json!(true)));
    assert_eq!((valid.text("user_id"), valid.text("client_id")), (welcome.text("user_id"), CLIENT));
    let inactive = json!({"active": false});
    assert_eq!(client.validate("nonsense").json, inactive);
    let (now, ours) = (tokens::now(), Tokens::new(JWT_SECRET.as_bytes(), "sprat-auth").unwrap());
    assert_eq!(client.validate(&ours.mint("u", CLIENT, "s", now, now + 60).unwrap()).json, inactive);
}

#[test]
fn internal_routes_need_the_key_and_say_so_before_they_read_a_body() {
    let lab = Lab::new();
    for target in ["/internal/validate", "/internal/sync-user"] {
        for fields in [&[][..], &[("X-Service-Key", "wrong")], &[("X-Service-Key", "b key for services")]] {
            let mut client = lab.connect();
            // Announces a body and sends none.
            let fields = [fields, &[("Content-Length", "100")]].concat();
            let answer = client.ask("POST", target, &fields, None);
            answer.is(401, "invalid_service_key");
            assert_eq!(answer.field("www-authenticate"), Some("Service-Key realm=\"internal\""));
        }
    }
    let fields = [("X-Service-Key", SERVICE_KEY)];
    lab.connect().ask("POST", "/internal/validate", &fields, Some(&json!({"token": 5}))).is(422, "invalid_body");
    lab.connect().ask("POST", "/internal/validate", &fields, None).is(400, "invalid_body");
}

#[test]
fn a_session_is_over_after_its_time() {
    let lab = Lab::with(&[("SESSION_SECONDS", "1")], |_| {});
    let mut client = lab.connect();
    client.register("ada@example.org");
    let welcome = client.log_in("ada@example.org");
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(client.validate(welcome.text("access_token")).json, json!({"active": false}));
    client.me(welcome.text("access_token")).is(401, "invalid_token");
}

// ---- sync-user ---------------------------------------------------------------------------------------------------

#[test]
fn a_synced_user_has_exactly_the_roles_that_were_sent() {
    let lab = Lab::new();
    let mut client = lab.connect();
    let created = client.sync(&json!({
        "client_id": CLIENT, "email": "ada@example.org", "roles": ["ops"], "password": PASSWORD
    }));
    assert_eq!((created.status, &created.json["created"]), (200, &json!(true)));
    let welcome = client.log_in("ada@example.org");
    let synced = client.sync(&json!({
        "client_id": CLIENT, "email": "Ada@example.org", "name": "Ada L.", "roles": ["ops", "admin", "ops"]
    }));
    assert_eq!((synced.text("user_id"), &synced.json["created"]), (created.text("user_id"), &json!(false)));
    let me = client.me(welcome.text("access_token"));
    assert_eq!((me.text("name"), &me.json["roles"]), ("Ada L.", &json!(["admin", "ops"])));
    let created = client.sync(&json!({"client_id": CLIENT, "email": "new@example.org"}));
    assert_eq!((created.status, &created.json["created"]), (200, &json!(true)));
}

/// Somebody registers the address of another, and waits for what the company gives to its owner.
#[test]
fn a_sync_hands_no_role_to_whoever_registered_the_address_first() {
    let mut lab = Lab::new();
    lab.store.put_client("admin-app", "admin-app", &[REDIRECT.into()], tokens::now()).unwrap();
    let mut client = lab.connect();
    assert_eq!(client.register("ceo@corp.example").status, 201);
    let theirs = client.log_in("ceo@corp.example");
    let to_admin_app = |client: &mut common::Client, password: &str| {
        let flow = client.get(&authorize_target(&[("client_id", "admin-app")])).text("flow_id").to_owned();
        let form = common::login_form(&flow, "ceo@corp.example", password);
        client.ask("POST", "/oauth/login", &[("X-Client-Id", "admin-app")], Some(&form))
    };
    let form = json!({"client_id": "admin-app", "email": "ceo@corp.example", "roles": ["admin"]});
    let synced = client.sync(&form);
    assert_eq!((&synced.json["created"], &synced.json["taken_over"]), (&json!(false), &json!(true)));
    assert_eq!(synced.json["sessions_ended"], json!(1));
    assert_eq!(client.validate(theirs.text("access_token")).json, json!({"active": false}));
    client.me(theirs.text("access_token")).is(401, "invalid_token");
    to_admin_app(&mut client, PASSWORD).is(401, "invalid_credentials");
    let flow = client.authorize();
    client.login(&flow, "ceo@corp.example", PASSWORD).is(401, "invalid_credentials");
    client.register("ceo@corp.example").is(409, "email_taken");
    // The owner gets a password from the company, and keeps it when the company says the same once more.
    let mut with_password = form.clone();
    with_password["password"] = json!("set by the company");
    let synced = client.sync(&with_password);
    assert_eq!((synced.status, &synced.json["taken_over"]), (200, &json!(false)));
    let welcome = to_admin_app(&mut client, "set by the company");
    assert_eq!(client.me(welcome.text("access_token")).json["roles"], json!(["admin"]));
    assert_eq!(client.sync(&form).json["sessions_ended"], json!(0));
    assert_eq!(client.me(welcome.text("access_token")).status, 200);
    assert_eq!(client.sync(&with_password).json["sessions_ended"], json!(1));
    client.me(welcome.text("access_token")).is(401, "invalid_token");
}

#[test]
fn a_login_that_is_under_way_during_a_sync_opens_no_session() {
    let lab = Lab::with(&[("BCRYPT_COST", "11")], |_| {});
    let (mut client, mut service) = (lab.connect(), lab.connect());
    client.register("ceo@corp.example");
    let flow = client.authorize();
    client.send_login(&flow, "ceo@corp.example", PASSWORD);
    // Meanwhile it is being hashed.
    std::thread::sleep(Duration::from_millis(20));
    service.sync(&json!({"client_id": CLIENT, "email": "ceo@corp.example", "roles": ["admin"]}));
    client.read().is(401, "invalid_credentials");
}

#[test]
fn who_registered_before_it_was_kept_who_is_synced_is_taken_over_too() {
    let mut lab = Lab::new();
    let mut client = lab.connect();
    client.register("ceo@corp.example");
    // As an older version has left it.
    lab.raw("DROP TABLE synced_users");
    lab.store = auth::store::Store::open(&lab.config.database).unwrap();
    let synced = client.sync(&json!({"client_id": CLIENT, "email": "ceo@corp.example", "roles": ["admin"]}));
    assert_eq!((synced.status, &synced.json["taken_over"]), (200, &json!(true)));
    let flow = client.authorize();
    client.login(&flow, "ceo@corp.example", PASSWORD).is(401, "invalid_credentials");
}

#[test]
fn who_is_shut_out_has_no_session_from_then_on_and_cannot_log_in() {
    let lab = Lab::new();
    let mut client = lab.connect();
    client.sync(&json!({"client_id": CLIENT, "email": "ada@example.org", "password": PASSWORD}));
    let tokens: Vec<String> =
        (0..3).map(|_| client.log_in("ada@example.org").text("access_token").to_owned()).collect();
    let out = client.sync(&json!({"client_id": CLIENT, "email": "ada@example.org", "active": false}));
    assert_eq!(out.json["sessions_ended"], json!(3));
    for token in &tokens {
        assert_eq!(client.validate(token).json, json!({"active": false}));
        client.me(token).is(401, "invalid_token");
    }
    let flow = client.authorize();
    client.login(&flow, "ada@example.org", PASSWORD).is(401, "invalid_credentials");
    // Back in, with the password of before, but without the sessions.
    client.sync(&json!({"client_id": CLIENT, "email": "ada@example.org"}));
    assert_eq!(client.validate(&tokens[0]).json, json!({"active": false}));
    assert_eq!(client.login(&flow, "ada@example.org", PASSWORD).status, 200);
}

#[test]
fn a_sync_is_refused_for_what_is_wrong_with_it() {
    let lab = Lab::new();
    let mut client = lab.connect();
    client.sync(&json!({"client_id": "unknown", "email": "a@x"})).is(400, "invalid_client");
    client.sync(&json!({"client_id": "a b", "email": "a@x"})).is(400, "invalid_client");
    client.sync(&json!({"client_id": CLIENT, "email": "nobody"})).is(422, "invalid_email");
    client.sync(&json!({"client_id": CLIENT, "email": "a@x", "roles": [""]})).is(422, "invalid_roles");
    client.sync(&json!({"client_id": CLIENT, "email": "a@x", "roles": vec!["r"; 33]})).is(422, "invalid_roles");
    client.sync(&json!({"client_id": CLIENT, "email": "a@x", "password": "short"})).is(422, "invalid_password");
    client.sync(&json!({"client_id": CLIENT})).is(422, "invalid_body");
}
