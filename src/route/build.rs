//! What `routes!` expands to: rows are checked, groups are flattened and the trie is made, all by the compiler.
//!
//! Public for the macro only. A broken rule is a panic during compilation, whose text names method and pattern;
//! `#[track_caller]` keeps the notes about the functions in here out of it.

// Nothing of this is anybody's to use.
#![allow(missing_docs)]

pub use super::Options;
use super::pattern::{self, Fault, Names};
pub use super::trie::Sizes;
use super::trie::{End, Growing, Node, Refusal, Trie, pack_into};
use super::{Answer, Call, Check, MapErrors, Policy, Routes, Row, Table};
use crate::exchange::Observe;
use crate::method::{Method, Methods};
use crate::response::{Constant, Respond, Response, Sent};

/// One line of a table: a row, or all rows of another table. Not proven yet.
pub enum Line<S: 'static> {
    /// `METHOD "pattern" => handler(arguments)`, with the names of the arguments, or `=> const text(EXPR)`.
    Row { method: &'static str, names: Option<&'static [&'static str]>, row: Row<S> },
    /// `"/prefix" => Table`.
    Group { prefix: &'static str, routes: &'static Routes<S>, options: Options<S> },
}

/// One option.
pub enum Choice<S: 'static> {
    /// `body_max = BYTES`.
    BodyMax(usize),
    /// `errors = mapper`.
    Errors(MapErrors<S>),
    /// `cors = POLICY`.
    Cors(Policy),
    /// `observe = function`.
    Observe(Observe<S>),
}

impl<S: 'static> Clone for Choice<S> {
    fn clone(&self) -> Choice<S> {
        *self
    }
}

impl<S: 'static> Copy for Choice<S> {}

impl<S: 'static> Options<S> {
    /// Those of a row without brackets.
    pub const NONE: Options<S> = Options { body_bytes_max: None, errors: None, cors: None, observe: None };

    /// With one more; the last one counts.
    pub const fn with(self, choice: Choice<S>) -> Options<S> {
        match choice {
            Choice::BodyMax(bytes) => Options { body_bytes_max: Some(bytes), ..self },
            Choice::Errors(errors) => Options { errors: Some(errors), ..self },
            Choice::Cors(cors) => Options { cors: Some(cors), ..self },
            Choice::Observe(observe) => Options { observe: Some(observe), ..self },
        }
    }

    /// Whether requests that no row is for have to be answered with care.
    const fn asks_care(&self) -> bool {
        self.errors.is_some() || self.cors.is_some() || self.observe.is_some()
    }

    /// These, and where there is none of these, those of what they stand in.
    const fn within(self, outer: &Options<S>) -> Options<S> {
        let mut options = self;
        if options.body_bytes_max.is_none() {
            options.body_bytes_max = outer.body_bytes_max;
        }
        if options.errors.is_none() {
            options.errors = outer.errors;
        }
        if options.cors.is_none() {
            options.cors = outer.cors;
        }
        if options.observe.is_none() {
            options.observe = outer.observe;
        }
        options
    }
}

impl<S: 'static> Row<S> {
    const fn new(method: Method, pattern: &'static str, answer: Answer<S>, options: Options<S>) -> Row<S> {
        let is_plain = options.cors.is_none() && options.observe.is_none() && !matches!(method, Method::Options);
        Row { method, pattern, answer, options, is_plain }
    }
}

/// Writes what a mapper made of a refusal. The one place that asks something of its type.
pub fn answer<'r, R: Respond>(answer: R, response: Response<'r>) -> Sent<'r> {
    answer.respond(response)
}

impl<S: 'static> Line<S> {
    /// A row with a handler. `names` are those of its arguments.
    pub const fn handler(
        method: &'static str,
        pattern: &'static str,
        names: &'static [&'static str],
        check: Check<S>,
        call: Call<S>,
        options: Options<S>,
    ) -> Line<S> {
        let mut others = names.len();
        let mut at = 0;
        while at < names.len() {
            others -= pattern::place(pattern, names[at]).is_some() as usize;
            at += 1;
        }
        let answer = Answer::Handler { check: if others > 0 { Some(check) } else { None }, call };
        let known = Method::from_token(method.as_bytes());
        Line::Row { method, names: Some(names), row: Row::new(known, pattern, answer, options) }
    }

    /// A row with a constant answer. It has no arguments, so its parameters are taken by nobody.
    pub const fn constant(
        method: &'static str,
        pattern: &'static str,
        constant: &'static Constant,
        options: Options<S>,
    ) -> Line<S> {
        let known = Method::from_token(method.as_bytes());
        let answer = Answer::Constant(constant);
        Line::Row { method, names: None, row: Row::new(known, pattern, answer, options) }
    }

    /// The rows of another table under a prefix.
    pub const fn group<T: Table<S>>(prefix: &'static str, options: Options<S>) -> Line<S> {
        Line::Group { prefix, routes: T::ROUTES, options }
    }
}

