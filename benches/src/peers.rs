//! The servers that are compared: what each needs, how it is built, started and stopped.
//!
//! Only processes that were started here are ever ended, by their ids. They end with this process even if it is killed,
//! where `setpriv` is there to arrange it.

pub mod check;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use crate::process;

/// `peers.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    /// Programs that peers need, and the command that installs each.
    pub programs: BTreeMap<String, String>,
    /// The servers.
    pub peers: Vec<Peer>,
}

/// One server.
#[derive(Clone, Debug, Deserialize)]
pub struct Peer {
    /// Short, as the options take it.
    pub name: String,
    /// What it is written in.
    pub language: String,
    /// What it is, in a line.
    pub what: String,
    /// The program that must be there.
    pub needs: String,
    /// Where it is built.
    pub folder: String,
    /// How. Empty: it need not be.
    pub build: Vec<String>,
    /// The file that shows it was.
    pub built: String,
    /// How it is started.
    pub start: Vec<String>,
    /// How it is started for the resource's POST, if that is another program.
    #[serde(default)]
    pub start_resource: Option<Vec<String>>,
    /// How it is started for a connection per request, if otherwise.
    #[serde(default)]
    pub start_close: Option<Vec<String>>,
    /// Added to its environment.
    pub env: BTreeMap<String, String>,
    /// What it serves.
    pub routes: Vec<String>,
    /// It reads requests, and so can refuse one.
    pub parses: bool,
    /// Checks that it is known to fail.
    pub known: Vec<String>,
    /// Prints its version.
    pub version: Vec<String>,
    /// What a reader should know.
    pub notes: String,
}

/// What is asked of a server in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `GET /`.
    Hello,
    /// The resource's POST.
    Resource,
    /// `GET /` with a connection for each request.
    HelloClose,
}

/// The folder of the peers' sources.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// The root of the workspace: the crate that is measured.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Reads `peers.json`, and puts the crate itself first.
pub fn manifest() -> Result<Manifest, String> {
    let path = folder().join("peers.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut manifest: Manifest = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    manifest.peers.insert(0, sprat());
    Ok(manifest)
}

/// The crate itself: its own examples, as a user would build them.
fn sprat() -> Peer {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let target = if target.is_absolute() { target } else { root().join(target) };
    let example = |name: &str| target.join("release/examples").join(name).display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    Peer {
        name: "sprat".into(),
        language: "Rust".into(),
        what: "this crate: its examples hello and resource".into(),
        needs: "cargo".into(),
        folder: root().display().to_string(),
        build: words(&["cargo", "build", "--release", "-p", "sprat", "--example", "hello", "--example", "resource"]),
        built: example("resource"),
        start: vec![example("hello"), "{addr}".into()],
        start_resource: Some(vec![example("resource"), "{addr}".into()]),
        start_close: None,
        env: BTreeMap::new(),
        routes: words(&["hello", "resource"]),
        parses: true,
        known: Vec::new(),
        version: words(&["cargo", "tree", "--depth", "0", "-p", "sprat"]),
        notes: "Takes 10,000 connections at a time unless `Limits::connections_max` is set, and makes room by closing idle ones.".into(),
    }
}

impl Peer {
    /// Whether it serves this.
    pub fn serves(&self, kind: Kind) -> bool {
        let route = if kind == Kind::Resource { "resource" } else { "hello" };
        self.routes.iter().any(|r| r == route)
    }

    /// Runs as machine code, so that valgrind can count its instructions.
    pub fn is_native(&self) -> bool {
        self.language == "Rust"
    }

    /// Gets faster while it runs.
    pub fn has_jit(&self) -> bool {
        matches!(&*self.language, "Java" | "JavaScript" | "TypeScript")
    }

    /// Keeps connections open though it was asked to close them.
    pub fn ignores_close(&self) -> bool {
        self.known.iter().any(|known| known == "close")
    }

    /// Makes it ready to be started. The error says why it is not, and what would help.
    pub fn prepare(&self, programs: &BTreeMap<String, String>) -> Result<(), String> {
        if find_program(&self.needs).is_none() {
            let install = programs.get(&self.needs).map_or("install it", String::as_str);
            return Err(format!("{} is missing: {install}", self.needs));
        }
        let built = folder().join(&self.built);
        let is_own = self.name == "sprat";
        // The crate itself is always built: cargo knows whether it has to be.
        if (built.exists() && !is_own) || self.build.is_empty() {
            return Ok(());
        }
        eprintln!("building {} ...", self.name);
        let mut command = Command::new(&self.build[0]);
        command.args(&self.build[1..]).current_dir(folder().join(&self.folder)).stdin(Stdio::null());
        if !is_own {
            command.env_remove("CARGO_TARGET_DIR"); // peers.json says where it puts what it builds
        }
        let output = command.output().map_err(|e| format!("{}: {e}", self.build.join(" ")))?;
        if output.status.success() && built.exists() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
        Err(format!("does not build ({}: {})", self.build.join(" "), last.trim()))
    }

    /// The first line that its version command prints, without paths.
    pub fn version(&self) -> String {
        let Some((program, args)) = self.version.split_first() else { return String::new() };
        let found = find_program(program).unwrap_or_else(|| program.into());
        let output = Command::new(found).args(args).current_dir(folder().join(&self.folder)).output();
        let said = output.map(|o| [o.stdout, o.stderr].concat()).unwrap_or_default();
        let line = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned();
        line.split(" (").next().unwrap_or_default().trim().to_owned()
    }
}

/// A server that runs. It is stopped when it is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    log: PathBuf,
}

