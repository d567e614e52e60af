//! A table stands anywhere, more than once, public over a private state.
#![deny(warnings)]

mod inner {
    pub mod deeper {
        use sprat::routes;

        pub struct State;

        fn here(_: &mut State) -> &'static str {
            "here"
        }

        routes! {
            /// A table in a module.
            pub(crate) Inner for State {
                GET "/here" => here(),
                GET "/self" => self::here(),
                GET "/up" => super::above(),
                GET "/home" => crate::root(),
                GET "/method" => State::method(),
            }
        }

        impl State {
            fn method(&mut self) -> &'static str {
                "method"
            }
        }
    }

    fn above(_: &mut deeper::State) -> &'static str {
        "above"
    }
}

fn root(_: &mut inner::deeper::State) -> &'static str {
    "root"
}

mod private_state {
    struct App;

    fn hello(_: &mut App) -> &'static str {
        "hello"
    }

    sprat::routes! {
        pub Public for App {
            GET "/" => hello(),
        }
    }

    pub fn run() {
        assert_eq!(sprat::testing::Client::new(Public, App).get("/").text(), "hello");
    }
}

fn in_a_function() {
    struct Local;
    fn local(_: &mut Local) -> &'static str {
        "local"
    }
    sprat::routes! {
        Api for Local {
            GET "/" => local(),
        }
    }
    assert_eq!(sprat::testing::Client::new(Api, Local).get("/").text(), "local");
}

sprat::routes! {
    Groups for inner::deeper::State {
        GET "/here" => root(),
        "/a" => inner::deeper::Inner,
        "/b/c" => inner::deeper::Inner,
        "/twice" => Twice,
    }
}

sprat::routes! {
    Twice for inner::deeper::State {
        "/d" => inner::deeper::Inner,
        "" => inner::deeper::Inner,
    }
}

sprat::routes! {
    Empty for () {}
}

macro_rules! table {
    ($name:ident, $handler:ident) => {
        sprat::routes! { $name for () { GET "/" => $handler(), } }
    };
}

fn unit(_: &mut ()) {}

table!(ByMacro, unit);

fn main() {
    private_state::run();
    in_a_function();
    let mut client = sprat::testing::Client::new(Groups, inner::deeper::State);
    for (path, text) in [
        ("/here", "root"),
        ("/a/here", "here"),
        ("/a/self", "here"),
        ("/a/up", "above"),
        ("/b/c/home", "root"),
        ("/b/c/method", "method"),
        ("/twice/d/here", "here"),
        ("/twice/here", "here"),
    ] {
        assert_eq!(client.get(path).text(), text, "{path}");
    }
    for path in ["/a", "/a/", "/b", "/b/c", "/twice", "/twice/d"] {
        assert_eq!(client.get(path).status(), 404, "{path}");
    }
    assert_eq!(sprat::testing::Client::new(Empty, ()).get("/").status(), 404);
    assert_eq!(sprat::testing::Client::new(ByMacro, ()).get("/").status(), 204);
}