/// Refuses the first line that breaks a rule on its own.
#[track_caller]
pub const fn prove_lines<S>(lines: &[Line<S>]) {
    let mut at = 0;
    while at < lines.len() {
        match &lines[at] {
            Line::Group { prefix, .. } => check_prefix(prefix),
            Line::Row { method, names, row } => {
                let params = check_row(method, row.pattern);
                if let Some(names) = names {
                    check_names(method, row.pattern, &params, names);
                }
                if let Some(bytes) = row.options.body_bytes_max
                    && bytes as u64 > BODY_BYTES_MAX
                {
                    refuse_row(method, row.pattern, "`body_max` must be at most 1 TiB");
                }
            }
        }
        at += 1;
    }
}

/// As [`Limits::check`](crate::Limits::check) has it for all rows.
const BODY_BYTES_MAX: u64 = 1 << 40;

#[track_caller]
const fn check_row(method: &str, pattern: &str) -> Names {
    match Method::from_token(method.as_bytes()) {
        Method::Other => {
            refuse_row(method, pattern, "the method is none of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS and TRACE")
        }
        Method::Connect => refuse_row(method, pattern, "the row can never match, because CONNECT has no path"),
        _ => {}
    }
    match pattern::check(pattern) {
        Ok(names) => names,
        Err(fault) => refuse_row(method, pattern, fault.sentence()),
    }
}

/// Every parameter of the pattern is taken by an argument, and no argument stands twice.
///
/// A name that begins with `_` says that nobody takes it, as it does in Rust.
#[track_caller]
const fn check_names(method: &str, pattern: &str, params: &Names, names: &[&str]) {
    let mut at = 0;
    while at < names.len() {
        let mut before = 0;
        while before < at {
            if pattern::same(names[before].as_bytes(), names[at].as_bytes()) {
                let text = Text::of_row(method, pattern).and("the argument `").and(names[at]).and("` stands twice");
                panic!("{}", text.as_str());
            }
            before += 1;
        }
        at += 1;
    }
    let mut param = 0;
    while param < params.len() {
        let name = params.get(pattern, param);
        let mut taken = matches!(name, [b'_', ..]);
        let mut at = 0;
        while at < names.len() && !taken {
            // An argument that only means it is told so at its own place; see `place`.
            taken = pattern::same(pattern::plain(names[at]), name) || is_misspelt(pattern, names[at], name);
            at += 1;
        }
        if !taken {
            let text = Text::of_row(method, pattern)
                .and("the parameter `")
                .and(utf8(name))
                .and("` is unused: no argument has its name");
            panic!("{}", text.as_str());
        }
        param += 1;
    }
}

#[track_caller]
const fn check_prefix(prefix: &str) {
    let fault = match prefix.as_bytes() {
        // All rows as they are: the way to join tables.
        [] => return,
        [.., b'/'] => "a prefix does not end with `/`, for the patterns behind it begin with one",
        _ => match pattern::check(prefix) {
            Ok(names) if names.len() == 0 => return,
            Ok(_) => "a prefix has no parameters",
            Err(Fault::NoSlash) => "a prefix begins with `/`",
            Err(fault) => fault.sentence(),
        },
    };
    let text = Text::NEW.and("group \"").and(prefix).and("\": ").and(fault);
    panic!("{}", text.as_str());
}

#[track_caller]
const fn refuse_row(method: &str, pattern: &str, sentence: &str) -> ! {
    panic!("{}", Text::of_row(method, pattern).and(sentence).as_str())
}

