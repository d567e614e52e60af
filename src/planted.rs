//! Bugs on purpose, so that each fuzz target can show that it finds one: see `fuzz/planted.sh`.
//!
//! They exist only in a build with `--cfg planted`, which no feature of the crate sets; then the environment variable
//! SPRAT_PLANTED names the one that bites.

#[cfg(not(planted))]
macro_rules! planted {
    ($name:literal) => {
        false
    };
}

#[cfg(planted)]
macro_rules! planted {
    ($name:literal) => {
        crate::planted::bites($name)
    };
}

#[cfg(planted)]
pub(crate) fn bites(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("SPRAT_PLANTED").unwrap_or_default()) == name
}
