//! Listeners: unix-domain sockets, inherited ones, several at once, and balancers before them.

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
#[cfg(feature = "listenfd")]
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
#[cfg(feature = "listenfd")]
use std::process::Stdio;

use sprat::{Event, Level, Server, routes};

use crate::common::{assert_hello, connect, exchange, get, ms, read_answer, try_exchange};
#[cfg(feature = "listenfd")]
use crate::lab::within;
use crate::lab::{Folder, Process};

fn connect_unix(path: &str) -> UnixStream {
    let stream = UnixStream::connect(path).expect("a listener");
    stream.set_read_timeout(Some(ms(10_000))).expect("a socket");
    stream
}

// ---- unix-domain sockets -----------------------------------------------------------------------------------------

#[test]
fn a_unix_listener_serves_peers_without_an_address() {
    let folder = Folder::new("unix-serves");
    let path = folder.path("socket");
    let _process = Process::start(&format!("place=unix={path}"));
    let mut stream = connect_unix(&path);
    assert_hello(&mut stream);
    assert_eq!(exchange(&mut stream, get("/peer")).content, "none");
    let body = "x".repeat(1 << 20);
    let request = format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut sender = stream.try_clone().expect("a descriptor");
    std::thread::spawn(move || sender.write_all(request.as_bytes()));
    assert!(read_answer(&mut stream).content == body);
    // And half-closes are seen.
    stream.write_all(get("/").as_bytes()).expect("room");
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    assert_eq!(read_answer(&mut stream).content, "hello");
    assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
}

#[test]
fn a_dead_unix_socket_is_replaced_and_a_clean_stop_removes_it() {
    let folder = Folder::new("unix-dead");
    let path = folder.path("socket");
    let settings = format!("place=unix={path}");
    let mut process = Process::start(&settings);
    process.signal("-KILL");
    process.child.wait().expect("a child");
    assert!(std::fs::symlink_metadata(&path).is_ok() && UnixStream::connect(&path).is_err());
    let mut process = Process::start(&settings);
    assert_hello(&mut connect_unix(&path));
    process.signal("-TERM");
    assert_eq!(process.wait(ms(5000)), Some(0));
    assert!(std::fs::symlink_metadata(&path).is_err());
}

#[test]
fn a_live_unix_socket_is_a_clear_error_and_lives_on() {
    let folder = Folder::new("unix-live");
    let path = folder.path("socket");
    let settings = format!("place=unix={path}");
    let _process = Process::start(&settings);
    let mut before = connect_unix(&path);
    let error = Process::try_start_by(&settings, &mut Process::command()).err().expect("it is taken");
    assert!(error.contains(&path) && error.contains("another process listens there"), "{error}");
    assert_hello(&mut before);
    assert_hello(&mut connect_unix(&path));

    // Not one that answers nobody either: its queue is full, and the probe does not wait in it.
    let full = folder.path("full");
    let listener = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).expect("a socket");
    listener.bind(&socket2::SockAddr::unix(&full).expect("a path")).expect("a place");
    listener.listen(0).expect("a socket");
    let _waiting = UnixStream::connect(&full).expect("a queue");
    assert_eq!(Server::bind_unix(&full).expect_err("it is taken").kind(), io::ErrorKind::AddrInUse);
    assert!(std::fs::symlink_metadata(&full).is_ok());
}

#[test]
fn what_is_no_socket_is_never_deleted() {
    let folder = Folder::new("unix-file");
    let (file, link, target) = (folder.path("file"), folder.path("link"), folder.path("target"));
    folder.file("file").write_all(b"precious").expect("room");
    let dead = UnixListener::bind(&target).expect("a place");
    drop(dead);
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    std::fs::create_dir(folder.path("folder")).expect("a folder");
    for path in [&file, &link, &folder.path("folder")] {
        let error = Server::bind_unix(path).expect_err("it is no socket");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{path}");
        assert!(error.to_string().contains(path.as_str()), "{error}");
        assert!(std::fs::symlink_metadata(path).is_ok());
    }
    assert_eq!(std::fs::read(&file).expect("it is there"), b"precious");
    let error = Server::bind_unix(folder.path("none/socket")).expect_err("there is no folder");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn only_its_own_file_is_removed() {
    let folder = Folder::new("unix-own");
    let path = folder.path("socket");
    let server = Server::bind_unix(&path).expect("a place");
    // Somebody has moved it away, and put another in its place.
    std::fs::rename(&path, folder.path("moved")).expect("a file");
    let other = UnixListener::bind(&path).expect("a place");
    drop(server);
    assert!(std::fs::symlink_metadata(&path).is_ok());

    // An inherited one has a file that is not ours.
    drop(Server::from_unix_listener(other).expect("a listener"));
    assert!(std::fs::symlink_metadata(&path).is_ok());
}

// ---- inherited, and several --------------------------------------------------------------------------------------

#[test]
fn an_inherited_listener_serves_who_came_before() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut early = connect(listener.local_addr().expect("an address"));
    let process = Process::start_by("place=stdin", Process::command().stdin(OwnedFd::from(listener)));
    assert_hello(&mut early);
    assert_hello(&mut process.connect());
}

