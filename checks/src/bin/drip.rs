//! Peers that send one byte every 5 s, at full size and under the default limits: all of them have to be gone 3 s after
//! the deadline of a head, and others served meanwhile. `drip --peers 500`.

use std::io::{self, Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use sprat::Limits;
use sprat_checks::process::{Process, argument, connect, exchange, serve_if_asked_to};

fn main() -> io::Result<()> {
    serve_if_asked_to(Limits::DEFAULT);
    let count = argument("--peers").unwrap_or(500.0) as usize;
    let process = Process::start();
    let head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut other = connect(process.address)?;
    exchange(&mut other, head)?;
    let before = process.descriptor_count();
    let started = Instant::now();
    let mut peers = Vec::new();
    for number in 0..count {
        let mut peer = connect(process.address)?;
        // Half of them drip a head, the others a body.
        let start: &[u8] =
            if number % 2 == 0 { b"G" } else { b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" };
        peer.write_all(start)?;
        peers.push(peer);
    }
    let limit = Limits::DEFAULT.head_timeout + Duration::from_secs(3);
    let (mut slowest, mut served, mut drips) = (Duration::ZERO, 0, 0);
    let mut gone = None;
    while started.elapsed() < limit + Duration::from_secs(5) && gone.is_none() {
        if started.elapsed() >= Duration::from_secs(5) * (drips + 1) {
            drips += 1;
            for peer in &mut peers {
                // Fails once the connection is closed.
                let _ = peer.write_all(b"E");
            }
        }
        for fresh in [false, true] {
            let asked = Instant::now();
            let (status, _) =
                if fresh { exchange(&mut connect(process.address)?, head)? } else { exchange(&mut other, head)? };
            assert_eq!(status, 200);
            slowest = slowest.max(asked.elapsed());
            served += 1;
        }
        if process.descriptor_count() <= before {
            gone = Some(started.elapsed());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let mut refused = 0;
    for peer in &mut peers {
        let mut answer = Vec::new();
        let _ = peer.read_to_end(&mut answer);
        refused += usize::from(answer.starts_with(b"HTTP/1.1 408 "));
    }
    println!("{count} peers, {refused} of them were told 408, all gone after {gone:?}");
    println!("{served} requests of others were answered, the slowest in {slowest:?}");
    println!("{:?} of processor time", process.cpu_time());
    assert!(gone.is_some_and(|gone| gone <= limit) && refused == count);
    assert_eq!(process.stop(), Some(0));
    Ok(())
}
