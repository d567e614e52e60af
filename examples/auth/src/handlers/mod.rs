//! One file for each route. A handler checks what it can by itself, and hands the rest to [`crate::database`] and to
//! the pool; each of them calls the next step with the state, in the loop's thread.

pub mod authorize;
pub mod health;
pub mod login;
pub mod me;
pub mod register;
pub mod sync_user;
pub mod validate;
pub mod version;

/// An email as it is stored and looked for: without blanks around it, in lower case. None if it cannot be one.
///
/// No more than a sanity check: whether somebody reads mail there can only be found out by sending some.
fn email(text: &str) -> Option<String> {
    let text = text.trim();
    let (user, host) = text.rsplit_once('@')?;
    let plausible = !user.is_empty() && !host.is_empty() && text.len() <= 254;
    let clean = !text.contains(|c: char| c.is_control() || c.is_whitespace());
    (plausible && clean).then(|| text.to_lowercase())
}

/// Whether both databases can keep this text. PostgreSQL has none with a zero byte.
fn is_storable(text: &str, len_max: usize) -> bool {
    text.len() <= len_max && !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::email;

    #[test]
    fn emails_are_compared_without_case_and_nonsense_is_refused() {
        assert_eq!(email(" Ada@Example.ORG "), Some("ada@example.org".into()));
        for nonsense in ["", "ada", "@x", "ada@", "a b@x", "a\n@x", &format!("{}@x", "a".repeat(254))] {
            assert_eq!(email(nonsense), None, "{nonsense}");
        }
    }
}