/// Which parameter of the pattern the argument of this name is, or `row::NO_PARAM`, or `row::MISSPELT` if it is meant to
/// be one that none of all these `names` is.
pub const fn place(pattern: &str, name: &str, names: &[&str]) -> usize {
    if let Some(place) = pattern::place(pattern, name) {
        return place;
    }
    if let Ok(params) = pattern::check(pattern) {
        let mut param = 0;
        while param < params.len() {
            let bytes = params.get(pattern, param);
            let mut taken = matches!(bytes, [b'_', ..]);
            let mut at = 0;
            while at < names.len() {
                taken = taken || pattern::same(pattern::plain(names[at]), bytes);
                at += 1;
            }
            if !taken && is_misspelt(pattern, name, bytes) {
                return super::row::MISSPELT;
            }
            param += 1;
        }
    }
    super::row::NO_PARAM
}

/// Whether an argument that is no parameter has nearly the name of this one.
const fn is_misspelt(pattern: &str, name: &str, param: &[u8]) -> bool {
    pattern::place(pattern, name).is_none() && pattern::is_near(pattern::plain(name), param)
}

/// How many rows the lines stand for.
pub const fn rows_len<S>(lines: &[Line<S>]) -> usize {
    let mut len = 0;
    let mut at = 0;
    while at < lines.len() {
        len += match &lines[at] {
            Line::Row { .. } => 1,
            Line::Group { routes, .. } => routes.rows.len(),
        };
        at += 1;
    }
    len
}

/// How many bytes the patterns of groups have, their prefixes included.
pub const fn text_len<S>(lines: &[Line<S>]) -> usize {
    let mut len = 0;
    let mut at = 0;
    while at < lines.len() {
        if let Line::Group { prefix, routes, .. } = &lines[at] {
            let mut row = 0;
            while row < routes.rows.len() {
                len += prefix.len() + routes.rows[row].pattern.len();
                row += 1;
            }
        }
        at += 1;
    }
    len
}

/// The patterns of groups with their prefixes, one behind the other.
pub const fn text<S, const LEN: usize>(lines: &[Line<S>]) -> [u8; LEN] {
    let mut text = [0; LEN];
    let mut len = 0;
    let mut at = 0;
    while at < lines.len() {
        if let Line::Group { prefix, routes, .. } = &lines[at] {
            let mut row = 0;
            while row < routes.rows.len() {
                len = copy(prefix.as_bytes(), &mut text, len);
                len = copy(routes.rows[row].pattern.as_bytes(), &mut text, len);
                row += 1;
            }
        }
        at += 1;
    }
    text
}

/// All rows with their whole patterns and options. `text` is what [`text()`] made of the same lines.
pub const fn rows<S, const LEN: usize>(lines: &[Line<S>], text: &'static [u8], table: &Options<S>) -> [Row<S>; LEN] {
    const FILLER: &Constant = &Constant::new(b"", b"");
    let answer = Answer::Constant(FILLER);
    let filler = Row::new(Method::Other, "", answer, Options::NONE);
    let mut rows = [filler; LEN];
    let mut text = text;
    let mut len = 0;
    let mut at = 0;
    while at < lines.len() {
        match &lines[at] {
            Line::Row { row, .. } => {
                rows[len] = Row::new(row.method, row.pattern, row.answer, row.options.within(table));
                len += 1;
            }
            Line::Group { prefix, routes, options } => {
                let mut row = 0;
                while row < routes.rows.len() {
                    let (whole, behind) = text.split_at(prefix.len() + routes.rows[row].pattern.len());
                    text = behind;
                    let inner = routes.rows[row];
                    let options = inner.options.within(options).within(table);
                    rows[len] = Row::new(inner.method, utf8(whole), inner.answer, options);
                    len += 1;
                    row += 1;
                }
            }
        }
        at += 1;
    }
    rows
}

/// How much room the trie needs while it is made.
pub const fn sizes_max<S>(rows: &[Row<S>]) -> Sizes {
    let mut segments = 0;
    let mut at = 0;
    while at < rows.len() {
        let pattern = rows[at].pattern.as_bytes();
        let mut byte = 0;
        while byte < pattern.len() {
            segments += (pattern[byte] == b'/') as usize;
            byte += 1;
        }
        at += 1;
    }
    Sizes::for_at_most(segments, rows.len())
}

