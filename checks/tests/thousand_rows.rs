//! A table of a thousand rows: how long the compiler takes, that it prints nothing, and that the table is right.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// Seconds of processor time for a debug build of the table, on top of its dependencies. It is 15 to 18 where others share
/// the cores, and differs between machines: how it grows is what the other bound is for.
const BUILD_SECONDS_MAX: f64 = 40.0;

/// How many times as long as a quarter of the table it may take: in proportion would be less than 4, by the square 16.
const TIMES_ITS_QUARTER_MAX: f64 = 7.0;

#[test]
fn a_thousand_rows_build_quickly_without_a_word_and_match() {
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join("thousand-rows");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::create_dir_all(room.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"thousand-rows\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nsprat = {{ path = {root:?}, default-features = false }}\n\n[workspace]\n"
    );
    std::fs::write(room.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root.join("Cargo.lock"), room.join("Cargo.lock")).unwrap();

    // The dependencies first, so that the rest of the time is that of the table.
    std::fs::write(room.join("src/main.rs"), "fn main() { let _ = sprat::PARAMS_MAX; }").unwrap();
    succeeds(&build(&room));
    let [quarter, whole] = [250, 1000].map(|rows_len| {
        std::fs::write(room.join("src/main.rs"), program(rows_len)).unwrap();
        let before = children_seconds();
        let output = build(&room);
        let seconds = children_seconds() - before;
        succeeds(&output);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!printed.contains("main.rs") && !printed.contains("`thousand-rows` (bin"), "{printed}");
        println!("{rows_len} rows: {seconds:.1} s of processor time");
        succeeds(&Command::new(room.join("target/debug/thousand-rows")).output().unwrap());
        seconds
    });
    assert!(whole < BUILD_SECONDS_MAX, "the build took {whole:.1} s of processor time");
    assert!(
        whole < quarter * TIMES_ITS_QUARTER_MAX,
        "{whole:.1} s of processor time, and {quarter:.1} s for a quarter"
    );
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn build(room: &Path) -> Output {
    Command::new(env!("CARGO"))
        .args(["build", "--offline", "--target-dir", "target"])
        .current_dir(room)
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap()
}

/// User and system time of the children that have ended, theirs included.
fn children_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program may hold blanks; what follows its bracket begins with the third field.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields[field - 3].parse::<f64>().unwrap();
    (ticks(16) + ticks(17)) / 100.0
}

/// A program with a table of so many rows, which checks itself.
fn program(rows_len: usize) -> String {
    let mut rows = String::new();
    let mut checks = String::new();
    for at in 0..rows_len {
        let resource = format!("/api/v1/group{}/resource{}", at / 100, at / 5);
        let (row, method, path, answer) = match at % 5 {
            0 => (format!("GET \"{resource}\" => list(request)"), "Get", resource.clone(), resource.clone()),
            1 => (format!("POST \"{resource}\" => create(body)"), "Post", resource.clone(), "content".to_owned()),
            2 => (format!("GET \"{resource}/{{id}}\" => get(id)"), "Get", format!("{resource}/{at}"), at.to_string()),
            3 => (
                format!("PUT \"{resource}/{{id}}/{{*rest}}\" => put(id, rest, body)"),
                "Put",
                format!("{resource}/{at}/a/b"),
                format!("{at} a/b 7"),
            ),
            _ => (
                format!("DELETE \"/things/{{id}}/parts{at}\" => get(id)"),
                "Delete",
                format!("/things/{at}/parts{at}"),
                at.to_string(),
            ),
        };
        writeln!(rows, "        {row},").unwrap();
        writeln!(checks, "    (Method::{method}, {path:?}, {answer:?}),").unwrap();
    }
    format!(
        r#"use sprat::{{Body, Method, Request, Rest, routes}};

struct App;

fn list(_: &mut App, request: Request<'_>) -> String {{ request.path().to_owned() }}
fn create<'r>(_: &mut App, body: Body<'r>) -> Body<'r> {{ body }}
fn get(_: &mut App, id: u64) -> String {{ id.to_string() }}
fn put<'r>(_: &mut App, id: u64, rest: Rest<'r>, body: Body<'r>) -> String {{
    format!("{{id}} {{}} {{}}", rest.as_str(), body.len())
}}

routes! {{
    Api for App {{
{rows}    }}
}}

const CHECKS: &[(Method, &str, &str)] = &[
{checks}];

fn main() {{
    let mut client = sprat::testing::Client::new(Api, App);
    for &(method, path, answer) in CHECKS {{
        let got = client.request(method, path).body("content").send();
        assert_eq!((got.status(), got.text()), (200, answer), "{{path}}");
    }}
    assert_eq!(client.get("/api/v1/group0/resource0/1/2").status(), 405);
    assert_eq!(client.get("/api/v1/group0/resource1000").status(), 404);
}}
"#
    )
}
