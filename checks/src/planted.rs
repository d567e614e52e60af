//! Faults that the simulation has to find: one change each to a copy of the sources.

/// A change of one place in one file that makes the server wrong.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub name: &'static str,
    pub file: &'static str,
    /// Stands there exactly once.
    pub find: &'static str,
    pub replace: &'static str,
}

const fn fault(name: &'static str, file: &'static str, find: &'static str, replace: &'static str) -> Fault {
    Fault { name, file, find, replace }
}

const LOOP: &str = "src/server/event_loop.rs";
const ACCEPT: &str = "src/server/event_loop/accept.rs";
const SHUTDOWN: &str = "src/server/event_loop/shutdown.rs";
const MACHINE: &str = "src/connection.rs";
const SERVE: &str = "src/connection/serve.rs";
const LATE_ANSWERS: &str = "src/connection/late.rs";
const LATER: &str = "src/later.rs";
const OUTPUT: &str = "src/output.rs";
const TIMERS: &str = "src/server/timers.rs";

pub const FAULTS: &[Fault] = &[
    fault(
        "drop a byte of a short write",
        MACHINE,
        "output.move_rest(sent, self.unsent.insert(Box::default()));",
        "output.move_rest(sent + 1, self.unsent.insert(Box::default()));",
    ),
    fault(
        "forget the generation of an event",
        LOOP,
        "        let Some(open) = slot.open.as_mut().filter(|_| slot.generation == ready.token.generation()) else { return };",
        "        let Some(open) = slot.open.as_mut() else { return };",
    ),
    fault("forget to count generations", LOOP, "slot.generation = slot.generation.wrapping_add(1);", ""),
    fault(
        "skip the deadline of a body",
        MACHINE,
        "Phase::Body(receiving) => Some(receiving.pace.deadline(limits)),",
        "Phase::Body(_) => None,",
    ),
    fault(
        "set no timer for a deadline that comes closer",
        LOOP,
        "&& Bucket::of(deadline) < self.timers.bucket(index)",
        "&& self.timers.bucket(index) == Bucket::of(Tick(u64::MAX))",
    ),
    fault(
        "answer out of order",
        OUTPUT,
        "        self.segments.push_back(segment);",
        "        if self.segments.len() > 1 { self.segments.insert(1, segment) } else { self.segments.push_back(segment) }",
    ),
    fault("leak a slot", LOOP, "        self.freed.push(index);\n", ""),
    fault(
        "spin on EMFILE",
        ACCEPT,
        "        self.accept.paused_until = Some(self.now.after(ACCEPT_PAUSE));\n        self.stats.accept_pauses += 1;",
        "        self.stats.accept_pauses += 1;",
    ),
    fault(
        "stay deaf after EMFILE",
        LOOP,
        "wake = [wake, self.accept.paused_until, by_stage]",
        "wake = [wake, by_stage, None]",
    ),
    fault("forget the ready list", LOOP, "            self.resumable.push_back(token);\n", ""),
    fault(
        "forget to read again when the buffer was filled",
        LOOP,
        "open.readable = n == space_len || open.read_closed || !N::SHORT_READ_DRAINS;",
        "open.readable = open.read_closed || !N::SHORT_READ_DRAINS;",
    ),
    fault(
        "take a short read for drained behind an end of file",
        LOOP,
        "open.readable = n == space_len || open.read_closed || !N::SHORT_READ_DRAINS;",
        "open.readable = n == space_len || !N::SHORT_READ_DRAINS;",
    ),
    fault(
        "lose interest in writing",
        LOOP,
        "(true, true) => self.net.watch_writable(&mut open.socket, token),",
        "(true, true) => Ok(()),",
    ),
    fault(
        "lose the last read before the close on shutdown",
        SHUTDOWN,
        "            if open.connection.is_idle() && !open.queued {\n                open.readable = true;",
        "            if open.connection.is_idle() && !open.queued {",
    ),
    fault(
        "leave the listener's queue behind on shutdown",
        SHUTDOWN,
        "            if self.can_accept() {\n                self.accept_waiting();\n            }",
        "",
    ),
    fault(
        "accept one connection for each event",
        ACCEPT,
        "                    self.add(socket, peer);\n",
        "                    self.add(socket, peer);\n                    self.accept.pending = false;\n",
    ),
    fault(
        "end a head's time early",
        MACHINE,
        "                Some(self.since.after(limits.head_timeout))",
        "                Some(self.since.after(limits.head_timeout / 2))",
    ),
    fault(
        "let each byte put off the end of a head's time",
        SERVE,
        "                            *scanned = head::scanned_len(window);\n                            if !*begun {",
        "                            *scanned = head::scanned_len(window);\n                            if true {",
    ),
    fault(
        "count the write stall from the first byte",
        MACHINE,
        "            unsent.advance(sent);\n            self.unsent_since = now;",
        "            unsent.advance(sent);",
    ),
    fault(
        "leak a buffer",
        MACHINE,
        "std::mem::take(&mut self.held).recycle(pool);",
        "let _ = (pool, std::mem::take(&mut self.held));",
    ),
    fault(
        "scan past a CR whose LF may come",
        "src/head.rs",
        "    bytes.len() - usize::from(bytes.ends_with(b\"\\r\"))",
        "    bytes.len()",
    ),
    fault(
        "lose what is pipelined behind a body",
        SERVE,
        "            Served::Body(used) => (start + head_len + used, end),",
        "            Served::Body(used) => (if used > 0 { end } else { start + head_len }, end),",
    ),
    fault(
        "close at once after a refusal",
        MACHINE,
        "                if !linger || self.eof {",
        "                if !linger || self.eof || matches!(reason, CloseReason::Rejected(_)) {",
    ),
    fault(
        "let the date stand still",
        LOOP,
        "        if self.now >= self.second_end {",
        "        if self.second_end == Tick(0) {",
    ),
    fault(
        "merge waiting answers without end",
        OUTPUT,
        "            && last.len() + new.len() <= MERGED_BYTES_MAX",
        "            && new.len() <= COPY_BYTES_MAX",
    ),
    fault("forget the earliest timer", TIMERS, "        self.earliest = self.earliest.min(bucket);\n", ""),
    fault(
        "charge a peer for the time in which it is not read",
        MACHINE,
        "        self.restart_wait(now);\n",
        "        let _ = Connection::restart_wait;\n",
    ),
    fault(
        "count a skipped body as idle time",
        SERVE,
        "        self.phase = BETWEEN;\n        self.since = now;",
        "        self.phase = BETWEEN;\n        let _ = now;",
    ),
    fault(
        "wait for descriptors though the listener is closed",
        SHUTDOWN,
        "        self.accept.paused_until = None;\n        self.net.close_listener();",
        "        self.net.close_listener();",
    ),
    fault(
        "give new connections no time at shutdown",
        LOOP,
        "hush == HUSHED || self.now >= since.after(REQUEST_GRACE)",
        "hush == HUSHED || self.now >= since",
    ),
    fault(
        "close at shutdown what was read once more long ago",
        LOOP,
        "        open.parting = may_part;",
        "        open.parting |= may_part;",
    ),
    fault(
        "deliver a letter without a look at the number of its ticket",
        LATE_ANSWERS,
        "            Phase::Waiting(waiting) if waiting.ticket.number == number => {}\n            Phase::Streaming(streaming) if streaming.waiting.ticket.number == number => {}",
        "            Phase::Waiting(_) => {}\n            Phase::Streaming(_) => {}",
    ),
    fault("give out tickets with the same number", LATER, "        self.next += 1;\n", "        self.next = 1;\n"),
    fault(
        "forget the last chunk of a stream",
        LATE_ANSWERS,
        "            turn.workspace.output.bytes.extend_from_slice(b\"0\\r\\n\\r\\n\");",
        "",
    ),
    fault(
        "end a stream that broke off as if it were whole",
        LATE_ANSWERS,
        "                self.phase = Phase::Closing { reason: CloseReason::StreamAborted, linger: false };",
        "                turn.workspace.output.bytes.extend_from_slice(b\"0\\r\\n\\r\\n\");\n                self.phase = Phase::Closing { reason: CloseReason::StreamAborted, linger: false };",
    ),
    fault(
        "leave a ticket open when its peer leaves",
        MACHINE,
        "    fn drop(&mut self) {\n        self.ticket.close();",
        "    fn drop(&mut self) {\n        let _ = Ticket::close;",
    ),
    fault(
        "answer what came behind a request that waits for its answer",
        SERVE,
        "                Phase::Waiting(_) | Phase::Streaming(_) => {\n                    if self.eof",
        "                Phase::Waiting(_) if start < end && requests_left > 0 => {\n                    let waiting = std::mem::replace(&mut self.phase, BETWEEN);\n                    let kept = self.serve(buffer, start..end, 0, 1, turn);\n                    (start, end, self.phase) = (kept.start, kept.end, waiting);\n                    break;\n                }\n                Phase::Waiting(_) | Phase::Streaming(_) => {\n                    if self.eof",
    ),
    fault(
        "forget what came behind a request that was answered later",
        LATE_ANSWERS,
        "        let _ = self.pass_over(unread, 0, turn);\n        self.serve_held(0, turn);",
        "        let _ = self.pass_over(unread, 0, turn);",
    ),
    fault(
        "forget the body behind a request that was answered later",
        LATE_ANSWERS,
        "        let _ = self.pass_over(unread, 0, turn);\n",
        "        let _ = unread;\n",
    ),
    fault(
        "wait for an answer for ever",
        MACHINE,
        "            Phase::Waiting(_) => Some(self.since.after(limits.answer_timeout)),",
        "            Phase::Waiting(_) => None,",
    ),
    fault(
        "keep a peer that left waiting for its answer",
        LOOP,
        "        if open.read_closed {\n            open.connection.handle_hangup(limits);\n        }\n        self.settle(index, ran);",
        "        self.settle(index, ran);",
    ),
    fault(
        "never say that parts were taken",
        LATE_ANSWERS,
        "        streaming.waiting.ticket.recount(counted, unsent);\n",
        "        let _ = counted;\n",
    ),
    fault(
        "lose what came behind a stream that a shutdown ends",
        LATE_ANSWERS,
        "        // Keep-alive even if shutdown began meanwhile",
        "        let facts = Facts { persistent: facts.persistent && !turn.workspace.closing, ..facts };\n        // Keep-alive even if shutdown began meanwhile",
    ),
    fault(
        "sleep though a letter came",
        LATER,
        "        if !self.posted.swap(true, Ordering::AcqRel) {\n            self.outside.wake();\n        }",
        "        self.posted.store(true, Ordering::Release);",
    ),
    fault(
        "answer nothing where the pool is full",
        LATER,
        "            job.refuse().send();\n",
        "            std::mem::forget(job);\n",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_place_in_the_sources() {
        for Fault { name, file, find, replace } in FAULTS {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
            let source = std::fs::read_to_string(path).expect("the sources are there");
            assert_eq!(source.matches(find).count(), 1, "{name}: the place for it in {file} has changed");
            assert_ne!(find, replace, "{name}");
        }
    }
}
