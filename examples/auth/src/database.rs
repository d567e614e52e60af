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

/// See the module. Dropped, it does what is in the queue, and ends.
pub struct Database {
    /// None while it is being dropped.
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

/// Gets the connection, or why there is none.
type Job = Box<dyn FnOnce(Result<&mut Store, StoreError>) + Send>;

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
        let (sender, receiver) = sync_channel(QUEUE);
        let receiver = Arc::new(Mutex::new(receiver));
        let threads = stores.into_iter().enumerate().map(|(at, store)| {
            let worker = Worker { backend: config.database.clone(), store: Some(store), sweeps: at == 0 };
            let receiver = Arc::clone(&receiver);
            thread::Builder::new().name(format!("auth-database-{at}")).spawn(move || worker.work(&receiver))
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
        let job = move |store: Result<&mut Store, StoreError>| {
            if later.is_closed() {
                return;
            }
            match store.and_then(work) {
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
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => {
                job(Err(StoreError::Unavailable("the queue is full".into())));
            }
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// So many look-ups take well below a second.
const QUEUE: usize = 4096;

const SWEEP_EACH: Duration = Duration::from_secs(60);

struct Worker {
    backend: Backend,
    /// None if the connection was lost.
    store: Option<Store>,
    /// One of them does this for all.
    sweeps: bool,
}

impl Worker {
    fn work(mut self, jobs: &Mutex<Receiver<Job>>) {
        let mut swept = Instant::now();
        loop {
            // One waits for the next job and the others wait for the lock; both end when there is one.
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SWEEP_EACH);
            match next {
                Ok(job) => self.run(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.sweeps && swept.elapsed() >= SWEEP_EACH {
                swept = Instant::now();
                self.run(Box::new(|store| {
                    if let Err(error) = store.and_then(|store| store.sweep(tokens::now())) {
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
        let store = match &mut self.store {
            Some(store) => Ok(store),
            none => match Store::connect(&self.backend) {
                Ok(store) => Ok(none.insert(store)),
                Err(error) => Err(error),
            },
        };
        // A panic drops the job's `Later`, which answers 500; the connection may be in the middle of something.
        if catch_unwind(AssertUnwindSafe(|| job(store))).is_err() {
            self.store = None;
        }
    }
}
