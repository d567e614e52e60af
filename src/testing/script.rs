//! What a simulated client does, step by step.

use std::collections::VecDeque;
use std::time::Duration;

/// The doings of one client in a [`Simulation`](super::Simulation), in order.
///
/// A client connects, follows its script, and then reads until the server closes. What it sends may arrive in any
/// pieces and at any time. When the server closes, the rest of the script is left out, and the client closes too.
///
/// ```
/// use sprat::testing::Script;
/// use std::time::Duration;
///
/// const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
/// let polite = Script::new().send(GET).answer().wait(Duration::from_secs(1)).send(GET).answer().close();
/// let slow = Script::new().drip(GET, Duration::from_secs(2));
/// let deaf = Script::new().stall().send(&GET.repeat(10_000));
/// let rude = Script::new().send(&GET[..9]).reset();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(crate) connects_after: Duration,
    pub(crate) steps: VecDeque<Step>,
    /// The end of the server's answers is no reason to stop.
    pub(crate) stubborn: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Wait { ms: u64 },
    Send(Vec<u8>),
    Drip { bytes: Vec<u8>, sent: usize, every_ms: u64 },
    Answer { head_only: bool },
    Continue,
    Reading(Reading),
    CloseWrite,
    Close,
    Reset,
}

/// How a client takes what is sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Freely,
    Never,
    Slowly { bytes: usize, every_ms: u64 },
}

impl Script {
    /// Of a client that connects at once.
    pub fn new() -> Script {
        Script::default()
    }

    /// Connects so much later.
    #[must_use]
    pub fn connect_after(mut self, delay: Duration) -> Script {
        self.connects_after = delay;
        self
    }

    /// Hands bytes to the system, which sends them when and as it can.
    #[must_use]
    pub fn send(self, bytes: &[u8]) -> Script {
        self.then(Step::Send(bytes.to_vec()))
    }

    /// Sends one byte at a time.
    #[must_use]
    pub fn drip(self, bytes: &[u8], every: Duration) -> Script {
        self.then(Step::Drip { bytes: bytes.to_vec(), sent: 0, every_ms: ms(every) })
    }

    /// Does nothing for a while, but still reads.
    #[must_use]
    pub fn wait(self, time: Duration) -> Script {
        self.then(Step::Wait { ms: ms(time) })
    }

    /// Waits for one more whole answer.
    #[must_use]
    pub fn answer(self) -> Script {
        self.then(Step::Answer { head_only: false })
    }

    /// Waits for one more answer, which is to a HEAD request.
    #[must_use]
    pub fn answer_to_head(self) -> Script {
        self.then(Step::Answer { head_only: true })
    }

    /// Waits for `100 Continue`, or for an answer instead.
    #[must_use]
    pub fn until_continue(self) -> Script {
        self.then(Step::Continue)
    }

    /// Reads nothing from here on.
    #[must_use]
    pub fn stall(self) -> Script {
        self.then(Step::Reading(Reading::Never))
    }

    /// Reads only so many bytes at a time from here on.
    #[must_use]
    pub fn read_slowly(self, bytes: usize, every: Duration) -> Script {
        self.then(Step::Reading(Reading::Slowly { bytes: bytes.max(1), every_ms: ms(every) }))
    }

    /// Reads whatever comes from here on, which is also how it begins.
    #[must_use]
    pub fn read(self) -> Script {
        self.then(Step::Reading(Reading::Freely))
    }

    /// Shuts down its sending side, and goes on reading.
    #[must_use]
    pub fn close_write(self) -> Script {
        self.then(Step::CloseWrite)
    }

    /// Closes. Answers that it has not read by then turn this into a reset, as with real sockets.
    #[must_use]
    pub fn close(self) -> Script {
        self.then(Step::Close)
    }

    /// Resets the connection.
    #[must_use]
    pub fn reset(self) -> Script {
        self.then(Step::Reset)
    }

    pub(crate) fn then(mut self, step: Step) -> Script {
        self.steps.push_back(step);
        self
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
