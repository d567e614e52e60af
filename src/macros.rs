//! `routes!`: from rows to a table. Expands to calls into `route::build` and to one function for each handler.

/// Declares a table of routes.
#[macro_export]
macro_rules! routes {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident for $state:ty {
            $(
                $($method:ident)? $pattern:literal => $head:ident $(:: $path:ident)* $($kind:ident)?
                    $(($($inside:tt)*))? $([$($options:tt)*])?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        $vis struct $name;

        const _: () = {
            use $crate::__private as __sprat;

            const __SPRAT_LINES: &[__sprat::Line<$state>] = &[$(
                $crate::__routes_line! {
                    ($state) [$($method)?] $pattern [$head $($path)*] [$($kind)?] $(($($inside)*))? $([$($options)*])?
                }
            ),*];
            const __SPRAT_TEXT: [__sprat::u8; __sprat::text_len(__SPRAT_LINES)] = __sprat::text(__SPRAT_LINES);
            const __SPRAT_ROWS: [__sprat::Row<$state>; __sprat::rows_len(__SPRAT_LINES)] =
                __sprat::rows(__SPRAT_LINES, &__SPRAT_TEXT);
            const __SPRAT_ROOM: __sprat::Sizes = __sprat::sizes_max(&__SPRAT_ROWS);
            const __SPRAT_GROWN: __sprat::Arrays<
                { __SPRAT_ROOM.nodes }, { __SPRAT_ROOM.index }, { __SPRAT_ROOM.ends },
            > = __sprat::Arrays::grow(&__SPRAT_ROWS);
            const __SPRAT_SIZES: __sprat::Sizes = __SPRAT_GROWN.sizes();
            const __SPRAT_TRIE: __sprat::Arrays<
                { __SPRAT_SIZES.nodes }, { __SPRAT_SIZES.index }, { __SPRAT_SIZES.ends },
            > = __SPRAT_GROWN.pack();

            impl $crate::Table<$state> for $name {
                const ROUTES: &'static $crate::Routes<$state> = &$crate::Routes::new(&__SPRAT_ROWS, &__SPRAT_TRIE);
            }
        };
    };
}

/// One line of `routes!`: a group, a constant or a handler, else a sentence about what is missing.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_line {
    (($state:ty) [] $prefix:literal [$($table:ident)+] []) => {
        $crate::__private::Line::group::<$($table)::+>($prefix)
    };
    (($state:ty) [$method:ident] $pattern:literal [const] [$kind:ident] ($content:expr)) => {{
        const __SPRAT_CONTENT: &$crate::__private::str = $content;
        const __SPRAT_HEAD: $crate::__private::ConstantHead =
            $crate::__private::constant_head::$kind(__SPRAT_CONTENT.len());
        $crate::__private::Line::constant(
            $crate::__private::stringify!($method),
            $pattern,
            &$crate::__private::Constant::new(__SPRAT_HEAD.as_bytes(), __SPRAT_CONTENT.as_bytes()),
        )
    }};
    (
        ($state:ty) [$method:ident] $pattern:literal [$($handler:ident)+] []
            ($($name:ident),* $(,)?) $([$($option:ident = $value:expr),* $(,)?])?
    ) => {{
        $crate::__routes_arguments! { [($state) $pattern [$($handler)+]] $($name)* }
        $crate::__private::Line::handler(
            $crate::__private::stringify!($method),
            $pattern,
            &[$($crate::__private::stringify!($name)),*],
            __sprat_check,
            __sprat_call,
            $crate::__private::Options {
                $($($option: $crate::__private::Option::Some($value),)*)?
                ..$crate::__private::Options::NONE
            },
        )
    }};
}

/// Gives each argument a second name that no name of the user's can shadow or be shadowed by.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_arguments {
    ($row:tt) => { $crate::__routes_handler! { $row } };
    ($row:tt $a:ident $($b:ident $($c:ident $($d:ident $($e:ident $($f:ident $($g:ident $($h:ident $($i:ident
        $($j:ident $($k:ident $($l:ident)?)?)?)?)?)?)?)?)?)?)?) => {
        $crate::__routes_handler! { $row (a $a) $((b $b) $((c $c) $((d $d) $((e $e) $((f $f) $((g $g) $((h $h) $((i $i)
            $((j $j) $((k $k) $((l $l))?)?)?)?)?)?)?)?)?)?)? }
    };
    ($row:tt $($a:ident)*) => { $crate::__private::compile_error!("a handler takes 12 arguments at most"); };
}

/// The function of a handler's row, for both moments.
#[doc(hidden)]
#[macro_export]
macro_rules! __routes_handler {
    ([($state:ty) $pattern:literal [$($handler:ident)+]] $(($value:ident $name:ident))*) => {
        #[inline(always)]
        #[allow(unused_variables)]
        fn __sprat_row<'r>(
            moment: $crate::__private::Moment<'r, '_>,
            state: &mut $state,
        ) -> $crate::__private::Result<$crate::__private::Done<'r>, $crate::Rejection> {
            $(let $value = (
                $crate::__private::Source::<{ $crate::__private::place($pattern, $crate::__private::stringify!($name)) }>,
                $crate::__private::Slot::NEW,
            );)*
            let parts = match moment {
                $crate::__private::Moment::Head(request, params) => {
                    let wants_body = false;
                    $(let wants_body = {
                        let $name = $value.1;
                        let name = $crate::__private::stringify!($name);
                        match $value.0.check($name, request, params, state, name) {
                            $crate::__private::Result::Ok(wants_it) => wants_it | wants_body,
                            $crate::__private::Result::Err(rejection) => {
                                return $crate::__private::Result::Err(rejection);
                            }
                        }
                    };)*
                    return $crate::__private::Result::Ok($crate::__private::Done::Head(wants_body));
                }
                $crate::__private::Moment::Whole(parts) => parts,
            };
            $(let ($value, parts) = {
                let $name = $value.1.of(parts);
                match $value.0.take($name, state, $crate::__private::stringify!($name)) {
                    $crate::__private::Result::Ok(taken) => taken,
                    $crate::__private::Result::Err(rejection) => return $crate::__private::Result::Err(rejection),
                }
            };)*
            let answer = $($handler)::+(state, $($value),*);
            $crate::__private::Result::Ok($crate::__private::Done::Whole($crate::__private::finish(parts, answer)))
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
