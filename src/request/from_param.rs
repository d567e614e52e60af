//! Arguments that are taken from the path by their name.

use std::path::PathBuf;

/// An argument taken from a path segment by its name.
///
/// `{name}` hands over one segment, percent-decoded; `{*rest}` hands over the undecoded remainder. What does not parse
/// is answered with 400 and the parameter's name.
///
/// ```
/// use sprat::FromParam;
/// #[derive(Debug, PartialEq)]
/// struct Hex(u32);
/// impl<'r> FromParam<'r> for Hex {
///     const EXPECTED: &'static str = "a hexadecimal number";
///     fn from_param(text: &'r str) -> Option<Hex> {
///         let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
///         u32::from_str_radix(text, 16).ok().filter(|_| digits).map(Hex)
///     }
/// }
/// assert_eq!(Hex::from_param("ff"), Some(Hex(255)));
/// assert_eq!(Hex::from_param("+ff"), None);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken from a path",
    label = "this argument is a path parameter, so its type must implement `sprat::FromParam`",
    note = "integers, `bool`, `char`, `&str`, `String` and `sprat::Rest` do"
)]
pub trait FromParam<'r>: Sized {
    /// What the parameter must be, to follow "expected " in the body of the 400.
    const EXPECTED: &'static str;

    /// The value, if the text is one.
    fn from_param(text: &'r str) -> Option<Self>;
}

macro_rules! integer_params {
    ($($int:ident)*) => {$(
        /// Digits, and a minus if the type has one. Rust's own parser would also take `+5`.
        #[diagnostic::do_not_recommend]
        impl<'r> FromParam<'r> for $int {
            const EXPECTED: &'static str = concat!("a whole number in digits (", stringify!($int), ")");
            #[inline]
            fn from_param(text: &'r str) -> Option<$int> {
                if text.starts_with('+') { None } else { text.parse().ok() }
            }
        }
    )*};
}

integer_params! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_param(text: &'r str) -> Option<bool> {
        text.parse().ok()
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for char {
    const EXPECTED: &'static str = "one character";
    fn from_param(text: &'r str) -> Option<char> {
        text.parse().ok()
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for &'r str {
    const EXPECTED: &'static str = "text";
    #[inline]
    fn from_param(text: &'r str) -> Option<&'r str> {
        Some(text)
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for String {
    const EXPECTED: &'static str = "text";
    fn from_param(text: &'r str) -> Option<String> {
        Some(text.to_owned())
    }
}

/// The remainder of a path that `{*rest}` took: undecoded, since `%2F` is not a `/`.
///
/// ```
/// use sprat::Rest;
/// fn file(_: &mut (), path: Rest<'_>) -> String {
///     path.segments().collect::<Vec<_>>().join(" > ")
/// }
/// # sprat::routes! { Api for () { GET "/files/{*path}" => file(path), } }
/// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/files/a/b%2Fc").text(), "a > b/c");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest<'r>(pub &'r str);

impl<'r> Rest<'r> {
    /// The remainder as it was sent, without the slash before it. Possibly empty.
    ///
    /// No segment is a dot segment as it stands, but `%2F` and `%2E` are not decoded, and it may begin with a slash: it is
    /// not a path of files. See [`relative_path`](Rest::relative_path).
    pub fn as_str(&self) -> &'r str {
        self.0
    }

    /// The remainder as a path below a folder of yours; `None` if it could lead out of it: if a segment is empty, or is
    /// after decoding a dot segment, or holds a slash, a backslash, a NUL or, on Windows, a colon.
    ///
    /// Links in that folder are followed, wherever they lead.
    ///
    /// ```
    /// use sprat::Rest;
    /// fn file(_: &mut (), path: Rest<'_>) -> Option<Vec<u8>> {
    ///     let path = std::path::Path::new("/srv/www").join(path.relative_path()?);
    ///     std::fs::read(path).ok()
    /// }
    /// # sprat::routes! { Api for () { GET "/files/{*path}" => file(path), } }
    /// # assert_eq!(sprat::testing::Client::new(Api, ()).get("/files/..%2f..%2fetc%2fpasswd").status(), 404);
    /// assert_eq!(Rest("css/a%20b.css").relative_path(), Some("css/a b.css".into()));
    /// assert_eq!(Rest("/etc/passwd").relative_path(), None);
    /// assert_eq!(Rest("..%2fpasswd").relative_path(), None);
    /// ```
    pub fn relative_path(&self) -> Option<PathBuf> {
        let leads_out = |segment: &String| {
            matches!(segment.as_str(), "" | "." | "..")
                || segment.contains(['/', '\\', '\0'])
                || (cfg!(windows) && segment.contains(':'))
        };
        let segments = self.segments().map(|segment| (!leads_out(&segment)).then_some(segment));
        segments.collect()
    }

    /// The segments, each percent-decoded: one may be empty, `..`, or hold a slash. None for an empty remainder.
    pub fn segments(&self) -> impl Iterator<Item = String> + use<'r> {
        let segments = (!self.0.is_empty()).then(|| self.0.split('/'));
        segments.into_iter().flatten().map(|segment| {
            let mut decoded = Vec::with_capacity(segment.len());
            // The escapes of a path are checked before it is routed, so nothing is lost here.
            crate::target::decode(segment, &mut decoded);
            String::from_utf8_lossy(&decoded).into_owned()
        })
    }
}

#[diagnostic::do_not_recommend]
impl<'r> FromParam<'r> for Rest<'r> {
    const EXPECTED: &'static str = "a path";
    fn from_param(text: &'r str) -> Option<Rest<'r>> {
        Some(Rest(text))
    }
}

/// The most path parameters of one pattern.
pub const PARAMS_MAX: usize = 8;

/// The path parameters of a matched request, by their place in the pattern.
#[derive(Clone, Copy, Debug)]
pub struct Params<'r> {
    /// The path, or, where it had to be decoded, the decoded parameters behind each other.
    pub(crate) text: &'r str,
    pub(crate) spans: &'r Spans,
}

/// Start and end of each parameter in [`Params::text`].
pub(crate) type Spans = [(u32, u32); PARAMS_MAX];

impl<'r> Params<'r> {
    /// The text of the parameter at this place.
    #[inline]
    pub fn get(&self, place: usize) -> &'r str {
        let (start, end) = self.spans.get(place).copied().unwrap_or_default();
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}
