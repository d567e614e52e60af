//! Decodes a chunked body in place (RFC 9112 7.1), however it is split, and never reads past its end.
//!
//! ```text
//! chunked-body  = *chunk last-chunk trailer-section CRLF
//! chunk         = chunk-size [ chunk-ext ] CRLF chunk-data CRLF
//! chunk-size    = 1*HEXDIG                                   we take 1 to 16 digits
//! chunk-ext     = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS ( token / quoted-string ) ] )
//! ```
//!
//! Lines end in CRLF and in nothing else. Extensions and trailers are checked, bounded and dropped. Not
//! `httparse::parse_chunk_size`: it takes an empty size for 0 and any byte in an extension, which would let a body end
//! where another parser sees it go on.

use crate::head::is_token_byte;
use crate::limits::Limits;
use crate::reject::Reject;
use crate::target::hex_value;

/// Where a decoder is in the grammar. It advances a byte at a time, except through chunk-data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    SizeStart,
    Size,
    /// White space behind the size or an extension: only `;` may follow.
    BeforeSemicolon,
    ExtNameStart,
    ExtName,
    /// White space behind an extension's name: `=` or `;` may follow.
    AfterExtName,
    ExtValueStart,
    ExtToken,
    ExtQuoted,
    ExtQuotedPair,
    /// Behind a closing quote.
    AfterExtQuoted,
    LineLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

/// The state between two calls of [`Decoder::decode`].
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    place: Place,
    size_digits: u8,
    /// Of the current chunk: its size while the line is read, then what is still to come.
    chunk_left: u64,
    line_len: usize,
    extension_len: usize,
    trailer_len: usize,
    trailer_fields: usize,
    /// Size lines and the CRLFs behind chunk-data, all together.
    overhead_len: usize,
    decoded_len: usize,
}

