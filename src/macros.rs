//! `routes!`: from rows to a table. Expands to calls into `route::build` and to one function for each handler.
//!
//! Rows are matched by plain repetition, so a table can have thousands. What the user wrote goes on as `tt`: only such
//! a token keeps its place in the source, and the caret of an error in a type stands there.

/// Declares a table of routes: a unit struct of your name that implements [`Table`](crate::Table) for your state.
///
/// ```
/// use sprat::{Body, Rest, Status, routes};
///
/// struct App { notes: Vec<String> }
///
/// routes! {
///     /// The public API.
///     pub Api for App {
///         GET  "/"             => const text("notes"),
///         GET  "/notes/{id}"   => show(id),
///         POST "/notes"        => add(body) [body_max = 4096],
///         GET  "/files/{*path}" => file(path),
///         "/admin"             => Admin,
///     }
/// }
///
/// routes! {
///     Admin for App {
///         DELETE "/notes" => App::clear(),
///     }
/// }
///
/// fn show(app: &mut App, id: usize) -> Option<String> { app.notes.get(id).cloned() }
///
/// fn add(app: &mut App, body: Body<'_>) -> (Status, String) {
///     app.notes.push(String::from_utf8_lossy(body.as_slice()).into_owned());
///     (Status::CREATED, (app.notes.len() - 1).to_string())
/// }
///
/// fn file<'r>(_: &mut App, path: Rest<'r>) -> &'r str { path.as_str() }
///
/// impl App {
///     fn clear(&mut self) { self.notes.clear(); }
/// }
///
/// let mut client = sprat::testing::Client::new(Api, App { notes: Vec::new() });
/// assert_eq!(client.post("/notes", b"buy milk").text(), "0");
/// assert_eq!(client.get("/notes/0").text(), "buy milk");
/// assert_eq!(client.get("/notes/1").status(), 404);
/// assert_eq!(client.get("/notes/first").text(), "path parameter id: expected a whole number in digits (usize)");
/// assert_eq!(client.get("/files/a/b").text(), "a/b");
/// assert_eq!(client.request(sprat::Method::Delete, "/admin/notes").send().status(), 204);
/// let answer = client.request(sprat::Method::Delete, "/notes").send();
/// assert_eq!((answer.status(), answer.field("allow")), (405, Some("POST, OPTIONS")));
/// ```
///
/// # Lines
///
/// | line | what it is |
/// |---|---|
/// | `METHOD "pattern" => path::to::handler(a, b) [options]` | a handler, called as `handler(&mut state, a, b)` |
/// | `METHOD "pattern" => const text(EXPR)` | an answer whose bytes are made at compile time; also `html` and `json` |
/// | `"/prefix" => Table` | all rows of another table of the same state, behind the prefix; `/prefix` itself is a row of the outer one |
///
/// `METHOD` is GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS or TRACE. `EXPR` is a constant `&str`. The prefix is
/// literal; `""` joins a table as it is. Lines end with commas, and their order means nothing.
///
/// # Arguments
///
/// The first argument of a handler is the state. The others are written by name, at most 12:
///
/// - a name that stands in braces in the pattern is a path parameter, of a type that implements
///   [`FromParam`](crate::FromParam): integers, `bool`, `char`, `&str`, `String`, [`Rest`](crate::Rest), your own;
/// - every other one is taken from the request by its type, which implements [`FromRequest`](crate::FromRequest).
///
/// The names are those of the row. The function is called with the values in the order of the row, so its own names for
/// them do not count. A text body is `&[u8]` or `Vec<u8>`, to be checked by `std::str::from_utf8`: `&str` and `String` are
/// path parameters only, so that a misspelt parameter does not become the body.
///
/// They are looked at in order: parameters have to parse, and guards run on the head, before a body is read. So an
/// argument that checks credentials refuses before one behind it reads an upload. A parameter that does not parse is
/// answered with 400. A parameter that nobody takes is a build error unless its name begins with `_`.
///
/// What a handler returns implements [`Respond`](crate::Respond); one that takes the writer,
/// [`Response`](crate::Response), returns [`Sent`](crate::Sent); one that takes [`Later`](crate::Later), because the
/// answer is made elsewhere, returns nothing, or `Result<(), E>` to answer at once with an error.
///
/// # Options
///
/// They stand in brackets behind a row, a group or the name of the table. A row has those of its group and its table
/// where it has none of its own.
///
/// | option | meaning |
/// |---|---|
/// | `body_max = BYTES` | the most bytes of a body, a constant, instead of [`Limits::body_bytes_max`](crate::Limits) |
/// | `errors = mapper` | says refusals in other words: `fn(&mut State, Rejection) -> impl Respond` |
/// | `cors = POLICY` | which pages of other origins may read the answers: a constant [`Cors`](crate::Cors) |
/// | `observe = function` | is told of every answer, for logs and counters: `fn(&mut State, &Exchange)` |
///
/// # Errors
///
/// What a request is refused with is a [`Rejection`](crate::Rejection). On its own it answers with a line of text, or
/// with JSON if it comes from an extractor that speaks JSON. So by default a JSON route answers a bad path parameter, a
/// body beyond `body_max` and a wrong method with text: none of these know what the row is for. With a mapper they are
/// what you like; [`Rejection::into_json`](crate::Rejection::into_json) makes JSON of one form of all of them.
///
/// A mapper is called for every answer that no handler made, and for each [`Rejection`](crate::Rejection), bare
/// [`Status`](crate::Status) from 400 on and `None` that a handler returns:
///
/// - refusals of arguments, by their check or their content: 400, 401, 415, 422, 429 and your own;
/// - refusals by the server once the row is known: 413, 408, 400 for broken chunks, 503, 500 after a panic;
/// - those that no row is for: 404, 405, and a head that breaks a rule (400, 408, 414, 431, 501, 505). They go to the
///   mapper of the table that is served, not to one of a table in a group.
///
/// What it returns is the answer. The fields of the refusal (`WWW-Authenticate`, `Allow`, `Retry-After`) are always
/// written; its status is kept unless the mapper's answer sets one other than 200. A mapper that panics makes a 500.
///
#[cfg_attr(feature = "json", doc = "```")]
#[cfg_attr(not(feature = "json"), doc = "```ignore")]
/// use serde::Serialize;
/// use sprat::{Bearer, Json, Rejection, Status, routes};
///
/// #[derive(Serialize)]
/// struct Problem { title: &'static str, detail: String }
///
/// routes! {
///     Api for () [errors = problem] {
///         GET  "/users/{id}" => user(id),
///         POST "/notes"      => note(token, body) [body_max = 8],
///         GET  "/page/{id}"  => user(id) [errors = page],
///     }
/// }
///
/// fn problem(_: &mut (), error: Rejection) -> Json<Problem> {
///     Json(Problem { title: error.status().reason(), detail: error.message().to_owned() })
/// }
/// fn page(_: &mut (), error: Rejection) -> sprat::Html<String> {
///     sprat::Html(format!("<h1>{}</h1>", error.status().reason()))
/// }
/// fn user(_: &mut (), id: u64) -> String { id.to_string() }
/// fn note(_: &mut (), _: Bearer<'_>, body: Vec<u8>) -> Status { Status::CREATED }
///
/// # let mut client = sprat::testing::Client::new(Api, ());
/// let answer = client.get("/users/x");
/// assert_eq!((answer.status(), answer.field("content-type")), (400, Some("application/json")));
/// assert_eq!(client.get("/none").text(), r#"{"title":"Not Found","detail":"no route matches this path"}"#);
/// let answer = client.post("/notes", b"too much for it");
/// assert_eq!((answer.status(), answer.field("www-authenticate")), (401, Some("Bearer")));
/// assert_eq!(client.get("/page/x").text(), "<h1>Bad Request</h1>");
/// ```
///
/// # Observing
///
/// The function that `observe` names is called once for every answer, with the state, when the answer is written and not
/// yet sent; [`Exchange`](crate::Exchange) has the request, the row, the status and the sizes, and an example. It is told of
/// the same answers as a mapper is asked for and of all those that handlers and constants make, later ones included. What
/// no row is for, and what is refused before a row is found, goes to the function of the table that is served, not to one
/// of a table in a group. A request whose client left before its answer is none of them: see
/// [`Event::Closed`](crate::Event::Closed).
///
/// What it does holds up the loop, as handlers do: a log is best written through a buffer, which a thread can have flushed
/// by a [`Caller`](crate::Caller). A panic in it is counted as one of the handler, and the answer goes out all the same. Of
/// a request that is answered later a copy of its head is kept until then. A row without an observer pays nothing for those
/// that have one.
///
/// # Matching
///
/// | pattern | takes |
/// |---|---|
/// | `/users` | equal segments; an escaped byte in the path equals the byte, but `%2F` never a `/` |
/// | `/users/` | another path: a slash at the end counts |
/// | `/users/{id}` | one segment that is not empty, percent-decoded once |
/// | `/files/{*path}` | all that follows `/files/`, possibly nothing, undecoded |
///
/// Segment by segment, a literal beats `{name}` beats `{*name}`, whatever the order of the rows. The method takes part:
/// the most specific row that has it answers. HEAD is answered by a row for GET where it has none of its own. If
/// patterns match and none has the method, the answer is 405, or for OPTIONS 204, with `Allow`: the methods of all
/// patterns that match, HEAD with GET, and OPTIONS. If no pattern matches, it is 404.
///
/// A search costs the same in a table of ten rows and of a thousand, and allocates nothing.
///
/// # Build errors
///
/// A pattern that breaks the grammar, two rows that match the same requests (also across groups), a row that can never
/// match and a parameter that is unused or stands twice do not compile; the text names method and pattern. So does a
/// policy that browsers would refuse. A pattern
/// has at most 32 segments of 255 bytes, and [`PARAMS_MAX`](crate::PARAMS_MAX) parameters. A wrong type of an argument
/// or an answer is an error at its place in the row.
///
/// ```compile_fail,E0080
/// # struct App;
/// # fn show(_: &mut App, id: u64) -> String { id.to_string() }
/// # fn name(_: &mut App, name: &str) -> String { name.to_owned() }
/// sprat::routes! {
///     Api for App {
///         GET "/things/{id}"   => show(id),
///         GET "/things/{name}" => name(name),    // matches the same requests as GET "/things/{id}"
///     }
/// }
/// ```
#[macro_export]
macro_rules! routes {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident for $state:ty $([$($table_options:tt)*])? {
            $(
                $($method:ident)? $pattern:literal => $head:tt $(:: $path:tt)* $($kind:ident)?
                    $(($($inside:tt)*))? $([$($options:tt)*])?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        $vis struct $name;

        const _: () = {
            use $crate::__private as __sprat;

            const __SPRAT_OPTIONS: __sprat::Options<$state> =
                $crate::__routes_options! { ($state) "" "the table" $([$($table_options)*])? };
            const __SPRAT_LINES: &[__sprat::Line<$state>] = &[$(
                $crate::__routes_line! {
                    ($state) [$($method)?] $pattern [$head $($path)*] [$($kind)?] $(($($inside)*))? $([$($options)*])?
                }
            ),*];
            const __SPRAT_TEXT: [__sprat::u8; __sprat::text_len(__SPRAT_LINES)] = __sprat::text(__SPRAT_LINES);
            const __SPRAT_ROWS: [__sprat::Row<$state>; __sprat::rows_len(__SPRAT_LINES)] =
                __sprat::rows(__SPRAT_LINES, &__SPRAT_TEXT, &__SPRAT_OPTIONS);
            const __SPRAT_ROOM: __sprat::Sizes = __sprat::sizes_max(&__SPRAT_ROWS);
            const __SPRAT_GROWN: __sprat::Arrays<
                { __SPRAT_ROOM.nodes }, { __SPRAT_ROOM.index }, { __SPRAT_ROOM.ends },
            > = __sprat::Arrays::grow(&__SPRAT_ROWS);
            const __SPRAT_SIZES: __sprat::Sizes = __SPRAT_GROWN.sizes();
            const __SPRAT_TRIE: __sprat::Arrays<
                { __SPRAT_SIZES.nodes }, { __SPRAT_SIZES.index }, { __SPRAT_SIZES.ends },
            > = __SPRAT_GROWN.pack();

            // Nothing depends on these two, so a broken rule is said once.
            const _: () = __sprat::prove_lines(__SPRAT_LINES);
            const _: () = __SPRAT_GROWN.prove(&__SPRAT_ROWS);

            impl $crate::Table<$state> for $name {
                const ROUTES: &'static $crate::Routes<$state> =
                    &$crate::Routes::new(&__SPRAT_ROWS, &__SPRAT_TRIE, __SPRAT_OPTIONS);
            }
        };
    };
    // Lines that are not even of the form of a table. The rest of the program sees an empty one, so it is one error.
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident for $state:ty $([$($table_options:tt)*])? { $($lines:tt)* }
    ) => {
        $crate::routes! { $(#[$meta])* $vis $name for $state {} }
        const _: () = { $crate::__routes_slip! { $($lines)* } };
    };
}

/// Finds the first line that is none, and says what is wrong with it.
///
/// The one macro here that walks from line to line, and only in a table that is wrong. Ten at a time, for the compiler
/// takes 128 steps.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_slip {
    (
        $($ma:ident)? $pa:literal => $ha:tt $(:: $ta:tt)* $($ka:ident)? $(($($ia:tt)*))? $([$($oa:tt)*])?,
        $($mb:ident)? $pb:literal => $hb:tt $(:: $tb:tt)* $($kb:ident)? $(($($ib:tt)*))? $([$($ob:tt)*])?,
        $($mc:ident)? $pc:literal => $hc:tt $(:: $tc:tt)* $($kc:ident)? $(($($ic:tt)*))? $([$($oc:tt)*])?,
        $($md:ident)? $pd:literal => $hd:tt $(:: $td:tt)* $($kd:ident)? $(($($id:tt)*))? $([$($od:tt)*])?,
        $($me:ident)? $pe:literal => $he:tt $(:: $te:tt)* $($ke:ident)? $(($($ie:tt)*))? $([$($oe:tt)*])?,
        $($mf:ident)? $pf:literal => $hf:tt $(:: $tf:tt)* $($kf:ident)? $(($($if:tt)*))? $([$($of:tt)*])?,
        $($mg:ident)? $pg:literal => $hg:tt $(:: $tg:tt)* $($kg:ident)? $(($($ig:tt)*))? $([$($og:tt)*])?,
        $($mh:ident)? $ph:literal => $hh:tt $(:: $th:tt)* $($kh:ident)? $(($($ih:tt)*))? $([$($oh:tt)*])?,
        $($mi:ident)? $pi:literal => $hi:tt $(:: $ti:tt)* $($ki:ident)? $(($($ii:tt)*))? $([$($oi:tt)*])?,
        $($mj:ident)? $pj:literal => $hj:tt $(:: $tj:tt)* $($kj:ident)? $(($($ij:tt)*))? $([$($oj:tt)*])?,
        $($rest:tt)*
    ) => { $crate::__routes_slip! { $($rest)* } };
    (
        $($ma:ident)? $pa:literal => $ha:tt $(:: $ta:tt)* $($ka:ident)? $(($($ia:tt)*))? $([$($oa:tt)*])?,
        $($rest:tt)*
    ) => { $crate::__routes_slip! { $($rest)* } };
    ($($m:ident)? $p:literal => | $($rest:tt)*) => {
        $crate::__routes_fault! { [$($m)?] $p "a handler is the path of a function, not a closure" }
    };
    ($($m:ident)? $p:literal => || $($rest:tt)*) => {
        $crate::__routes_fault! { [$($m)?] $p "a handler is the path of a function, not a closure" }
    };
    ($($m:ident)? $p:literal => move $($rest:tt)*) => {
        $crate::__routes_fault! { [$($m)?] $p "a handler is the path of a function, not a closure" }
    };
    ($($m:ident)? $p:literal => $a:tt :: < $($rest:tt)*) => {
        $crate::__routes_fault! { [$($m)?] $p "a handler in a row takes no type arguments" }
    };
    ($($m:ident)? $p:literal => $a:tt :: $b:tt :: < $($rest:tt)*) => {
        $crate::__routes_fault! { [$($m)?] $p "a handler in a row takes no type arguments" }
    };
    ($($m:ident)? $p:literal => $a:tt :: $b:tt :: $c:tt :: < $($rest:tt)*) => {
        $crate::__routes_fault! { [$($m)?] $p "a handler in a row takes no type arguments" }
    };
    // A comma is missing between a row or a group, each with options or without, and either of them.
    ($($m:ident)? $p:literal => $head:tt $(:: $path:tt)* $($kind:ident)? ($($inside:tt)*) $([$($options:tt)*])?
        $method:ident $pattern:literal $($rest:tt)*
    ) => { $crate::__routes_fault! { [$method] $pattern "a comma is missing before this line" } };
    ($($m:ident)? $p:literal => $head:tt $(:: $path:tt)* $($kind:ident)? ($($inside:tt)*) $([$($options:tt)*])?
        $pattern:literal $($rest:tt)*
    ) => { $crate::__routes_fault! { [] $pattern "a comma is missing before this line" } };
    ($p:literal => $head:tt $(:: $path:tt)* $([$($options:tt)*])? $method:ident $pattern:literal $($rest:tt)*) => {
        $crate::__routes_fault! { [$method] $pattern "a comma is missing before this line" }
    };
    ($p:literal => $head:tt $(:: $path:tt)* $([$($options:tt)*])? $pattern:literal $($rest:tt)*) => {
        $crate::__routes_fault! { [] $pattern "a comma is missing before this line" }
    };
    ($($m:ident)? $p:literal $($rest:tt)*) => {
        $crate::__routes_fault! {
            [$($m)?] $p "this line is no row: `METHOD \"pattern\" => handler(a, b)`, with a comma behind it"
        }
    };
    ($first:tt $($rest:tt)*) => {
        $crate::__private::compile_error!($crate::__private::concat!(
            "a row begins with its method and its pattern in quotes, as `GET \"/\" => handler()`; this begins with `",
            $crate::__private::stringify!($first),
            "`"
        ))
    };
}

/// One line of `routes!`: a group, a constant or a handler, else a sentence about what is missing.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_line {
    (($state:ty) [] $prefix:literal [$($table:tt)+] [] $([$($options:tt)*])?) => {
        $crate::__private::Line::<$state>::group::<$($table)::+>(
            $prefix,
            $crate::__routes_options! { ($state) "" $prefix $([$($options)*])? },
        )
    };
    (($state:ty) [$method:ident] $pattern:literal [const] [$kind:ident] ($content:expr) $([$($options:tt)*])?) => {{
        const __SPRAT_CONTENT: &$crate::__private::str = $content;
        const __SPRAT_HEAD: $crate::__private::ConstantHead =
            $crate::__private::constant_head::$kind(__SPRAT_CONTENT.len());
        $crate::__private::Line::constant(
            $crate::__private::stringify!($method),
            $pattern,
            &$crate::__private::Constant::new(__SPRAT_HEAD.as_bytes(), __SPRAT_CONTENT.as_bytes()),
            $crate::__routes_options! { ($state) $method $pattern $([$($options)*])? },
        )
    }};
    (
        $state:tt [$method:ident] $pattern:literal [$($handler:tt)+] []
            ($a:tt, $b:tt, $c:tt, $d:tt, $e:tt, $f:tt, $g:tt, $h:tt, $i:tt, $j:tt, $k:tt, $l:tt, $m:tt $($rest:tt)*)
            $($options:tt)*
    ) => {
        $crate::__routes_fault! { $method $pattern "a handler takes 12 arguments at most" }
    };
    (
        ($state:ty) [$method:ident] $pattern:literal [$($handler:tt)+] []
            ($($name:tt),* $(,)?) $([$($options:tt)*])?
    ) => {{
        $crate::__routes_arguments! { [($state) $pattern [$($handler)+]] $($name)* }
        $crate::__private::Line::handler(
            $crate::__private::stringify!($method),
            $pattern,
            __SPRAT_NAMES,
            __sprat_check,
            __sprat_call,
            $crate::__routes_options! { ($state) $method $pattern $([$($options)*])? },
        )
    }};
    ($state:tt [] $pattern:literal [$($path:tt)+] $kind:tt ($($inside:tt)*) $($options:tt)*) => {
        $crate::__routes_fault! { "" $pattern "a row begins with its method" }
    };
    ($state:tt [] $pattern:literal $($rest:tt)*) => {
        $crate::__routes_fault! { "" $pattern "a group is a prefix and a table: `\"/prefix\" => Table`" }
    };
    ($state:tt [$method:ident] $pattern:literal [const] $($rest:tt)*) => {
        $crate::__routes_fault! {
            $method $pattern "a constant row is `const text(EXPR)`, `const html(EXPR)` or `const json(EXPR)`"
        }
    };
    ($state:tt [$method:ident] $pattern:literal [$($path:tt)+] [$kind:ident] $($rest:tt)*) => {
        $crate::__routes_fault! { $method $pattern "a row names one handler and its arguments: `handler(a, b)`" }
    };
    ($state:tt [$method:ident] $pattern:literal [$($path:tt)+] [] ($($inside:tt)*) $($options:tt)*) => {
        $crate::__routes_fault! { $method $pattern "the arguments of a handler are names: `handler(id, body)`" }
    };
    ($state:tt [$method:ident] $pattern:literal $($rest:tt)*) => {
        $crate::__routes_fault! { $method $pattern "the arguments of the handler are missing: `handler()`" }
    };
}