#[test]
#[cfg(feature = "listenfd")]
fn listeners_of_a_service_manager_are_taken_over() {
    let folder = Folder::new("listen-fds");
    let path = folder.path("socket");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let unix = UnixListener::bind(&path).expect("a place");
    // The shell puts them where they belong, and becomes the server, which so has its process number.
    let command = |variables: &str| {
        let script = format!("exec 3<&0 4<&1 0</dev/null 1>&2; {variables} exec \"$0\" \"$@\"");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).arg(std::env::current_exe().expect("a path")).args(Process::ARGS);
        command.stdin(tcp.as_fd().try_clone_to_owned().expect("a descriptor"));
        command
    };
    // Standard output is the second listener here, so that nothing can be heard of it but answers.
    let start = |variables: &str| {
        let mut command = command(variables);
        command.env("SPRAT_TEST_SETTINGS", "place=env").stdout(OwnedFd::from(unix.try_clone().expect("a descriptor")));
        command.stderr(Stdio::null()).spawn().expect("a shell")
    };
    let mut child = start("LISTEN_FDS=2 LISTEN_PID=$$");
    let address = tcp.local_addr().expect("an address");
    let mut stream = connect(address);
    assert_hello(&mut stream);
    assert_eq!(exchange(&mut connect_unix(&path), get("/peer")).content, "none");
    crate::lab::signal_process(child.id(), "-TERM");
    assert_eq!(child.wait().expect("a child").code(), Some(0));
    assert!(std::fs::symlink_metadata(&path).is_ok(), "the file is the manager's");

    // Those for another process are not ours: the server finds none, and ends.
    let mut child = start("LISTEN_FDS=2 LISTEN_PID=1");
    assert_ne!(within(ms(10_000), || child.try_wait().expect("a child")).expect("an end").code(), Some(0));
}

#[test]
fn several_listeners_are_served_side_by_side_and_all_close() {
    let folder = Folder::new("several");
    let path = folder.path("socket");
    let mut process = Process::start(&format!("place=both={path}"));
    let (mut tcp, mut unix) = (process.connect(), connect_unix(&path));
    for _ in 0..3 {
        assert_hello(&mut tcp);
        assert_hello(&mut unix);
        assert_hello(&mut process.connect());
        assert_hello(&mut connect_unix(&path));
    }
    // One that is always busy does not keep the other waiting.
    let _crowd: Vec<_> = (0..200).map(|_| process.connect()).collect();
    assert_hello(&mut connect_unix(&path));
    process.signal("-TERM");
    assert_eq!(process.wait(ms(5000)), Some(0));
    assert!(UnixStream::connect(&path).is_err());
}

routes! {
    Hello for () { GET "/" => const text("hello"), }
}

#[test]
fn the_start_tells_each_listener_and_the_ceiling_of_memory() {
    let folder = Folder::new("told");
    let path = folder.path("socket");
    let (tell, told) = std::sync::mpsc::channel();
    let tcp = Server::bind("127.0.0.1:0").expect("a free port");
    let address = tcp.local_addr().expect("an address");
    let server = Server::bind_unix(&path).expect("a place").and(tcp);
    assert_eq!(server.local_addr().expect("an address"), address);
    let limits = sprat::Limits { connections_max: 10, ..sprat::Limits::DEFAULT };
    let (each, all) = (limits.worst_case_bytes_per_connection(), limits.worst_case_bytes(10));
    let server = server.limits(limits).on_event(move |event: &Event<'_>| {
        let _ = tell.send((event.level(), event.to_string()));
    });
    drop(server.start(Hello, ()).expect("a start"));
    let told: Vec<_> = told.into_iter().collect();
    assert_eq!(
        told,
        [
            (Level::Info, format!("listening on {path:?}, for 10 connections")),
            (Level::Info, format!("listening on {address}, for 10 connections")),
            (Level::Debug, format!("at most {all} bytes are held, and {each} for one connection")),
        ]
    );
    let unix = Server::bind_unix(&path).expect("a place");
    assert_eq!(unix.local_addr().expect_err("it has none").kind(), io::ErrorKind::AddrNotAvailable);
}

// ---- balancers ---------------------------------------------------------------------------------------------------

const V1: &[u8] = b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x05\x06\x07\x08\0\x09\0\x50";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

#[test]
fn a_proxy_header_is_believed_from_trusted_peers_and_from_no_other() {
    let trusting = Process::start("trusted=10.0.0.0/8,127.0.0.0/8");
    let wary = Process::start("trusted=10.0.0.0/8,127.0.0.2");
    let plain = Process::start("");
    for (header, expected) in [(V1, Some("1.2.3.4:1")), (V2, Some("1.2.3.4:9")), (V2_LOCAL, None)] {
        let mut stream = trusting.connect();
        let own = stream.local_addr().expect("an address").to_string();
        stream.write_all(header).expect("room");
        for _ in 0..2 {
            let answer = exchange(&mut stream, get("/peer"));
            assert_eq!((answer.status, answer.content.as_str()), (200, expected.unwrap_or(&own)));
        }
        // In pieces.
        let mut stream = trusting.connect();
        for byte in header {
            stream.write_all(&[*byte]).expect("room");
            std::thread::sleep(ms(1));
        }
        assert_eq!(exchange(&mut stream, get("/peer")).status, 200);
        for process in [&wary, &plain] {
            let answer = exchange(&mut process.connect(), [header, get("/peer").as_bytes()].concat());
            assert_eq!((answer.status, answer.close), (400, true));
        }
    }
    // Trusted ones have to send it, and others need not.
    let answer = exchange(&mut trusting.connect(), get("/peer"));
    assert_eq!((answer.status, answer.close), (400, true));
    assert_hello(&mut wary.connect());
}

#[test]
fn a_balancer_on_a_unix_socket_is_trusted_by_that_name() {
    let folder = Folder::new("proxy-unix");
    let path = folder.path("socket");
    let _process = Process::start(&format!("place=unix={path} trusted=unix"));
    let mut stream = connect_unix(&path);
    stream.write_all(V2).expect("room");
    assert_eq!(exchange(&mut stream, get("/peer")).content, "1.2.3.4:9");
    let answer = try_exchange(&mut connect_unix(&path), get("/peer")).expect("an answer");
    assert_eq!((answer.status, answer.close), (400, true));
}