/// How far one call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Bytes before this offset are content.
    pub(crate) content_end: usize,
    /// Bytes before this offset are used up. Equal to the buffer's length unless the body is `done`.
    pub(crate) raw_start: usize,
    /// Whether the body's last CRLF was read.
    pub(crate) done: bool,
}

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder {
            place: Place::SizeStart,
            size_digits: 0,
            chunk_left: 0,
            line_len: 0,
            extension_len: 0,
            trailer_len: 0,
            trailer_fields: 0,
            overhead_len: 0,
            decoded_len: 0,
        }
    }

    /// Bytes of content so far.
    #[cfg(test)]
    pub(crate) fn decoded_len(&self) -> usize {
        self.decoded_len
    }

    /// Decodes `buffer[raw_start..]`, moving the content down to `content_end`, where earlier content ends.
    ///
    /// ```text
    /// before   | head | content |   gap   | raw .................... |
    ///                           ^content_end
    ///                                     ^raw_start
    /// after    | head | content, longer |   gap            | next .. |
    /// ```
    ///
    /// `content_end <= raw_start` holds before and after. Content beyond `body_bytes_max` is refused at the chunk-size
    /// line that announces it.
    pub(crate) fn decode(
        &mut self,
        buffer: &mut [u8],
        content_end: usize,
        raw_start: usize,
        body_bytes_max: usize,
        limits: &Limits,
    ) -> Result<Decoded, Reject> {
        debug_assert!(content_end <= raw_start && raw_start <= buffer.len());
        let (mut to, mut at) = (content_end, raw_start);
        while self.place != Place::Done {
            if self.place == Place::Data {
                let ready = buffer.len() - at;
                let take = usize::try_from(self.chunk_left).unwrap_or(usize::MAX).min(ready);
                buffer.copy_within(at..at + take, to);
                at += take;
                to += take;
                self.decoded_len += take;
                self.chunk_left -= take as u64;
                if self.chunk_left > 0 {
                    break;
                }
                self.place = Place::DataCr;
            }
            let Some(&byte) = buffer.get(at) else { break };
            at += 1;
            self.place = self.step(byte, body_bytes_max, limits)?;
        }
        Ok(Decoded { content_end: to, raw_start: at, done: self.place == Place::Done })
    }

    /// One byte of framing.
    fn step(&mut self, byte: u8, body_bytes_max: usize, limits: &Limits) -> Result<Place, Reject> {
        use Place::*;
        self.count(byte, limits)?;
        let blank = matches!(byte, b' ' | b'\t');
        let next = match self.place {
            SizeStart | Size => match (hex_value(byte), byte) {
                (Some(digit), _) if self.size_digits < 16 => {
                    self.size_digits += 1;
                    self.chunk_left = self.chunk_left << 4 | u64::from(digit);
                    Size
                }
                (None, _) if self.place == SizeStart => return Err(Reject::ChunkSize),
                (None, b'\r') => LineLf,
                (None, b';') => ExtNameStart,
                (None, _) if blank => BeforeSemicolon,
                _ => return Err(Reject::ChunkSize),
            },
            BeforeSemicolon => match byte {
                b';' => ExtNameStart,
                _ if blank => BeforeSemicolon,
                _ => return Err(Reject::ChunkExtension),
            },
            ExtNameStart => match byte {
                _ if blank => ExtNameStart,
                _ if is_token_byte(byte) => ExtName,
                _ => return Err(Reject::ChunkExtension),
            },
            ExtName | AfterExtName => match byte {
                b'\r' if self.place == ExtName => LineLf,
                b';' => ExtNameStart,
                b'=' => ExtValueStart,
                _ if blank => AfterExtName,
                _ if is_token_byte(byte) && self.place == ExtName => ExtName,
                _ => return Err(Reject::ChunkExtension),
            },
            ExtValueStart => match byte {
                b'"' => ExtQuoted,
                _ if blank => ExtValueStart,
                _ if is_token_byte(byte) => ExtToken,
                _ => return Err(Reject::ChunkExtension),
            },
            ExtToken | AfterExtQuoted => match byte {
                b'\r' => LineLf,
                b';' => ExtNameStart,
                _ if blank => BeforeSemicolon,
                _ if is_token_byte(byte) && self.place == ExtToken => ExtToken,
                _ => return Err(Reject::ChunkExtension),
            },
            ExtQuoted => match byte {
                b'"' => AfterExtQuoted,
                b'\\' => ExtQuotedPair,
                _ if is_text(byte) => ExtQuoted,
                _ => return Err(Reject::ChunkExtension),
            },
            ExtQuotedPair if is_text(byte) => ExtQuoted,
            ExtQuotedPair => return Err(Reject::ChunkExtension),
            LineLf if byte == b'\n' => self.line_end(body_bytes_max)?,
            DataCr if byte == b'\r' || planted!("chunked") => DataLf,
            DataLf if byte == b'\n' => {
                self.line_len = 0;
                SizeStart
            }
            LineLf | DataCr | DataLf => return Err(Reject::ChunkEnd),
            TrailerStart => match byte {
                b'\r' => EndLf,
                _ if is_token_byte(byte) => {
                    self.trailer_fields += 1;
                    if self.trailer_fields > limits.fields_max {
                        return Err(Reject::TrailerTooLarge);
                    }
                    TrailerName
                }
                _ => return Err(Reject::Trailer),
            },
            TrailerName => match byte {
                b':' => TrailerValue,
                _ if is_token_byte(byte) => TrailerName,
                _ => return Err(Reject::Trailer),
            },
            TrailerValue => match byte {
                b'\r' => TrailerLf,
                _ if is_text(byte) => TrailerValue,
                _ => return Err(Reject::Trailer),
            },
            TrailerLf if byte == b'\n' => TrailerStart,
            EndLf if byte == b'\n' => Done,
            TrailerLf | EndLf => return Err(Reject::Trailer),
            Data | Done => self.place,
        };
        Ok(next)
    }

    /// Adds one byte of framing to the counts, and refuses it where one is full.
    fn count(&mut self, byte: u8, limits: &Limits) -> Result<(), Reject> {
        use Place::*;
        match self.place {
            TrailerStart | TrailerName | TrailerValue | TrailerLf | EndLf => {
                self.trailer_len += 1;
                if self.trailer_len > limits.trailer_bytes_max {
                    return Err(Reject::TrailerTooLarge);
                }
                return Ok(());
            }
            SizeStart | Size | LineLf | DataCr | DataLf => {}
            _ => self.extension_len += 1,
        }
        if byte != b'\n' || self.place != DataLf {
            self.line_len += 1;
        }
        self.overhead_len += 1;
        if self.line_len > limits.chunk_line_bytes_max || self.extension_len > limits.chunk_extension_bytes_max {
            return Err(Reject::ChunkLineTooLong);
        }
        // One-byte chunks cost five bytes each and pass. Sixteen digits around every byte do not.
        let allowed = limits.chunk_extension_bytes_max.saturating_add(self.decoded_len.saturating_mul(8));
        if self.overhead_len > allowed.saturating_add(OVERHEAD_FREE) {
            return Err(Reject::ChunkOverhead);
        }
        Ok(())
    }

    /// The chunk-size line is whole: data, or the trailer section behind the last chunk.
    fn line_end(&mut self, body_bytes_max: usize) -> Result<Place, Reject> {
        self.size_digits = 0;
        self.line_len = 0;
        if self.chunk_left == 0 {
            return Ok(Place::TrailerStart);
        }
        let left = (body_bytes_max as u64).saturating_sub(self.decoded_len as u64);
        if self.chunk_left > left {
            return Err(Reject::BodyTooLarge);
        }
        Ok(Place::Data)
    }
}

/// HTAB, SP, VCHAR and obs-text: what field values, quoted strings and quoted pairs hold.
const fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

/// Framing bytes that a body may have before their share of it counts.
const OVERHEAD_FREE: usize = 16 << 10;
