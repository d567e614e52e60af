//! Tokens: JWTs (HS256), random ids, the PKCE challenge, and the time that they are dated with.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What a token says. It stands for a session: without one in the database it is worth nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who made it.
    pub iss: String,
    /// The user.
    pub sub: String,
    /// The client that the user logged in to.
    pub aud: String,
    /// The session.
    pub sid: String,
    /// When it was made, and until when it is valid; seconds of Unix.
    pub iat: i64,
    pub exp: i64,
}

/// Makes tokens and checks them.
pub struct Tokens {
    header: Header,
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
    issuer: String,
}

impl Tokens {
    /// None if the secret is not good enough for a key.
    pub fn new(secret: &[u8], issuer: &str) -> Option<Tokens> {
        // One algorithm and no other, whatever a token says of itself.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["exp", "iss"]);
        validation.set_issuer(&[issuer]);
        validation.leeway = 0;
        // Tokens of all clients are checked here; whose it is stands in the answer.
        validation.validate_aud = false;
        Some(Tokens {
            header: Header::new(Algorithm::HS256),
            encoding: EncodingKey::from_secret(secret).ok()?,
            decoding: DecodingKey::from_secret(secret).ok()?,
            validation,
            issuer: issuer.to_owned(),
        })
    }

    /// None if it cannot be signed.
    pub fn mint(&self, user: &str, client: &str, session: &str, now: i64, expires_at: i64) -> Option<String> {
        let claims = Claims {
            iss: self.issuer.clone(),
            sub: user.to_owned(),
            aud: client.to_owned(),
            sid: session.to_owned(),
            iat: now,
            exp: expires_at,
        };
        jsonwebtoken::encode(&self.header, &claims, &self.encoding).ok()
    }

    /// What a token says, if we said it and its time is not over.
    pub fn check(&self, token: &str) -> Option<Claims> {
        jsonwebtoken::decode(token, &self.decoding, &self.validation).ok().map(|data| data.claims)
    }
}

/// 128 bits that nobody can guess, as text.
///
/// # Panics
/// If the system has no random bytes: there is nothing that could be done instead.
pub fn random_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// 256 bits, for keys.
pub fn random_secret() -> String {
    random_id() + &random_id()
}

/// `BASE64URL(SHA256(code_verifier))` (RFC 7636 4.2).
pub fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

/// `code-verifier = 43*128unreserved` (RFC 7636 4.1).
pub fn is_verifier(text: &str) -> bool {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (43..=128).contains(&text.len()) && text.bytes().all(unreserved)
}

/// What S256 makes: 43 characters of base64url.
pub fn is_challenge(text: &str) -> bool {
    text.len() == 43 && URL_SAFE_NO_PAD.decode(text).is_ok()
}

/// Seconds of Unix.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_was_made_of_and_only_to_the_key_that_made_it() {
        let (ours, theirs) = (Tokens::new(&[1; 32], "us").unwrap(), Tokens::new(&[2; 32], "us").unwrap());
        let token = ours.mint("ada", "app", "s1", now(), now() + 60).unwrap();
        let claims = ours.check(&token).unwrap();
        assert_eq!((&*claims.sub, &*claims.aud, &*claims.sid), ("ada", "app", "s1"));
        assert_eq!(theirs.check(&token), None);
        assert_eq!(Tokens::new(&[1; 32], "others").unwrap().check(&token), None);
        assert_eq!(ours.check(&token[..token.len() - 1]), None);
    }

    #[test]
    fn a_token_is_over_when_it_says_so_and_none_without_a_signature_passes() {
        let tokens = Tokens::new(&[1; 32], "us").unwrap();
        let over = tokens.mint("ada", "app", "s1", now() - 60, now() - 1).unwrap();
        assert_eq!(tokens.check(&over), None);
        let token = tokens.mint("ada", "app", "s1", now(), now() + 60).unwrap();
        let claims = token.split('.').nth(1).unwrap();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        assert_eq!(tokens.check(&format!("{none}.{claims}.")), None);
    }

    #[test]
    fn the_challenge_is_that_of_the_specification() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge_of(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(is_verifier(verifier) && !is_verifier(&verifier[1..]));
        assert!(is_challenge(&challenge_of(verifier)) && !is_challenge(&"=".repeat(43)));
    }
}