impl Running {
    /// Starts a server, on this processor, under this prefix (such as a tracer), and waits until it accepts.
    pub fn start(peer: &Peer, kind: Kind, cpu: Option<usize>, prefix: &[String]) -> Result<Running, String> {
        let address = free_address()?;
        let words = match kind {
            Kind::Resource => peer.start_resource.as_ref().unwrap_or(&peer.start),
            Kind::HelloClose => peer.start_close.as_ref().unwrap_or(&peer.start),
            Kind::Hello => &peer.start,
        };
        let peers = folder().display().to_string();
        let fill = |word: &String| word.replace("{peers}", &peers).replace("{addr}", &address.to_string());
        let mut argv = dies_with_us();
        argv.extend(pin(cpu));
        argv.extend_from_slice(prefix);
        argv.extend(words.iter().map(fill));
        let log = std::env::temp_dir().join(format!("sprat-bench-{}-{}.log", std::process::id(), address.port()));
        let file = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let child = Command::new(&argv[0])
            .args(&argv[1..])
            .envs(&peer.env)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|e| format!("{}: {e}", argv.join(" ")))?;
        let mut running = Running { child, address, log };
        running.wait_until_it_accepts()?;
        Ok(running)
    }

    fn wait_until_it_accepts(&mut self) -> Result<(), String> {
        let started = Instant::now();
        loop {
            if TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok() {
                std::thread::sleep(Duration::from_millis(100));
                return Ok(());
            }
            let ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if ended || started.elapsed() > START_TIME_MAX {
                return Err(format!("does not start: {}", self.said()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The id of its first process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The last line that it wrote to standard error.
    pub fn said(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        said.lines().last().unwrap_or("it said nothing").to_owned()
    }

    /// Asks it to end, and ends it if it does not.
    pub fn stop(&mut self) {
        self.stop_with(Signal::TERM, Duration::from_secs(5));
    }

    /// Sends this signal to the first process alone, waits, then ends what is left of the tree.
    pub fn stop_with(&mut self, signal: Signal, patience: Duration) {
        let tree = process::tree(self.child.id());
        if let Some(pid) = Pid::from_raw(self.child.id() as i32)
            && matches!(self.child.try_wait(), Ok(None))
        {
            let _ = kill_process(pid, signal);
        }
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && started.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Children that outlived it. A process that has ended cannot be hit: its id was ours a moment ago.
        for pid in tree.into_iter().skip(1).filter_map(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = std::fs::remove_file(&self.log);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A JVM on a busy machine needs some of it, and valgrind more.
const START_TIME_MAX: Duration = Duration::from_secs(40);

fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    listener.local_addr().map_err(|e| e.to_string())
}

/// The words that put a command on one processor.
pub fn pin(cpu: Option<usize>) -> Vec<String> {
    match cpu {
        Some(cpu) if find_program("taskset").is_some() => vec!["taskset".into(), "-c".into(), cpu.to_string()],
        _ => Vec::new(),
    }
}

fn dies_with_us() -> Vec<String> {
    if find_program("setpriv").is_none() {
        return Vec::new();
    }
    ["setpriv", "--pdeathsig", "TERM"].map(String::from).to_vec()
}

/// Finds a program as a shell does, and where servers are kept beside that.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_its_programs_and_each_peer_once() {
        let manifest = manifest().unwrap();
        let mut names: Vec<_> = manifest.peers.iter().map(|peer| &peer.name).collect();
        for peer in &manifest.peers {
            assert!(manifest.programs.contains_key(&peer.needs), "{} needs {}", peer.name, peer.needs);
            assert!(peer.start.iter().any(|word| word == "{addr}"), "{} is given no address", peer.name);
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), manifest.peers.len());
        assert!(manifest.peers.iter().any(|peer| peer.name == "floor"));
    }
}
