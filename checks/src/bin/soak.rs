//! Mixed traffic and churn for as long as it is told to: `soak --minutes 20`. Memory and descriptors have to stay flat,
//! every answer has to be right, and the server has to end well.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use sprat::Limits;
use sprat_checks::process::{LARGE_LEN, Process, Random, argument, connect, exchange, read_answer, serve_if_asked_to};

const LIMITS: Limits = Limits {
    // Short, so that each of them passes many times.
    first_byte_timeout: Duration::from_secs(2),
    head_timeout: Duration::from_secs(2),
    body_grace: Duration::from_secs(2),
    idle_timeout: Duration::from_secs(5),
    write_timeout: Duration::from_secs(2),
    ..Limits::DEFAULT
};

#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    answers: AtomicU64,
    connections: AtomicU64,
    errors: Mutex<Vec<String>>,
}

fn main() {
    serve_if_asked_to(LIMITS);
    let minutes = argument("--minutes").unwrap_or(20.0);
    let clients = argument("--clients").unwrap_or(8.0) as u64;
    let process = Process::start();
    thread::sleep(Duration::from_millis(200));
    let descriptors_before = process.descriptor_count();
    let seen = Arc::new(Seen::default());
    let threads: Vec<_> = (0..clients)
        .map(|client| {
            let (seen, address) = (Arc::clone(&seen), process.address);
            thread::spawn(move || be_a_client(client, address, &seen))
        })
        .collect();
    let samples = watch(&process, &seen, Duration::from_secs_f64(minutes * 60.0));
    seen.stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    // Those that were left to the timeouts.
    thread::sleep(LIMITS.idle_timeout + Duration::from_secs(3));
    let descriptors_after = process.descriptor_count();
    let (cpu, status) = (process.cpu_time(), process.stop());

    let quarter = (samples.len() / 4).max(1);
    // The first eighth is for warming up.
    let early = median(&samples[samples.len() / 8..][..quarter.min(samples.len() - samples.len() / 8)]);
    let late = median(&samples[samples.len() - quarter..]);
    let errors = seen.errors.lock().expect("no panic");
    println!("answers      {}", seen.answers.load(Ordering::Relaxed));
    println!("connections  {}", seen.connections.load(Ordering::Relaxed));
    println!("errors       {}", errors.len());
    errors.iter().take(10).for_each(|error| println!("             {error}"));
    println!("processor    {:.1} s", cpu.as_secs_f64());
    println!("memory       {} kB early, {} kB late, {} kB most", early.0, late.0, samples.iter().max().expect("one").0);
    println!("descriptors  {} early, {} late; {descriptors_before} before, {descriptors_after} after", early.1, late.1);
    println!("exit status  {status:?}");
    let is_flat = late.0 <= early.0 + 2048 && descriptors_after == descriptors_before;
    if !is_flat || !errors.is_empty() || status != Some(0) {
        println!("FAILED");
        std::process::exit(1);
    }
    println!("ok");
}

/// Samples memory and descriptors once a second, and shows how far it is.
fn watch(process: &Process, seen: &Seen, time: Duration) -> Vec<(usize, usize)> {
    let started = Instant::now();
    let mut samples = Vec::new();
    while started.elapsed() < time {
        thread::sleep(Duration::from_secs(1).min(time));
        let sample = (process.memory_kb(), process.descriptor_count());
        samples.push(sample);
        let part = (started.elapsed().as_secs_f64() / time.as_secs_f64()).min(1.0);
        let bar = "#".repeat((part * 30.0) as usize);
        let (seconds, answers) = (started.elapsed().as_secs(), seen.answers.load(Ordering::Relaxed));
        eprint!(
            "\r[{bar:-<30}] {:3.0} % {:02}:{:02} {answers} answers, {} errors, {} kB, {} descriptors   ",
            part * 100.0,
            seconds / 60,
            seconds % 60,
            seen.errors.lock().expect("no panic").len(),
            sample.0,
            sample.1,
        );
    }
    eprintln!();
    samples
}

/// Of both columns.
fn median(samples: &[(usize, usize)]) -> (usize, usize) {
    let (mut memory, mut descriptors): (Vec<_>, Vec<_>) = samples.iter().copied().unzip();
    memory.sort_unstable();
    descriptors.sort_unstable();
    (memory[memory.len() / 2], descriptors[descriptors.len() / 2])
}