/// A sentence of the grammar, with the row that broke it.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_fault {
    ([] $pattern:literal $sentence:literal) => {
        $crate::__routes_fault! { "" $pattern $sentence }
    };
    ([$method:ident] $pattern:literal $sentence:literal) => {
        $crate::__routes_fault! { $method $pattern $sentence }
    };
    ("" $pattern:literal $sentence:literal) => {
        $crate::__private::compile_error!($crate::__private::concat!(
            $crate::__private::stringify!($pattern),
            ": ",
            $sentence
        ))
    };
    ($method:ident $pattern:literal $sentence:literal) => {
        $crate::__private::compile_error!($crate::__private::concat!(
            $crate::__private::stringify!($method),
            " ",
            $crate::__private::stringify!($pattern),
            ": ",
            $sentence
        ))
    };
}

/// The options of a row, a group or a table, which are written alike.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_options {
    (($state:ty) $method:tt $pattern:literal $([$($option:ident = $value:expr),* $(,)?])?) => {
        $crate::__private::Options::<$state>::NONE
            $($(.with($crate::__routes_option! { ($state) $method $pattern $option $value }))*)?
    };
    ($state:tt $method:tt $pattern:literal $($options:tt)*) => {
        $crate::__routes_fault! {
            $method $pattern "options are `body_max = BYTES`, `errors = mapper`, `cors = POLICY` and `observe = function`, in brackets"
        }
    };
}

