//! The threads that talk to the database, each with a connection of its own: one for SQLite, which has one writer at a
//! time, a few for PostgreSQL.
//!
//! Not the pool of the framework: with 20 hashes before it there, a look-up would wait for a second. Jobs wait in a
//! bounded queue. Without a place in it the answer is 503, at once; a job whose client has left is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sprat::Later;

use crate::config::{Backend, Config};
use crate::log;
use crate::refusals;
use crate::routes::App;
use crate::store::{Store, StoreError};
use crate::tokens;

/// See the module. Dropped, it does what is in the queue, for a few seconds at most, and ends: a database that says
/// nothing does not keep it.
pub struct Database {
    /// None while it is being dropped.
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

/// Gets whoever has a connection, and asks for it if that is worth while.
type Job = Box<dyn FnOnce(&mut dyn Stores) + Send>;

trait Stores {
    /// The connection, or why there is none. Makes one if it was lost.
    fn store(&mut self) -> Result<&mut Store, StoreError>;
}

/// No place was left in the queue.
struct NoPlace;

impl Stores for NoPlace {
    fn store(&mut self) -> Result<&mut Store, StoreError> {
        Err(StoreError::Unavailable("the queue is full".into()))
    }
}

impl Database {
    /// Starts the threads. `store` is the first connection.
    pub fn start(config: &Config, store: Store) -> Result<Database, StoreError> {
        let count = match config.database {
            Backend::Sqlite(_) => 1,
            Backend::Postgres(_) => config.database_connections,
        };
        let mut stores = vec![store];
        while stores.len() < count {
            stores.push(Store::connect(&config.database)?);
        }
        Database::with(&config.database, stores.into_iter().map(Some))
    }

    /// One thread for each of these connections, or places for one.
    fn with(backend: &Backend, stores: impl Iterator<Item = Option<Store>>) -> Result<Database, StoreError> {
        let (sender, receiver) = sync_channel(QUEUE);
        let queue = Arc::new(Queue { jobs: Mutex::new(receiver), swept: Mutex::new(Instant::now()) });
        let threads = stores.enumerate().map(|(at, store)| {
            let worker = Worker { backend: backend.clone(), store };
            let queue = Arc::clone(&queue);
            thread::Builder::new().name(format!("auth-database-{at}")).spawn(move || worker.work(&queue))
        });
        let threads = threads.collect::<Result<_, _>>();
        let threads = threads.map_err(|error| StoreError::Unavailable(format!("a thread: {error}")))?;
        Ok(Database { jobs: Some(sender), threads })
    }

    /// Has `work` done, and `then` called in the loop's thread. If the database fails, the client is told so instead.
    pub fn run<T: Send + 'static>(
        &self,
        later: Later<App>,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
        then: impl FnOnce(&mut App, T, Later<App>) + Send + 'static,
    ) {
        let job = move |stores: &mut dyn Stores| {
            if later.is_closed() {
                return;
            }
            match stores.store().and_then(work) {
                Ok(value) => later.call(move |app, later| then(app, value, later)),
                Err(error) => later.answer(refusals::store_failed(&error)),
            }
        };
        self.put(Box::new(job));
    }

    fn put(&self, job: Job) {
        let Some(jobs) = &self.jobs else { return };
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => job(&mut NoPlace),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.jobs = None;
        let ends = Instant::now() + END_TIMEOUT;
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            if Instant::now() >= ends {
                // The client library waits for ever for a server that took its connection.
                log::line("database: it takes too long, and what was to be written may be lost");
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// How long the end waits for what is in the queue.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// So many look-ups take well below a second.
const QUEUE: usize = 4096;

const SWEEP_EACH: Duration = Duration::from_secs(60);

/// What the threads share.
struct Queue {
    jobs: Mutex<Receiver<Job>>,
    /// When what is over was last removed.
    swept: Mutex<Instant>,
}

impl Queue {
    fn next(&self) -> Result<Job, RecvTimeoutError> {
        // One waits for the next job and the others wait for the lock; both end when there is one.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SWEEP_EACH)
    }

    /// Whether it is time to sweep, and nobody does. Any of the threads: the same one may have the lock for hours.
    fn is_sweep_due(&self) -> bool {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let due = swept.elapsed() >= SWEEP_EACH;
        if due {
            *swept = Instant::now();
        }
        due
    }
}

struct Worker {
    backend: Backend,
    /// None if the connection was lost.
    store: Option<Store>,
}

impl Stores for Worker {
    fn store(&mut self) -> Result<&mut Store, StoreError> {
        match &mut self.store {
            Some(store) => Ok(store),
            none => Ok(none.insert(Store::connect(&self.backend)?)),
        }
    }
}

impl Worker {
    fn work(mut self, queue: &Queue) {
        loop {
            match queue.next() {
                Ok(job) => self.run(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if queue.is_sweep_due() {
                self.run(Box::new(|stores| {
                    if let Err(error) = stores.store().and_then(|store| store.sweep(tokens::now())) {
                        log::line(format_args!("database: what is over was not removed: {error}"));
                    }
                }));
            }
        }
    }

    fn run(&mut self, job: Job) {
        if self.store.as_ref().is_some_and(Store::is_broken) {
            self.store = None;
        }
        // A panic drops the job's `Later`, which answers 500; the connection may be in the middle of something.
        if catch_unwind(AssertUnwindSafe(|| job(self))).is_err() {
            self.store = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_database_that_says_nothing_does_not_keep_the_end_waiting() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let backend = Backend::Postgres(format!("postgres://x@{}/x", silent.local_addr().unwrap()));
        let database = Database::with(&backend, [None, None].into_iter()).unwrap();
        for _ in 0..4 {
            database.put(Box::new(|stores| drop(stores.store())));
        }
        let _taken = silent.accept().unwrap();
        let started = Instant::now();
        drop(database);
        assert!(started.elapsed() < 4 * END_TIMEOUT);
    }
}
