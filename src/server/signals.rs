//! SIGTERM and SIGINT as a wish for shutdown. The only file that names signal-hook.
//!
//! The first signal writes to the pipe of every server that asked for it; the next one ends the process at once. Once
//! installed, the handlers stay: when the last of those servers is gone, any signal ends the process.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

const SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// The next signal ends the process: one has come already, or no server is left to take it.
static ARMED: AtomicBool = AtomicBool::new(true);

/// Servers that take signals, once the handlers are installed.
static SERVERS: Mutex<Option<usize>> = Mutex::new(None);

/// As long as it lives, the first signal makes a pipe readable.
#[derive(Debug)]
pub(crate) struct Signals {
    pipes: Vec<SigId>,
}

impl Signals {
    /// `wake` is the end that is written to.
    pub(crate) fn new(wake: &UnixStream) -> io::Result<Signals> {
        let mut servers = SERVERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if servers.is_none() {
            for signal in SIGNALS {
                // In this order: the handler that ends the process must not see the flag of the same signal. By
                // exit and not by the default action, which process 1 of a container does not have.
                flag::register_conditional_shutdown(signal, 128 + signal, &ARMED)?;
                flag::register(signal, &ARMED)?;
            }
        }
        let mut signals = Signals { pipes: Vec::new() };
        let count = servers.unwrap_or(0) + 1;
        *servers = Some(count);
        for signal in SIGNALS {
            let registered = wake.try_clone().and_then(|wake| low_level::pipe::register(signal, wake));
            match registered {
                Ok(pipe) => signals.pipes.push(pipe),
                Err(error) => {
                    // Dropping `signals` counts down again, and needs the lock.
                    drop(servers);
                    return Err(error);
                }
            }
        }
        if count == 1 {
            ARMED.store(false, Ordering::SeqCst);
        }
        Ok(signals)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for pipe in self.pipes.drain(..) {
            low_level::unregister(pipe);
        }
        let mut servers = SERVERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let left = servers.unwrap_or(1) - 1;
        *servers = Some(left);
        if left == 0 {
            ARMED.store(true, Ordering::SeqCst);
        }
    }
}