/// One option.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_option {
    ($state:tt $method:tt $pattern:literal body_max $value:expr) => {
        $crate::__private::Choice::BodyMax($value)
    };
    (($state:ty) $method:tt $pattern:literal errors $value:expr) => {
        $crate::__private::Choice::Errors({
            fn __sprat_errors(
                state: &mut $state,
                rejection: $crate::Rejection,
                refusing: $crate::__private::Refusing<'_>,
            ) -> $crate::__private::Mapped {
                refusing.map(state, rejection, |state, rejection, response| {
                    // Called here, not handed over: what it returns may borrow from the state.
                    $crate::__private::answer($value(state, rejection), response)
                })
            }
            __sprat_errors
        })
    };
    ($state:tt $method:tt $pattern:literal cors $value:expr) => {
        $crate::__private::Choice::Cors({
            // A function, so that nothing of the table is made from a policy that is wrong: it is one error, at its place.
            fn __sprat_cors() -> &'static dyn $crate::__private::CrossOrigin {
                static __SPRAT_CORS: $crate::Cors = $value;
                &__SPRAT_CORS
            }
            __sprat_cors
        })
    };
    ($state:tt $method:tt $pattern:literal observe $value:expr) => {
        $crate::__private::Choice::Observe($value)
    };
    ($state:tt "" $pattern:literal $option:ident $value:expr) => {
        $crate::__private::compile_error!($crate::__private::concat!(
            $pattern,
            ": there is no option `",
            $crate::__private::stringify!($option),
            "`; there are `body_max`, `errors`, `cors` and `observe`"
        ))
    };
    ($state:tt $method:ident $pattern:literal $option:ident $value:expr) => {
        $crate::__private::compile_error!($crate::__private::concat!(
            $crate::__private::stringify!($method),
            " ",
            $crate::__private::stringify!($pattern),
            ": there is no option `",
            $crate::__private::stringify!($option),
            "`; there are `body_max`, `errors`, `cors` and `observe`"
        ))
    };
}

