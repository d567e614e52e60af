use sprat::routes;
struct App;
struct User(u64);
fn show(_: &mut App, user: User) -> String { user.0.to_string() }
routes! {
    Api for App {
        GET "/" => const text("hello"),
        GET "/me" => show(user),
    }
}
fn main() {}
