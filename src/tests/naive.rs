//! A chunked decoder with a `Vec` and no cleverness: looks at the whole input, keeps no state, knows no limits.

/// The content and how many bytes the body takes; `Ok(None)` if its end is not there; `Err(())` if it is malformed.
pub(crate) fn decode_chunked(input: &[u8]) -> Result<Option<(Vec<u8>, usize)>, ()> {
    let mut content = Vec::new();
    let mut at = 0;
    loop {
        let Some(line) = line(input, at, is_size_line)? else { return Ok(None) };
        at += line.len() + 2;
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let size = usize::from_str_radix(std::str::from_utf8(&line[..digits]).unwrap(), 16).map_err(|_| ())?;
        if size == 0 {
            break;
        }
        content.extend(input[at..].iter().take(size));
        for (offset, expected) in [b'\r', b'\n'].into_iter().enumerate() {
            match input.get(at.saturating_add(size).saturating_add(offset)) {
                None => return Ok(None),
                Some(&byte) if byte == expected => {}
                Some(_) => return Err(()),
            }
        }
        at += size + 2;
    }
    loop {
        let Some(line) = line(input, at, is_field_line)? else { return Ok(None) };
        at += line.len() + 2;
        if line.is_empty() {
            return Ok(Some((content, at)));
        }
    }
}

/// The line at this place if it is whole. A part of one must be the beginning of some line that `is_line` takes.
fn line(input: &[u8], at: usize, is_line: fn(&[u8]) -> bool) -> Result<Option<&[u8]>, ()> {
    let rest = &input[at..];
    let end = rest.iter().position(|&b| b == b'\r' || b == b'\n').unwrap_or(rest.len());
    let line = &rest[..end];
    let whole = match &rest[end..] {
        [] => false,
        [b'\r'] => true,
        [b'\r', b'\n', ..] => true,
        _ => return Err(()),
    };
    if whole {
        if !is_line(line) {
            return Err(());
        }
        return Ok((rest.len() >= end + 2).then_some(line));
    }
    // Whatever completes the grammar the soonest from any place in it.
    let completions: [&[u8]; 8] = [b"", b"a", b"\"", b"a\"", b":", b"a:", b"0", b";a"];
    let begins_one = completions.iter().any(|tail| is_line(&[line, tail].concat()));
    if begins_one { Ok(None) } else { Err(()) }
}

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == b'\t' || (b >= b' ' && b != 127))
}

fn is_field_line(line: &[u8]) -> bool {
    match line.iter().position(|&b| b == b':') {
        Some(colon) => is_token(&line[..colon]) && is_text(&line[colon + 1..]),
        None => line.is_empty(),
    }
}

/// `chunk-size [ chunk-ext ]`.
fn is_size_line(line: &[u8]) -> bool {
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    (1..=16).contains(&digits) && is_extensions(&line[digits..])
}

fn is_extensions(text: &[u8]) -> bool {
    if text.is_empty() {
        return true;
    }
    let Some(text) = skip_blanks(text).strip_prefix(b";") else { return false };
    let text = skip_blanks(text);
    let name = text.iter().take_while(|&&b| is_token(&[b])).count();
    let (after_name, mut rest) = (skip_blanks(&text[name..]), &text[name..]);
    if let Some(value) = after_name.strip_prefix(b"=") {
        let value = skip_blanks(value);
        let len = match value.strip_prefix(b"\"") {
            Some(quoted) => match quoted_len(quoted) {
                Some(len) => len + 1,
                None => return false,
            },
            None => value.iter().take_while(|&&b| is_token(&[b])).count(),
        };
        if len == 0 {
            return false;
        }
        rest = &value[len..];
    }
    name > 0 && is_extensions(rest)
}

/// The length of a quoted string behind its opening quote, closing quote included.
fn quoted_len(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {
                if !is_text(&[*text.get(at + 1)?]) {
                    return None;
                }
                at += 2;
            }
            byte if is_text(&[*byte]) => at += 1,
            _ => return None,
        }
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|b| b" \t".contains(b)).count();
    &text[blanks..]
}