/// Gives each argument a second name that no name of the user's can shadow or be shadowed by.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_arguments {
    ($row:tt) => { $crate::__routes_handler! { $row } };
    ($row:tt $a:tt $($b:tt $($c:tt $($d:tt $($e:tt $($f:tt $($g:tt $($h:tt $($i:tt
        $($j:tt $($k:tt $($l:tt)?)?)?)?)?)?)?)?)?)?)?) => {
        $crate::__routes_handler! { $row (a $a) $((b $b) $((c $c) $((d $d) $((e $e) $((f $f) $((g $g) $((h $h) $((i $i)
            $((j $j) $((k $k) $((l $l))?)?)?)?)?)?)?)?)?)?)? }
    };
}

/// Finds the last name in the path of a handler.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_handler {
    ([$s:tt $p:tt [$last:tt]] $($a:tt)*) => { $crate::__routes_row! { $s $p [$last] $last $($a)* } };
    ([$s:tt $p:tt [$x:tt $last:tt]] $($a:tt)*) => { $crate::__routes_row! { $s $p [$x $last] $last $($a)* } };
    ([$s:tt $p:tt [$x:tt $y:tt $last:tt]] $($a:tt)*) => { $crate::__routes_row! { $s $p [$x $y $last] $last $($a)* } };
    ([$s:tt $p:tt [$x:tt $y:tt $z:tt $last:tt]] $($a:tt)*) => {
        $crate::__routes_row! { $s $p [$x $y $z $last] $last $($a)* }
    };
    ([$s:tt $p:tt [$($path:tt)+]] $($a:tt)*) => { $crate::__routes_row! { $s $p [$($path)+] answer $($a)* } };
}

