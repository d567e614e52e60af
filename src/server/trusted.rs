//! Whom the PROXY protocol is believed. Pure.

use std::net::IpAddr;

/// Addresses, prefixes, and perhaps the peers of unix-domain listeners. Nobody by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trusted {
    prefixes: Vec<Prefix>,
    unix: bool,
}

/// The first `len` bits of an address of 128; IPv4 ones stand at the place of `::ffff:0:0/96`.
///
/// INVARIANT: `len <= 128`, and no bit of `bits` is set beyond it.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    bits: u128,
    len: u32,
}

impl Trusted {
    /// Adds an address, a prefix such as `10.0.0.0/8`, or `unix`. Or the rule that the text breaks.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), &'static str> {
        if text == "unix" {
            self.unix = true;
            return Ok(());
        }
        self.prefixes.push(parse_prefix(text)?);
        Ok(())
    }

    /// Whether a peer is one of them; one of a unix-domain listener has no address.
    #[inline]
    pub(crate) fn holds(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            None => self.unix,
            Some(ip) => self.prefixes.iter().any(|prefix| mask(bits(ip), prefix.len) == prefix.bits),
        }
    }
}

fn parse_prefix(text: &str) -> Result<Prefix, &'static str> {
    let (address, len) = match text.split_once('/') {
        Some((address, len)) => (address, Some(len)),
        None => (text, None),
    };
    let ip: IpAddr = address.parse().map_err(|_| "neither an address, nor a prefix, nor `unix`")?;
    let address_len = if ip.is_ipv4() { 32 } else { 128 };
    let len = match len {
        // Rust takes `+8` for a number.
        Some(len) if !len.bytes().all(|b| b.is_ascii_digit()) => return Err("the prefix length is not a number"),
        Some(len) => len.parse().map_err(|_| "the prefix length is not a number")?,
        None => address_len,
    };
    if len > address_len {
        return Err("the prefix is longer than the address");
    }
    let prefix = Prefix { bits: bits(ip), len: 128 - address_len + len };
    if mask(prefix.bits, prefix.len) != prefix.bits {
        return Err("bits are set beyond the prefix");
    }
    Ok(prefix)
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

fn mask(bits: u128, len: u32) -> u128 {
    bits & u128::MAX.checked_shl(128 - len).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(trusted: &[&str], peer: &str, expected: bool) {
        let mut all = Trusted::default();
        for text in trusted {
            all.add(text).expect("a peer");
        }
        assert_eq!(all.holds(Some(peer.parse().expect("an address"))), expected, "{peer} in {trusted:?}");
    }

    #[test]
    fn peers_are_held_by_address_and_by_prefix_to_the_bit() {
        check(&[], "127.0.0.1", false);
        check(&["127.0.0.1"], "127.0.0.1", true);
        check(&["127.0.0.1"], "127.0.0.2", false);
        check(&["10.0.0.0/8", "192.168.4.0/22"], "10.255.0.1", true);
        check(&["10.0.0.0/8", "192.168.4.0/22"], "11.0.0.1", false);
        check(&["10.0.0.0/8", "192.168.4.0/22"], "192.168.7.255", true);
        check(&["10.0.0.0/8", "192.168.4.0/22"], "192.168.8.0", false);
        check(&["fd00::/8"], "fdff::1", true);
        check(&["fd00::/8"], "fe00::1", false);
        // One family does not let the other in, but for what an IPv4 address in IPv6 form is.
        check(&["0.0.0.0/0"], "::1", false);
        check(&["0.0.0.0/0"], "255.255.255.255", true);
        check(&["0.0.0.0/0"], "::ffff:1.2.3.4", true);
        check(&["::ffff:1.2.3.4"], "1.2.3.4", true);
        check(&["::/0"], "1.2.3.4", true);
    }

    #[test]
    fn peers_of_unix_listeners_are_trusted_by_name_only() {
        let mut trusted = Trusted::default();
        trusted.add("0.0.0.0/0").expect("a prefix");
        assert!(!trusted.holds(None));
        trusted.add("unix").expect("a word");
        assert!(trusted.holds(None));
    }

    #[test]
    fn what_is_no_peer_is_an_error() {
        for text in ["", "unix:", "10.0.0", "10.0.0.0/", "10.0.0.0/33", "::/129", "::/+8", "10.0.0.1/8", "::1/127", "x"]
        {
            assert!(Trusted::default().add(text).is_err(), "{text:?}");
        }
    }
}
