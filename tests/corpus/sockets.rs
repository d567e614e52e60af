//! Plays a case against a listening server, with real pauses.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::case::{Case, Then};
use super::conversation::{Conversation, Gate, Heard, PROBE, is_probe_due};
use super::judge::judge;
use super::response::Answers;
use super::visible::visible_up_to;

/// How long the client waits. Only a failing case waits for `case`, so it may be generous on a busy machine.
#[derive(Clone, Copy)]
pub struct Patience {
    /// For one whole case.
    pub case: Duration,
    /// For an interim answer.
    pub interim: Duration,
    /// For bytes that should not come.
    pub quiet: Duration,
}

impl Patience {
    pub const USUAL: Patience =
        Patience { case: Duration::from_secs(5), interim: Duration::from_secs(2), quiet: Duration::from_millis(80) };
}

/// Plays a case on a connection of its own and judges it.
pub fn check_over_tcp(case: &Case, address: SocketAddr, patience: Patience) -> Result<(), String> {
    let client = Client::connect(case, address, patience).map_err(|error| format!("cannot connect: {error}"))?;
    let mut script = Script { case, client, patience, gate: Gate::None };
    let first_len = script.play().map_err(|error| format!("the client's own socket failed: {error}"))?;
    let first_closed = script.client.closed;
    let is_probed = script.probe().map_err(|error| format!("the client's own socket failed: {error}"))?;

    let (client, gate) = (&script.client, script.gate);
    let (first, rest) = client.received.split_at(first_len);
    let conversation = Conversation {
        first: Heard { received: first, closed: first_closed },
        probe: is_probed.then_some(Heard { received: rest, closed: client.closed }),
        gate,
        stuck: !is_probed && client.has_unsent(),
        unix_now: SystemTime::UNIX_EPOCH.elapsed().expect("we live after 1970").as_secs(),
    };
    judge(case, &conversation).map_err(|fault| {
        let end = if client.closed { ", then a close" } else { "" };
        format!("{fault}\n  came:  {}{end}", visible_up_to(&client.received, 400))
    })
}

/// The course of one case.
struct Script<'c> {
    case: &'c Case,
    client: Client<'c>,
    patience: Patience,
    gate: Gate,
}

impl Script<'_> {
    /// Everything up to the probe; gives the number of bytes received by then.
    fn play(&mut self) -> io::Result<usize> {
        self.send_with_pauses()?;
        let case = self.case;
        self.client.pump(self.client.deadline, |client| !client.has_unsent())?;
        if case.half_close && self.gate != Gate::Withheld && !self.client.has_unsent() {
            // A server that has closed already makes this fail, and that is no fault.
            let _ = self.client.stream.shutdown(Shutdown::Write);
        }
        self.client.pump(self.client.deadline, |client| has_all_answers(case, client))?;
        match case.then {
            // The close itself is the proof that nothing more comes.
            Then::Close if !case.answers.is_empty() => self.client.pump(self.client.deadline, |_| false)?,
            _ => self.stay_quiet()?,
        }
        Ok(self.client.received.len())
    }

    fn send_with_pauses(&mut self) -> io::Result<()> {
        let gate_at = self.case.await_interim;
        let mut stops: Vec<_> = self.case.splits.iter().copied().chain(gate_at).collect();
        stops.sort_unstable();
        for stop in stops {
            self.client.due = stop;
            if Some(stop) == gate_at {
                self.wait_at_gate()?;
                if self.gate != Gate::Opened {
                    return Ok(());
                }
            } else {
                self.client.pump(Instant::now() + self.case.pause, |_| false)?;
            }
        }
        self.client.due = self.case.bytes.len();
        Ok(())
    }

    fn wait_at_gate(&mut self) -> io::Result<()> {
        let case = self.case;
        let see = |client: &Client<'_>| Gate::seen(case, Heard { received: &client.received, closed: client.closed });
        self.client.pump(Instant::now() + self.patience.interim, |client| see(client) != Gate::Silent)?;
        self.gate = see(&self.client);
        Ok(())
    }

    fn stay_quiet(&mut self) -> io::Result<()> {
        // Where nothing is expected, silence is the whole test.
        let quiet = if self.case.answers.is_empty() { self.patience.quiet * 4 } else { self.patience.quiet };
        self.client.pump(Instant::now() + quiet, |_| false)
    }

    fn probe(&mut self) -> io::Result<bool> {
        if self.client.closed || self.client.has_unsent() || !is_probe_due(self.case, self.gate) {
            return Ok(false);
        }
        let start = self.client.received.len();
        let blank = Case::blank();
        (self.client.bytes, self.client.sent, self.client.due) = (PROBE, 0, PROBE.len());
        // A full wait even if the case has used up its own: a slow answer is not a missing one.
        self.client.deadline = Instant::now() + self.patience.case;
        self.client.pump(self.client.deadline, |client| {
            !matches!(Answers::new(&blank, &client.received[start..], client.closed).next(), Ok(None))
        })?;
        Ok(true)
    }
}

