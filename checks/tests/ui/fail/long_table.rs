//! The length of an error does not grow with the table.

use sprat::routes;

struct App;
struct User(u64);

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn show(_: &mut App, user: User) -> String {
    user.0.to_string()
}

routes! {
    /// A table of the usual size.
    pub Api for App {
        GET "/a" => hello(),
        GET "/b" => hello(),
        GET "/c" => hello(),
        GET "/d" => hello(),
        GET "/e" => hello(),
        GET "/f" => hello(),
        GET "/g" => hello(),
        GET "/me" => show(user),
        GET "/h" => hello(),
        GET "/i" => hello(),
        GET "/j" => hello(),
        GET "/k" => hello(),
        GET "/l" => hello(),
        GET "/m" => hello(),
    }
}

fn main() {}
