//! Password hashes: bcrypt, in the threads of the pool only.

use crate::tokens;

/// bcrypt looks at 72 bytes and no further. A longer password is refused, not cut: two of them could be "equal".
const LEN_MAX: usize = 72;
const LEN_MIN: usize = 8;

/// Whether this may become somebody's password.
pub fn is_acceptable(password: &str) -> bool {
    (LEN_MIN..=LEN_MAX).contains(&password.len()) && !password.contains('\0')
}

/// Takes long, by design. None if the system has no random bytes for a salt.
pub fn hash(password: &str, cost: u32) -> Option<String> {
    bcrypt::hash(password, cost).ok()
}

/// Takes as long. A hash that is none matches nothing.
pub fn verify(password: &str, hash: &str) -> bool {
    let right = bcrypt::verify(password, hash).unwrap_or(false);
    right && is_acceptable(password)
}

/// A hash that no password is known for. Who is nobody is verified against it, so that it takes the same time.
pub fn decoy(cost: u32) -> Option<String> {
    hash(&tokens::random_id(), cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_matches_its_hash_and_nothing_else_does() {
        let hash = hash("correct horse", 4).unwrap();
        assert!(verify("correct horse", &hash));
        assert!(!verify("correct horsf", &hash));
        assert!(!verify("correct horse", "no hash"));
        assert!(!verify("correct horse", ""));
    }

    #[test]
    fn what_bcrypt_would_cut_is_no_password() {
        let long = "x".repeat(73);
        assert!(is_acceptable(&long[..72]) && !is_acceptable(&long));
        let hash = hash(&long[..72], 4).unwrap();
        assert!(verify(&long[..72], &hash) && !verify(&long, &hash));
        assert!(!is_acceptable("1234567") && !is_acceptable("with\0zero"));
    }
}