/// True too if something came that makes further waiting pointless.
fn has_all_answers(case: &Case, client: &Client<'_>) -> bool {
    let mut answers = Answers::new(case, &client.received, client.closed);
    while answers.final_count < case.answers.len() {
        match answers.next() {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
    true
}

/// One connection that sends while it reads, so that neither side can block the other.
struct Client<'c> {
    stream: TcpStream,
    bytes: &'c [u8],
    sent: usize,
    /// How many of `bytes` may be sent by now.
    due: usize,
    received: Vec<u8>,
    closed: bool,
    deadline: Instant,
}

impl<'c> Client<'c> {
    fn connect(case: &'c Case, address: SocketAddr, patience: Patience) -> io::Result<Client<'c>> {
        let stream = TcpStream::connect_timeout(&address, patience.case)?;
        stream.set_nodelay(true)?;
        let deadline = Instant::now() + patience.case;
        let bytes = &case.bytes[..];
        Ok(Client { stream, bytes, sent: 0, due: 0, received: Vec::new(), closed: false, deadline })
    }

    fn has_unsent(&self) -> bool {
        self.sent < self.due && !self.closed
    }

    /// Sends and reads until a moment has come, the connection is closed, or `is_done` says so.
    fn pump(&mut self, until: Instant, is_done: impl Fn(&Self) -> bool) -> io::Result<()> {
        let until = until.min(self.deadline);
        while !self.closed && !is_done(self) {
            let left = until.saturating_duration_since(Instant::now());
            // What is due goes out even if there is no time to wait for anything.
            let is_late = left < SHORTEST_WAIT;
            if self.has_unsent() {
                // Not a blocking write: the server may stop reading until we have read its answers.
                self.stream.set_nonblocking(true)?;
                let has_moved = self.write()? | self.read()?;
                self.stream.set_nonblocking(false)?;
                if is_late {
                    return Ok(());
                }
                if !has_moved {
                    thread::sleep(SHORTEST_WAIT);
                }
            } else if is_late {
                return Ok(());
            } else {
                self.stream.set_read_timeout(Some(left))?;
                self.read()?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<bool> {
        let end = self.due.min(self.sent + PIECE_BYTES_MAX);
        match self.stream.write(&self.bytes[self.sent..end]) {
            Ok(count) => {
                self.sent += count;
                Ok(count > 0)
            }
            Err(error) if is_wait(&error) => Ok(false),
            // The server reads no more, but an answer may still lie in our receive buffer: go on reading.
            Err(error) if is_reset(&error) => {
                self.due = self.sent;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn read(&mut self) -> io::Result<bool> {
        let mut piece = [0; PIECE_BYTES_MAX];
        match self.stream.read(&mut piece) {
            Ok(0) => self.closed = true,
            // A server that never stops talking must not fill our memory; the judge has seen enough by now.
            Ok(_) if self.received.len() > RECEIVED_BYTES_MAX => {}
            Ok(count) => self.received.extend_from_slice(&piece[..count]),
            Err(error) if is_wait(&error) => return Ok(false),
            Err(error) if is_reset(&error) => self.closed = true,
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

/// Nothing to do yet. A read that timed out is one of the first two, depending on the platform.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe)
}

/// A read timeout of zero would mean "for ever".
const SHORTEST_WAIT: Duration = Duration::from_micros(200);
const PIECE_BYTES_MAX: usize = 64 * 1024;
const RECEIVED_BYTES_MAX: usize = 8 * 1024 * 1024;
