//! PROXY headers, against a reader with regular splitting, and as an encoder makes them.

use std::net::{IpAddr, SocketAddr};

use sprat::internals::parse_proxy;

use super::input::Input;

/// Any bytes are read as the naive reader does, with the same outcome for every prefix and whatever follows; and what a
/// balancer writes comes back.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    check_round_trip(&mut input);
    let bytes = input.rest();
    let outcome = parse_proxy(bytes);
    match &outcome {
        Ok(Some((len, source))) => {
            assert_eq!(parse_proxy(&bytes[..*len]), outcome, "it depends on what follows");
            assert!((0..*len).all(|end| parse_proxy(&bytes[..end]) == Ok(None)), "a part was taken for the whole");
            assert_eq!(naive(&bytes[..*len]), Some(*source));
        }
        Ok(None) => assert!((0..bytes.len()).all(|end| parse_proxy(&bytes[..end]) == Ok(None))),
        Err(_) => {
            assert!((0..=bytes.len()).all(|end| naive(&bytes[..end]).is_none()), "a header was refused");
            assert!(parse_proxy(&[bytes, b"\r\n"].concat()).is_err());
        }
    }
}

/// Exactly one header: who is behind it.
fn naive(header: &[u8]) -> Option<Option<SocketAddr>> {
    match header.strip_prefix(b"\r\n\r\n\0\r\nQUIT\n") {
        Some(rest) => naive_v2(rest),
        None => naive_v1(std::str::from_utf8(header).ok()?),
    }
}

fn naive_v1(header: &str) -> Option<Option<SocketAddr>> {
    let line = header.strip_suffix("\r\n").filter(|line| header.len() <= 107 && !line.contains('\n'))?;
    if line == "PROXY UNKNOWN" || line.starts_with("PROXY UNKNOWN ") {
        return Some(None);
    }
    let &["PROXY", family, source, destination, source_port, destination_port] =
        &line.split(' ').collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let address = |text: &str| match family {
        "TCP4" => text.parse().ok().map(IpAddr::V4),
        "TCP6" => text.parse().ok().map(IpAddr::V6),
        _ => None,
    };
    // Only a number that is spelt as numbers are comes back as it was.
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| port.to_string() == text);
    address(destination).and(port(destination_port))?;
    Some(Some(SocketAddr::new(address(source)?.to_canonical(), port(source_port)?)))
}

fn naive_v2(rest: &[u8]) -> Option<Option<SocketAddr>> {
    let (&[command, family, high, low], rest) = rest.split_first_chunk::<4>()?;
    let len = usize::from(high) * 256 + usize::from(low);
    if rest.len() != len || len > 4096 - 16 {
        return None;
    }
    let port = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    match (command, family) {
        (0x20, _) => Some(None),
        (0x21, 0x00) => Some(None),
        (0x21, 0x11 | 0x12) if len >= 12 => {
            Some(Some(SocketAddr::new(IpAddr::from(<[u8; 4]>::try_from(&rest[..4]).ok()?), port(8))))
        }
        (0x21, 0x21 | 0x22) if len >= 36 => {
            Some(Some(SocketAddr::new(IpAddr::from(<[u8; 16]>::try_from(&rest[..16]).ok()?).to_canonical(), port(32))))
        }
        (0x21, 0x31 | 0x32) if len >= 216 => Some(None),
        _ => None,
    }
}

fn check_round_trip(input: &mut Input<'_>) {
    let is_v6 = input.byte() & 1 == 1;
    let mut address = || match is_v6 {
        true => SocketAddr::from((u128::from(input.number()).rotate_left(60).to_be_bytes(), input.number() as u16)),
        false => SocketAddr::from(((input.number() as u32).to_be_bytes(), input.number() as u16)),
    };
    let (source, destination) = (address(), address());
    let family = if is_v6 { "TCP6" } else { "TCP4" };
    let (ip, other_ip) = (source.ip(), destination.ip());
    let v1 = format!("PROXY {family} {ip} {other_ip} {} {}\r\n", source.port(), destination.port());
    assert_eq!(parse_proxy(v1.as_bytes()), Ok(Some((v1.len(), Some(source)))));

    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
    let extra = input.bytes();
    let addresses = [octets(ip), octets(other_ip), ports, extra.to_vec()].concat();
    let len = (addresses.len() as u16).to_be_bytes();
    let family = if is_v6 { 0x21 } else { 0x11 };
    let v2 = [b"\r\n\r\n\0\r\nQUIT\n\x21", &[family][..], &len, &addresses].concat();
    assert_eq!(parse_proxy(&v2), Ok(Some((v2.len(), Some(source)))));
}
