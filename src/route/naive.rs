//! The oracle: a search that tries every row on its own, and is plain to see right. The fuzz targets include it too.

use super::{Method, Methods};

/// One segment of a pattern, in the order of preference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Literal,
    Param,
    Rest,
}

/// The place of the best row and its parameters as text; else what is allowed, if anything matches.
pub(super) fn find(
    rows: &[(Method, &str)],
    method: Method,
    path: &str,
) -> Result<(usize, Vec<String>), Option<Methods>> {
    // The second part of the key: of two rows for the same pattern, the one for HEAD itself answers HEAD.
    let mut best: Option<((Vec<Kind>, bool), usize, Vec<String>)> = None;
    let mut allow = Methods::NONE;
    for (at, &(row_method, pattern)) in rows.iter().enumerate() {
        let Some((kinds, params)) = matches(pattern, path) else { continue };
        allow = allow.with(row_method).with(Method::Options);
        if row_method == Method::Get {
            allow = allow.with(Method::Head);
        }
        let falls_back = method == Method::Head && row_method == Method::Get;
        let key = (kinds, falls_back);
        if (row_method == method || falls_back) && best.as_ref().is_none_or(|(best_key, _, _)| key < *best_key) {
            best = Some((key, at, params));
        }
    }
    match best {
        Some((_, at, params)) => Ok((at, params)),
        None => Err((!allow.is_empty()).then_some(allow)),
    }
}

/// Compares a pattern and a path segment by segment.
fn matches(pattern: &str, path: &str) -> Option<(Vec<Kind>, Vec<String>)> {
    let mut segments = path.strip_prefix('/')?.split('/');
    let mut left = path.strip_prefix('/')?;
    let (mut kinds, mut params) = (Vec::new(), Vec::new());
    for part in pattern.strip_prefix('/')?.split('/') {
        let segment = segments.next()?;
        if part.starts_with("{*") {
            kinds.push(Kind::Rest);
            params.push(left.to_owned());
            return Some((kinds, params));
        }
        if part.starts_with('{') {
            if segment.is_empty() {
                return None;
            }
            kinds.push(Kind::Param);
            params.push(segment.to_owned());
        } else {
            if decoded(segment) != part {
                return None;
            }
            kinds.push(Kind::Literal);
        }
        left = left.split_once('/').map_or("", |(_, after)| after);
    }
    segments.next().is_none().then_some((kinds, params))
}

fn decoded(segment: &str) -> String {
    let mut pieces = segment.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).expect("the escapes are good"));
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).expect("the escapes are UTF-8")
}
