//! Reads the PROXY protocol header, version 1 and 2, that a load balancer puts before a connection's first request.
//!
//! Pure. Whether a header is expected, and from whom it is believed, is decided where connections are accepted: an
//! address that anybody may claim is worth nothing.
//!
//! ```text
//! v1 = "PROXY" SP ( "TCP4" / "TCP6" ) SP source SP destination SP source-port SP destination-port CRLF
//!    / "PROXY" SP "UNKNOWN" *any CRLF                                              at most 107 bytes
//! v2 = signature version/command family/transport length(2) addresses *tlv         16 bytes and `length`
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::reject::Reject;

/// A whole header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proxied {
    /// Bytes that the header takes.
    pub(crate) len: usize,
    /// Who is behind the balancer. None for its own probes (LOCAL, UNKNOWN) and for unix sockets.
    pub(crate) source: Option<SocketAddr>,
}

/// The longest header of version 1, CRLF included.
const V1_LEN_MAX: usize = 107;

/// The longest header of version 2 that is taken. The addresses take 36 bytes at most; the rest is for TLVs.
const V2_LEN_MAX: usize = 4096;

const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads the header at the start of a connection. `None`: not whole yet.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Proxied>, Reject> {
    if is_prefix_of(bytes, V2_SIGNATURE) {
        return if bytes.len() < 16 { Ok(None) } else { parse_v2(bytes) };
    }
    if is_prefix_of(bytes, b"PROXY ") {
        return parse_v1(bytes);
    }
    Err(Reject::Proxy)
}

/// Whether what is there of the shorter one agrees.
fn is_prefix_of(bytes: &[u8], whole: &[u8]) -> bool {
    bytes.iter().zip(whole).all(|(a, b)| a == b)
}

fn parse_v1(bytes: &[u8]) -> Result<Option<Proxied>, Reject> {
    let window = &bytes[..bytes.len().min(V1_LEN_MAX)];
    let Some(end) = window.iter().position(|&b| b == b'\n') else {
        return if window.len() == V1_LEN_MAX { Err(Reject::Proxy) } else { Ok(None) };
    };
    let line = window[..end].strip_suffix(b"\r").ok_or(Reject::Proxy)?;
    let line = std::str::from_utf8(line).map_err(|_| Reject::Proxy)?;
    let len = end + 1;
    let mut words = line.split(' ').skip(1);
    let source = match words.next() {
        Some("UNKNOWN") => return Ok(Some(Proxied { len, source: None })),
        Some(family @ ("TCP4" | "TCP6")) => {
            let mut address = || {
                let ip: IpAddr = words.next()?.parse().ok()?;
                (ip.is_ipv4() == (family == "TCP4")).then_some(ip)
            };
            let (source, _destination) = (address().ok_or(Reject::Proxy)?, address().ok_or(Reject::Proxy)?);
            let mut port = || parse_port(words.next()?);
            let (source_port, _destination_port) = (port().ok_or(Reject::Proxy)?, port().ok_or(Reject::Proxy)?);
            canonical(source, source_port)
        }
        _ => return Err(Reject::Proxy),
    };
    match words.next() {
        None => Ok(Some(Proxied { len, source: Some(source) })),
        Some(_) => Err(Reject::Proxy),
    }
}

/// As of a connection that was accepted: an IPv4 address is one, though a balancer that listens on IPv6 maps it into that.
/// Limits by network would otherwise count all of IPv4 as one network.
fn canonical(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), port)
}

/// Digits without a leading zero, up to 65535.
fn parse_port(text: &str) -> Option<u16> {
    if planted!("proxy") {
        return text.parse().ok();
    }
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn parse_v2(bytes: &[u8]) -> Result<Option<Proxied>, Reject> {
    let Some(&[command, family, high, low]) = bytes.get(12..).and_then(|rest| rest.first_chunk::<4>()) else {
        return Ok(None);
    };
    let len = 16 + usize::from(u16::from_be_bytes([high, low]));
    if command >> 4 != 2 || command & 0xf > 1 || len > V2_LEN_MAX {
        return Err(Reject::Proxy);
    }
    let Some(header) = bytes.get(..len) else { return Ok(None) };
    let addresses = &header[16..];
    let is_local = command & 0xf == 0;
    let source = match family {
        _ if is_local => None,
        // TCP or UDP over IPv4: two addresses, two ports.
        0x11 | 0x12 => {
            let [a, b, c, d, _, _, _, _, high, low] = *addresses.first_chunk::<10>().ok_or(Reject::Proxy)?;
            addresses.get(..12).ok_or(Reject::Proxy)?;
            Some(canonical(Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([high, low])))
        }
        0x21 | 0x22 => {
            let ip = Ipv6Addr::from(*addresses.first_chunk::<16>().ok_or(Reject::Proxy)?);
            let ports = addresses.get(32..36).ok_or(Reject::Proxy)?;
            Some(canonical(ip.into(), u16::from_be_bytes([ports[0], ports[1]])))
        }
        // Unspecified, and unix sockets.
        0x00 => None,
        0x31 | 0x32 if addresses.len() >= 216 => None,
        _ => return Err(Reject::Proxy),
    };
    Ok(Some(Proxied { len, source }))
}