/// The function of a handler's row, for both moments.
///
/// `$answer` is the name under which the answer is finished, so that the caret of a wrong one stands at the handler.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_row {
    (($state:ty) $pattern:literal [$($handler:tt)+] $answer:tt $(($value:ident $name:tt))*) => {
        const __SPRAT_NAMES: &[&$crate::__private::str] = &[$($crate::__private::stringify!($name)),*];
        #[inline(always)]
        #[allow(unused_variables)]
        fn __sprat_row<'r>(
            moment: $crate::__private::Moment<'r, '_>,
            state: &mut $state,
        ) -> $crate::__private::Result<$crate::__private::Done<'r>, $crate::Rejection> {
            $(let $value = {
                let $name = $crate::__private::Slot::NEW;
                $crate::__private::Source::<{
                    $crate::__private::place($pattern, $crate::__private::stringify!($name), __SPRAT_NAMES)
                }>::of($name)
            };)*
            let parts = match moment {
                $crate::__private::Moment::Head(request, params) => {
                    let wants_body = false;
                    $(let wants_body =
                        match $value.check(request, params, state, $crate::__private::stringify!($name)) {
                            $crate::__private::Result::Ok(wants_it) => wants_it | wants_body,
                            $crate::__private::Result::Err(rejection) => {
                                return $crate::__private::Result::Err(rejection);
                            }
                        };
                    )*
                    return $crate::__private::Result::Ok($crate::__private::Done::Head(wants_body));
                }
                $crate::__private::Moment::Whole(parts) => parts,
            };
            $(let ($value, parts) = {
                let $name = parts;
                match $value.take($name, state, $crate::__private::stringify!($name)) {
                    $crate::__private::Result::Ok(taken) => taken,
                    $crate::__private::Result::Err(rejection) => return $crate::__private::Result::Err(rejection),
                }
            };)*
            let $answer = $crate::__private::Answered::new($($handler)::+(state, $($value),*), parts);
            $crate::__private::Result::Ok($crate::__private::Done::Whole($crate::__private::finish($answer)))
        }
        fn __sprat_check<'r>(
            request: &$crate::Request<'r>,
            params: &$crate::Params<'r>,
            state: &mut $state,
        ) -> $crate::__private::Result<$crate::__private::bool, $crate::Rejection> {
            $crate::__private::head(__sprat_row($crate::__private::Moment::Head(request, params), state))
        }
        fn __sprat_call<'r>(
            parts: $crate::__private::Parts<'r>,
            state: &mut $state,
        ) -> $crate::__private::Result<$crate::Sent<'r>, $crate::Rejection> {
            $crate::__private::whole(__sprat_row($crate::__private::Moment::Whole(parts), state))
        }
    };
}
