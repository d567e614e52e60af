//! The tree checks itself: imports point down, and each foreign crate is named where it belongs.

use std::path::{Path, PathBuf};

/// Modules by layer; see ARCHITECTURE.md.
const LAYERS: [&[&str]; 6] = [
    &["method", "status", "date", "limits", "reject", "caught", "planted"],
    &["head", "target", "framing", "chunked", "output", "proxy"],
    &["request", "response", "rejection", "route", "json", "extract", "later", "stream", "rate", "cors", "exchange"],
    &["connection", "held"],
    &["server", "testing"],
    &["lib", "macros", "internals", "explore"],
];

/// Foreign crates and the modules that may name them.
const FOREIGN: [(&str, &[&str]); 11] = [
    ("mio", &["server"]),
    ("socket2", &["server"]),
    ("signal_hook", &["server"]),
    ("listenfd", &["server"]),
    ("libc", &[]),
    ("httparse", &["head"]),
    ("httpdate", &["date"]),
    ("itoa", &["response", "json"]),
    ("ryu", &["json"]),
    ("simd_json", &["json"]),
    ("serde", &["json", "extract", "testing", "internals"]),
];

fn sources() -> Vec<(String, PathBuf)> {
    fn visit(folder: &Path, module: Option<&str>, found: &mut Vec<(String, PathBuf)>) {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("a folder entry").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            let module = module.unwrap_or(&stem);
            if path.is_dir() && stem != "tests" {
                visit(&path, Some(module), found);
            } else if path.extension().is_some_and(|e| e == "rs") && stem != "tests" && stem != "naive" {
                found.push((module.to_owned(), path));
            }
        }
    }
    let mut found = Vec::new();
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), None, &mut found);
    assert!(found.len() > 15, "the sources were not found");
    found
}

fn layer(module: &str) -> usize {
    LAYERS.iter().position(|layer| layer.contains(&module)).unwrap_or_else(|| panic!("{module} is in no layer"))
}

/// Code without comments and without the unit tests at the end of a file.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file is text");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The identifiers that follow each `before` in the code.
fn named_after<'c>(code: &'c str, before: &'c str) -> impl Iterator<Item = &'c str> {
    code.match_indices(before).map(move |(at, _)| {
        let rest = &code[at + before.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[test]
fn imports_point_down() {
    for (module, path) in sources() {
        let own = layer(&module);
        if own == 5 {
            continue;
        }
        let code = code(&path);
        for used in named_after(&code, "crate::") {
            assert!(
                !used.is_empty(),
                "{} imports a group from the crate's root; a line for each module",
                path.display()
            );
            assert!(
                used.starts_with(char::is_lowercase) && used != "tests",
                "{} takes `{used}` from the crate's root; name its module",
                path.display()
            );
            assert!(layer(used) <= own, "{} (layer {own}) uses {used} (layer {})", path.display(), layer(used));
        }
    }
}

#[test]
fn foreign_crates_stay_in_their_files() {
    for (module, path) in sources() {
        let code = code(&path);
        for (foreign, allowed) in FOREIGN {
            let names_it = code.match_indices(&format!("{foreign}::")).any(|(at, _)| {
                !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') && !code[..at].ends_with("crate::")
            });
            assert!(!names_it || allowed.contains(&module.as_str()), "{} names {foreign}", path.display());
        }
    }
}

#[test]
fn no_source_is_unfinished_or_unsafe() {
    for (_, path) in sources() {
        let code = code(&path);
        for banned in ["todo!(", "unimplemented!(", "unsafe {", "unsafe fn", ".unwrap()", "dbg!("] {
            assert!(!code.contains(banned), "{} holds {banned}", path.display());
        }
    }
}