/// A trie in arrays.
#[derive(Debug)]
pub struct Arrays<const NODES: usize, const INDEX: usize, const ENDS: usize> {
    nodes: [Node<'static>; NODES],
    index: [u16; INDEX],
    ends: [End; ENDS],
    /// How much of them is used.
    sizes: Sizes,
    /// The first row that cannot stand in it, by its number from 0, and why.
    refusal: Option<(usize, Refusal)>,
}

impl<const NODES: usize, const INDEX: usize, const ENDS: usize> Arrays<NODES, INDEX, ENDS> {
    const EMPTY: Self = Arrays {
        nodes: [Node::ROOT; NODES],
        index: [0; INDEX],
        ends: [End::NONE; ENDS],
        sizes: Sizes { nodes: 1, index: 1, ends: 1 },
        refusal: None,
    };

    /// The trie of these rows, in more room than it needs, without those that cannot stand in it.
    pub const fn grow<S>(rows: &[Row<S>]) -> Self {
        let mut arrays = Self::EMPTY;
        let mut growing = Growing::new(&mut arrays.nodes, &mut arrays.index, &mut arrays.ends);
        let mut first = None;
        let mut at = 0;
        while at < rows.len() {
            if let (Err(refusal), None) = (growing.add(at + 1, rows[at].method, rows[at].pattern), first) {
                first = Some((at, refusal));
            }
            at += 1;
        }
        growing.finish();
        arrays.sizes = growing.sizes();
        arrays.refusal = first;
        arrays
    }

    /// Refuses the first row that cannot stand beside those before it.
    #[track_caller]
    pub const fn prove<S>(&self, rows: &[Row<S>]) {
        let Some((at, refusal)) = self.refusal else { return };
        let row = &rows[at];
        let text = Text::of_row(row.method.as_str(), row.pattern);
        let text = match refusal {
            Refusal::TableTooLarge => text.and("the table is too large: rows and segments are counted in 16 bits"),
            Refusal::Same(number) => {
                let other = &rows[number as usize - 1];
                let text = text.and("matches the same requests as ").and(other.method.as_str());
                text.and(" \"").and(other.pattern).and("\"")
            }
            Refusal::TooManySegments => text.and("a pattern has 255 segments at most with all its prefixes"),
        };
        panic!("{}", text.as_str())
    }

    /// How much room it needs.
    pub const fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The same trie in as much room as it needs.
    pub const fn pack<const N: usize, const I: usize, const E: usize>(&self) -> Arrays<N, I, E> {
        let mut packed = Arrays::<N, I, E>::EMPTY;
        pack_into((&self.nodes, &self.ends), &mut packed.nodes, &mut packed.index, &mut packed.ends);
        packed.sizes = self.sizes;
        packed
    }
}

impl<S> Routes<S> {
    /// A table of rows and the trie that was made of them.
    pub const fn new<const N: usize, const I: usize, const E: usize>(
        rows: &'static [Row<S>],
        trie: &'static Arrays<N, I, E>,
        options: Options<S>,
    ) -> Routes<S> {
        let mut methods = Methods::NONE.with(Method::Options);
        let mut has_options = options.asks_care();
        let mut at = 0;
        while at < rows.len() {
            methods = methods.with(rows[at].method);
            has_options = has_options || rows[at].options.asks_care();
            at += 1;
        }
        if methods.contains(Method::Get) {
            methods = methods.with(Method::Head);
        }
        Routes { rows, trie: Trie::new(&trie.nodes, &trie.index, &trie.ends), methods, options, has_options }
    }
}

/// The text of a build error.
struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    len: usize,
}

/// Two patterns of a sensible length. What does not fit is left out as a whole.
const TEXT_BYTES_MAX: usize = 2048;

impl Text {
    const NEW: Text = Text { bytes: [0; TEXT_BYTES_MAX], len: 0 };

    const fn of_row(method: &str, pattern: &str) -> Text {
        Text::NEW.and(method).and(" \"").and(pattern).and("\": ")
    }

    const fn and(mut self, more: &str) -> Text {
        if more.len() <= TEXT_BYTES_MAX - self.len {
            self.len = copy(more.as_bytes(), &mut self.bytes, self.len);
        }
        self
    }

    const fn as_str(&self) -> &str {
        utf8(self.bytes.split_at(self.len).0)
    }
}

/// Copies to a place, and returns where it ends.
const fn copy(from: &[u8], to: &mut [u8], at: usize) -> usize {
    to.split_at_mut(at).1.split_at_mut(from.len()).0.copy_from_slice(from);
    at + from.len()
}

const fn utf8(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}
