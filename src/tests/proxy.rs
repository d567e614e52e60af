use crate::proxy::{Proxied, parse};
use crate::reject::Reject;

/// The same outcome for the whole input, and not before its last byte.
#[track_caller]
fn accepts(header: &[u8], source: Option<&str>) {
    let expected = Proxied { len: header.len(), source: source.map(|s| s.parse().unwrap()) };
    assert_eq!(parse(header), Ok(Some(expected)), "{}", header.escape_ascii());
    assert_eq!(parse(&[header, b"GET / HTTP/1.1\r\n"].concat()), Ok(Some(expected)));
    for len in 0..header.len() {
        assert_eq!(parse(&header[..len]), Ok(None), "{len} bytes of {}", header.escape_ascii());
    }
}

#[track_caller]
fn refuses(header: &[u8]) {
    assert_eq!(parse(header), Err(Reject::Proxy), "{}", header.escape_ascii());
}

fn v2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend_from_slice(&[command, family]);
    header.extend_from_slice(&(addresses.len() as u16).to_be_bytes());
    header.extend_from_slice(addresses);
    header
}

#[test]
fn version_1_names_the_source() {
    accepts(b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n", Some("1.2.3.4:1"));
    accepts(b"PROXY TCP6 2001:db8::1 ::1 65535 0\r\n", Some("[2001:db8::1]:65535"));
    // Mapped by a balancer that listens on IPv6; its neighbour is an address of IPv6.
    accepts(b"PROXY TCP6 ::ffff:192.0.2.1 ::1 1 80\r\n", Some("192.0.2.1:1"));
    accepts(b"PROXY TCP6 ::fffe:192.0.2.1 ::1 1 80\r\n", Some("[::fffe:192.0.2.1]:1"));
    accepts(b"PROXY UNKNOWN\r\n", None);
    accepts(b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None);
}

#[test]
fn version_1_is_refused_where_it_is_malformed() {
    for bad in [
        "PROXY TCP4 1.2.3.4 5.6.7.8 1 80\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1 80 9\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 +1 80\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 01 80\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 65536 80\r\n",
        "PROXY TCP4  1.2.3.4 5.6.7.8 1 80\r\n",
        "PROXY TCP4 ::1 ::1 1 80\r\n",
        "PROXY TCP6 1.2.3.4 5.6.7.8 1 80\r\n",
        "PROXY UDP4 1.2.3.4 5.6.7.8 1 80\r\n",
        "PROXY TCP4 1.2.3 5.6.7.8 1 80\r\n",
        "GET / HTTP/1.1\r\n",
        "proxy TCP4 1.2.3.4 5.6.7.8 1 80\r\n",
    ] {
        refuses(bad.as_bytes());
    }
    refuses(format!("PROXY UNKNOWN {}\r\n", "x".repeat(100)).as_bytes());
    accepts(format!("PROXY UNKNOWN {}\r\n", "x".repeat(91)).as_bytes(), None);
}

#[test]
fn version_2_names_the_source_and_skips_what_follows_the_addresses() {
    let v4 = [1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0, 80];
    accepts(&v2(0x21, 0x11, &v4), Some("1.2.3.4:9"));
    accepts(&v2(0x21, 0x11, &[&v4[..], &[3, 0, 1, 7]].concat()), Some("1.2.3.4:9"));
    let mut v6 = [0; 36];
    v6[15] = 1;
    v6[33] = 7;
    accepts(&v2(0x21, 0x21, &v6), Some("[::1]:7"));
    accepts(&v2(0x21, 0x31, &[0; 216]), None);
    accepts(&v2(0x20, 0x00, &[]), None);
    accepts(&v2(0x20, 0x11, &v4), None);
}

#[test]
fn version_2_is_refused_where_it_is_malformed() {
    refuses(&v2(0x11, 0x11, &[0; 12]));
    refuses(&v2(0x22, 0x11, &[0; 12]));
    refuses(&v2(0x21, 0x11, &[0; 11]));
    refuses(&v2(0x21, 0x21, &[0; 35]));
    refuses(&v2(0x21, 0x31, &[0; 215]));
    refuses(&v2(0x21, 0x41, &[0; 36]));
    refuses(&v2(0x21, 0x11, &[0; 4081]));
    accepts(&v2(0x21, 0x11, &[0; 4080]), Some("0.0.0.0:0"));
    refuses(b"\r\n\r\n\0\r\nQUIX\n");
}

#[test]
fn an_ipv4_address_that_version_2_maps_into_ipv6_is_one_of_ipv4() {
    let mapped = [&[0; 10][..], &[0xff, 0xff, 192, 0, 2, 1], &[0; 16], &[0, 1, 0, 80]].concat();
    accepts(&v2(0x21, 0x21, &mapped), Some("192.0.2.1:1"));
}
