//! Several loops side by side, each with a listener, a state and a thread of its own.

use std::io;
use std::ops::Add;
use std::sync::{Arc, Mutex};
use std::thread;

use super::sockets::{self, Listener, Sockets};
use super::{Event, Handle, Server, Stats};
use crate::later::locked;
use crate::route::Table;

impl Server {
    /// Starts `count` loops, each in a thread of its own with a state that `make` makes there, and serves until all have
    /// shut down. Returns their counters, added up.
    ///
    /// The loops share nothing: each has its listener on the same address (`SO_REUSEPORT`), and the system spreads new
    /// connections over them. So a counter, a cache or a rate limit in the state is that of one loop, limits hold for
    /// each of them, and each has its own pool for [`Later::offload`](crate::Later::offload). What they have to share is
    /// in the state, in an `Arc`. A [`Handle`] taken before stops all of them, and so does a signal. Threads are not
    /// bound to cores: that needs a call without a safe interface in the standard library; `taskset` does it from outside
    /// for the process.
    ///
    /// ```no_run
    /// use sprat::{Listen, Server, routes};
    /// routes! { Api for u64 { GET "/" => hello(), } }
    /// fn hello(_: &mut u64) -> &'static str { "hello" }
    ///
    /// let listen = Listen { reuse_port: true, ..Listen::DEFAULT };
    /// let stats = Server::bind_with("127.0.0.1:3000", &listen)?.serve_workers(2, Api, || 0)?;
    /// println!("{} requests", stats.requests);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As for [`start`](Server::start); `InvalidInput` if there is to be none, or if the server was not bound here with
    /// [`Listen::reuse_port`](crate::Listen::reuse_port). An error of one loop stops the others.
    ///
    /// # Panics
    /// If one of the loops panics, which a panic in a handler does not make it do. The others are stopped.
    pub fn serve_workers<T: Table<S>, S: 'static>(
        self,
        count: usize,
        table: T,
        make: impl Fn() -> S + Send + Sync,
    ) -> io::Result<Stats> {
        let _ = table;
        let servers = self.split(count)?;
        let handle = servers.first().map(Server::handle);
        let make = &make;
        thread::scope(|scope| {
            let threads: Vec<_> = servers
                .into_iter()
                .enumerate()
                .map(|(at, server)| {
                    let handle = handle.clone();
                    let run = move || {
                        // Also where it stopped because all do: one that was not started yet missed the signal.
                        let _stop = StopAll(handle);
                        server.start_rows(T::ROUTES, make(), count).and_then(|mut running| {
                            while running.poll_once(None)? {}
                            Ok(running.stats())
                        })
                    };
                    thread::Builder::new().name(format!("sprat-{at}")).spawn_scoped(scope, run)
                })
                .collect();
            if threads.iter().any(Result::is_err) {
                drop(StopAll(handle.clone()));
            }
            let mut sum = Ok(Stats::default());
            for thread in threads {
                let served = thread.and_then(|thread| match thread.join() {
                    Ok(served) => served,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                sum = match (sum, served) {
                    (Ok(sum), Ok(stats)) => Ok(sum + stats),
                    (Err(error), _) | (_, Err(error)) => Err(error),
                };
            }
            sum
        })
    }

    /// As many servers on the same address, this one included.
    fn split(mut self, count: usize) -> io::Result<Vec<Server>> {
        let invalid = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if count == 0 {
            return invalid("workers: there must be at least one");
        }
        let options = match &self.listen {
            Some(options) if options.reuse_port || count == 1 => options.clone(),
            _ => return invalid("workers: bind the server with Listen { reuse_port: true, .. }"),
        };
        let hook = self.hook.take().map(|hook| Arc::new(Mutex::new(hook)));
        let mut servers = Vec::with_capacity(count);
        for _ in 1..count {
            let listener = sockets::bind([self.local_addr()?].into_iter(), &options)?;
            let sockets = Sockets::new(Listener::tcp(listener)?)?;
            self.sockets.mailbox().link(sockets.mailbox());
            servers.push(Server {
                sockets,
                limits: self.limits.clone(),
                hook: None,
                signal_delay: self.signal_delay,
                trusted: self.trusted.clone(),
                offload: self.offload.clone(),
                stall_threshold: self.stall_threshold,
                listen: None,
            });
        }
        servers.insert(0, self);
        for server in &mut servers {
            if let Some(hook) = hook.clone() {
                server.hook = Some(Box::new(move |event: &Event<'_>| (locked(&hook))(event)));
            }
        }
        Ok(servers)
    }
}

/// Stops all loops when it is dropped: one of them has ended.
struct StopAll(Option<Handle>);

impl Drop for StopAll {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.shutdown();
        }
    }
}

/// The counters of two servers together.
impl Add for Stats {
    type Output = Stats;

    fn add(self, other: Stats) -> Stats {
        Stats {
            accepted: self.accepted + other.accepted,
            open: self.open + other.open,
            requests: self.requests + other.requests,
            panics: self.panics + other.panics,
            faults: self.faults + other.faults,
            stalls: self.stalls + other.stalls,
            refused_work: self.refused_work + other.refused_work,
            accept_pauses: self.accept_pauses + other.accept_pauses,
            held_bytes: self.held_bytes + other.held_bytes,
        }
    }
}