fn be_a_client(client: u64, address: SocketAddr, seen: &Seen) {
    let mut random = Random::new(client + 1);
    while !seen.stop.load(Ordering::Relaxed) {
        seen.connections.fetch_add(1, Ordering::Relaxed);
        let (name, act): (_, fn(SocketAddr, &mut Random) -> io::Result<u64>) = match random.below(100) {
            0..40 => ("keep-alive", keep_alive),
            40..55 => ("pipeline", pipeline),
            55..75 => ("upload", upload),
            75..85 => ("leave", leave),
            85..92 => ("refused", refused),
            92..95 => ("panic", panic),
            95..97 => ("download", download),
            97..98 => ("slow", slow),
            98..99 => ("stall", stall),
            _ => ("half-close", half_close),
        };
        match act(address, &mut random) {
            Ok(answers) => _ = seen.answers.fetch_add(answers, Ordering::Relaxed),
            Err(error) => seen.errors.lock().expect("no panic").push(format!("{name}: {error}")),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
fn expect<T: PartialEq + std::fmt::Debug>(got: T, expected: T) -> io::Result<()> {
    if got == expected { Ok(()) } else { Err(io::Error::other(format!("{got:?} instead of {expected:?}"))) }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: soak\r\n\r\n")
}

fn keep_alive(address: SocketAddr, random: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    let count = 1 + random.below(200);
    for _ in 0..count {
        let id = random.below(1 << 40).to_string();
        let (status, content) = exchange(&mut stream, get(&format!("/echo-path/{id}")))?;
        expect((status, content), (200, id.into_bytes()))?;
    }
    Ok(count as u64)
}

fn pipeline(address: SocketAddr, random: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    let count = 1 + random.below(100);
    let ids: Vec<_> = (0..count).map(|_| random.below(1 << 40).to_string()).collect();
    let requests: String = ids.iter().map(|id| get(&format!("/echo-path/{id}"))).collect();
    // In two pieces, at any byte.
    let (first, second) = requests.as_bytes().split_at(random.below(requests.len()));
    stream.write_all(first)?;
    thread::sleep(Duration::from_millis(random.below(3) as u64));
    stream.write_all(second)?;
    for id in ids {
        expect(read_answer(&mut stream)?, (200, id.into_bytes()))?;
    }
    Ok(count as u64)
}

fn upload(address: SocketAddr, random: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    for _ in 0..3 {
        let bound = 1 << random.below(18);
        let len = random.below(bound);
        let body: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        let mut request = b"POST /echo HTTP/1.1\r\nHost: soak\r\n".to_vec();
        if random.below(2) == 0 {
            write!(request, "Content-Length: {len}\r\n\r\n")?;
            request.extend_from_slice(&body);
        } else {
            request.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in body.chunks(1000 + random.below(20_000)) {
                write!(request, "{:x}\r\n", chunk.len())?;
                request.extend_from_slice(chunk);
                request.extend_from_slice(b"\r\n");
            }
            request.extend_from_slice(b"0\r\n\r\n");
        }
        for piece in request.chunks(1 + random.below(request.len())) {
            stream.write_all(piece)?;
        }
        let (status, content) = read_answer(&mut stream)?;
        expect((status, content == body), (200, true))?;
    }
    Ok(3)
}

/// Away at any moment; with an answer unread it is a reset.
fn leave(address: SocketAddr, random: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    let request = get("/").repeat(3);
    let len = random.below(request.len());
    stream.write_all(&request.as_bytes()[..len])?;
    thread::sleep(Duration::from_millis(random.below(3) as u64));
    Ok(0)
}

fn refused(address: SocketAddr, random: &mut Random) -> io::Result<u64> {
    let cases: [(&[u8], u16); 5] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ];
    let (request, status) = cases[random.below(cases.len())];
    let mut stream = connect(address)?;
    expect(exchange(&mut stream, request)?.0, status)?;
    Ok(1)
}

fn panic(address: SocketAddr, _: &mut Random) -> io::Result<u64> {
    expect(exchange(&mut connect(address)?, get("/panic"))?.0, 500)?;
    Ok(1)
}

fn download(address: SocketAddr, random: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    if random.below(2) == 0 {
        let (status, content) = exchange(&mut stream, get("/large"))?;
        expect((status, content.len()), (200, LARGE_LEN))?;
        return Ok(1);
    }
    // Some of it.
    stream.write_all(get("/large").as_bytes())?;
    let mut piece = vec![0; random.below(1 << 20)];
    stream.read_exact(&mut piece)?;
    Ok(0)
}

/// A head that takes too long.
fn slow(address: SocketAddr, _: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    let started = Instant::now();
    for byte in b"GET / HTTP/1.1\r\nHost: soak\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy" {
        if started.elapsed() > Duration::from_millis(2600) || stream.write_all(&[*byte]).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    expect(read_answer(&mut stream)?.0, 408)?;
    Ok(1)
}

/// An answer that is not taken.
fn stall(address: SocketAddr, _: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    stream.write_all(get("/large").as_bytes())?;
    thread::sleep(Duration::from_millis(2600));
    Ok(0)
}

fn half_close(address: SocketAddr, _: &mut Random) -> io::Result<u64> {
    let mut stream = connect(address)?;
    stream.write_all(get("/").repeat(5).as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    for _ in 0..5 {
        expect(read_answer(&mut stream)?, (200, b"hello".to_vec()))?;
    }
    expect(stream.read(&mut [0])?, 0)?;
    Ok(5)
}
