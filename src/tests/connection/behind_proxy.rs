//! Connections that begin with a PROXY header.

use std::net::SocketAddr;
use std::time::Duration;

use crate::connection::CloseReason;
use crate::limits::Limits;
use crate::reject::Reject;
use crate::routes;
use crate::testing::Client;

const BALANCER: &str = "10.0.0.1:5000";

routes! {
    PeerApi for () {
        GET "/" => peer_text(peer),
    }
}

fn peer_text(_: &mut (), peer: Option<SocketAddr>) -> String {
    peer.map_or("none".into(), |peer| peer.to_string())
}

fn balanced() -> Client<()> {
    Client::new(PeerApi, ()).with_peer(BALANCER.parse().expect("an address")).behind_proxy()
}

/// A version 2 header of a client at 1.2.3.4:9, with 100 bytes of TLV; or the balancer's own.
fn proxy_v2(local: bool) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend_from_slice(&[if local { 0x20 } else { 0x21 }, 0x11, 0, 115]);
    header.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0, 80, 4, 0, 100]);
    header.resize(header.len() + 100, b'G');
    header
}

#[test]
fn a_proxy_header_names_the_peer_of_every_request_however_it_is_split() {
    let get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let cases = [
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n".to_vec(), "1.2.3.4:1"),
        (b"PROXY TCP6 2001:db8::1 ::1 7 80\r\n".to_vec(), "[2001:db8::1]:7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), BALANCER),
        (proxy_v2(false), "1.2.3.4:9"),
        (proxy_v2(true), BALANCER),
    ];
    for (header, expected) in cases {
        let bytes = [&header[..], get, get].concat();
        for cut in 0..bytes.len() {
            let mut client = balanced();
            let mut link = client.connect();
            link.send_split(&bytes, &[cut]);
            let texts: Vec<_> = link.answers().iter().map(|answer| answer.text().to_owned()).collect();
            assert_eq!(texts, [expected, expected], "cut at {cut}");
        }
        let mut client = balanced();
        let mut link = client.connect();
        link.send_bytewise(&bytes);
        assert_eq!(link.answers().len(), 2);
        assert_eq!(link.held_bytes(), 0);
        // It comes once.
        link.send(&[&header[..], get].concat());
        assert_eq!(link.answers()[2].status(), 400);
    }
}

#[test]
fn without_a_proxy_header_a_trusted_peer_is_refused() {
    let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    for bad in ["", "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", "proxy UNKNOWN\r\n", "\r\n", "\r\n\r\n\0\r\nQUIX"] {
        let mut client = balanced();
        let mut link = client.connect();
        link.send(format!("{bad}{get}").as_bytes());
        let answers = link.answers();
        assert_eq!(
            (answers.len(), answers[0].status(), answers[0].field("connection")),
            (1, 400, Some("close")),
            "{bad}"
        );
        link.close_write();
        assert_eq!(link.closed(), Some(CloseReason::Rejected(Reject::Proxy)));
    }
    // Unasked, it is a bad request.
    let mut client = Client::new(PeerApi, ());
    let mut link = client.connect();
    link.send(format!("PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n{get}").as_bytes());
    link.close_write();
    assert_eq!((link.answers().len(), link.answers()[0].status()), (1, 400));
    assert_eq!(link.closed(), Some(CloseReason::Rejected(Reject::Version)));
}

#[test]
fn a_proxy_header_that_ends_or_rests_in_the_middle_is_refused_in_time() {
    let mut client = balanced();
    let mut link = client.connect();
    link.send(b"PROXY TCP4");
    link.close_write();
    assert_eq!((link.answers()[0].status(), link.closed()), (400, Some(CloseReason::Rejected(Reject::Truncated))));

    let mut client = balanced();
    let mut link = client.connect();
    link.close_write();
    assert_eq!((link.received(), link.closed()), (&b""[..], Some(CloseReason::PeerClosed)));

    let mut client = balanced();
    let mut link = client.connect();
    link.advance(Limits::DEFAULT.first_byte_timeout);
    assert_eq!((link.received(), link.closed()), (&b""[..], Some(CloseReason::FirstByteTimeout)));

    let mut client = balanced();
    let mut link = client.connect();
    for byte in b"PROXY TCP" {
        link.send(&[*byte]);
        link.advance(Duration::from_secs(1));
    }
    assert_eq!(link.received(), b"");
    link.advance(Duration::from_secs(1));
    assert_eq!(link.answers()[0].status(), 408);

    // After it the wait for a request goes on as it was.
    let mut client = balanced();
    let mut link = client.connect();
    link.send(b"PROXY UNKNOWN\r\n");
    link.advance(Limits::DEFAULT.first_byte_timeout);
    assert_eq!(link.closed(), Some(CloseReason::FirstByteTimeout));
}
