//! Threads for work that would hold up the loop.
//!
//! Threads start when there is work for them, and end with their server. Knows jobs, not requests; see `later`.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use crate::caught::caught;
use crate::later::{Job, Letter, locked};

/// The pool of threads that [`Later::offload`](crate::Later::offload) hands work to; see
/// [`Server::offload`](crate::Server::offload). Each loop has its own.
///
/// ```
/// use std::time::Duration;
/// use sprat::{Offload, Server};
/// let offload = Offload { threads: 2, queue: 64, deadline: Duration::from_secs(5), ..Offload::DEFAULT };
/// let server = Server::bind("127.0.0.1:0")?.offload(offload);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct Offload {
    /// Number of threads. Each starts when first needed. Default 0: one for each core.
    pub threads: usize,
    /// How much may wait beside what is being done. Beyond it: 503 with `Retry-After`. Default 1024.
    pub queue: usize,
    /// What nobody has begun after this long is dropped when its turn comes, and answered with 503. Default 30 s. Work
    /// that was begun is not cut off; see [`Limits::answer_timeout`](crate::Limits::answer_timeout) for its client.
    pub deadline: Duration,
    /// Called in each thread of the pool before its first work. Default: nothing is.
    ///
    /// Where the loop shares its cores with the pool, it is good to have the pool step back: on Linux a thread has a
    /// priority of its own, and lowering it needs no privilege. The standard library has no call for that, other crates
    /// have: `thread_start: Some(|| _ = rustix::process::nice(19))`.
    ///
    /// If it panics, the thread works all the same.
    pub thread_start: Option<fn()>,
}

impl Offload {
    /// The defaults named at each field.
    pub const DEFAULT: Offload =
        Offload { threads: 0, queue: 1024, deadline: Duration::from_secs(30), thread_start: None };
}

impl Default for Offload {
    fn default() -> Offload {
        Offload::DEFAULT
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    options: Offload,
    threads_max: usize,
    jobs: VecDeque<Job>,
    threads: usize,
    busy: usize,
    /// No thread is started: somebody calls [`Pool::run_at`].
    by_hand: bool,
    closed: bool,
}

impl State {
    fn is_full(&self) -> bool {
        self.jobs.len() + self.busy >= self.threads_max.saturating_add(self.options.queue)
    }
}

impl Pool {
    pub(crate) fn new(options: Offload) -> Pool {
        let threads_max = threads_max(&options);
        let jobs = VecDeque::new();
        let state = State { options, threads_max, jobs, threads: 0, busy: 0, by_hand: false, closed: false };
        Pool(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    pub(crate) fn configure(&self, options: Offload) {
        let threads_max = threads_max(&options);
        let mut state = self.state();
        (state.options, state.threads_max) = (options, threads_max);
    }

    /// From now on work is done by [`run_at`](Pool::run_at) alone: for tests and simulations.
    pub(crate) fn drive_by_hand(&self) {
        self.state().by_hand = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.0.state)
    }

    /// Takes work, if there is room for it.
    pub(crate) fn submit(&self, mut job: Job) -> Result<(), Job> {
        let mut cancelled = VecDeque::new();
        let mut state = self.state();
        if state.closed {
            return Err(job);
        }
        if state.is_full() {
            let (gone, left): (VecDeque<_>, _) =
                std::mem::take(&mut state.jobs).into_iter().partition(Job::is_cancelled);
            state.jobs = left;
            cancelled = gone;
            if state.is_full() {
                return Err(job);
            }
        }
        let idle = state.threads.saturating_sub(state.busy);
        if !state.by_hand && idle <= state.jobs.len() && state.threads < state.threads_max {
            match self.start_thread(state.options.thread_start) {
                Ok(()) => state.threads += 1,
                Err(_) if state.threads == 0 => return Err(job),
                // Fewer threads have to do.
                Err(_) => {}
            }
        }
        job.queued = Some(Instant::now());
        state.jobs.push_back(job);
        drop(state);
        self.0.changed.notify_one();
        // What they hold may take locks.
        drop(cancelled);
        Ok(())
    }

    fn start_thread(&self, begin: Option<fn()>) -> std::io::Result<()> {
        let pool = self.clone();
        let run = move |begin: Option<fn()>| {
            // Its own fault must not cost the pool a thread that it counts on.
            let _ = begin.map(caught);
            pool.work();
        };
        thread::Builder::new().name("sprat-offload".into()).spawn(move || run(begin))?;
        Ok(())
    }

    fn work(&self) {
        loop {
            let mut state = self.state();
            while state.jobs.is_empty() && !state.closed {
                state = match self.0.changed.wait(state) {
                    Ok(state) => state,
                    Err(poisoned) => poisoned.into_inner(),
                };
            }
            drop(state);
            if !self.run_one() && self.state().closed {
                return;
            }
        }
    }

    /// Does the work that has waited longest. False if there is none.
    pub(crate) fn run_one(&self) -> bool {
        self.run_at(0, false)
    }

    /// How much work could be under way at the same time, so that any of it could be done first.
    pub(crate) fn runnable(&self) -> usize {
        let state = self.state();
        state.jobs.len().min(state.threads_max)
    }

    /// Does the work in this place of the queue, or, if it is `late`, drops it as work past its deadline is dropped.
    pub(crate) fn run_at(&self, place: usize, late: bool) -> bool {
        let mut state = self.state();
        let Some(job) = state.jobs.remove(place) else { return false };
        let deadline = state.options.deadline;
        state.busy += 1;
        drop(state);
        let letter = if job.is_cancelled() {
            drop(job);
            None
        } else if late || job.queued.is_some_and(|queued| queued.elapsed() > deadline) {
            Some(job.refuse())
        } else {
            Some(job.run())
        };
        self.state().busy -= 1;
        letter.map(Letter::send);
        true
    }

    /// Nothing more is begun.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        self.0.changed.notify_all();
        // What they hold may take locks.
        drop(jobs);
    }
}

/// Not asked again for each piece of work: the system reads files to tell.
fn threads_max(options: &Offload) -> usize {
    match options.threads {
        0 => thread::available_parallelism().map_or(1, |cores| cores.get()),
        threads => threads,
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Pool").field("waiting", &state.jobs.len()).field("busy", &state.busy).finish_non_exhaustive()
    }
}
