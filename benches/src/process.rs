//! What a process and its children cost, read from `/proc`. Linux only; elsewhere everything reads as zero.

use std::fs;

use serde::{Deserialize, Serialize};

/// What a tree of processes has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Seconds in user space.
    pub user: f64,
    /// Seconds in the kernel.
    pub system: f64,
    /// Both, in nanoseconds from the scheduler: finer than the two above, which come in ticks of 10 ms.
    pub scheduled: f64,
    /// Resident bytes now.
    pub resident: u64,
    /// The most resident bytes since the start or the last [`forget_peak`], summed over the processes.
    pub peak: u64,
}

/// What was used between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Seconds in user space.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
    /// Resident bytes at the end.
    pub resident_bytes: u64,
    /// The most resident bytes within.
    pub peak_bytes: u64,
}

impl Spent {
    /// Seconds in all.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// This process and all that it started and that they started.
pub fn tree(pid: u32) -> Vec<u32> {
    let (mut found, mut todo) = (Vec::new(), vec![pid]);
    while let Some(pid) = todo.pop() {
        found.push(pid);
        for task in tasks(pid) {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).unwrap_or_default();
            todo.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found
}

fn tasks(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Adds up what these processes have used.
pub fn usage(pids: &[u32]) -> Usage {
    let mut sum = Usage::default();
    for &pid in pids {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (user, system) = cpu_ticks(&stat);
        sum.user += user as f64 / TICKS_PER_SECOND;
        sum.system += system as f64 / TICKS_PER_SECOND;
        for task in tasks(pid) {
            let line = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat")).unwrap_or_default();
            let nanoseconds: u64 = line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
            sum.scheduled += nanoseconds as f64 / 1e9;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        sum.resident += kilobytes(&status, "VmRSS:") * 1024;
        sum.peak += kilobytes(&status, "VmHWM:") * 1024;
    }
    sum
}

/// What was used from `before` to `after`.
///
/// The sum comes from the scheduler and only its split from the ticks, unless threads have ended in between and taken
/// their part of the scheduler's sum with them.
pub fn spent(before: &Usage, after: &Usage) -> Spent {
    let (user, system) = ((after.user - before.user).max(0.0), (after.system - before.system).max(0.0));
    let (ticked, scheduled) = (user + system, after.scheduled - before.scheduled);
    let (user_s, system_s) = if scheduled < ticked * 0.9 - 0.02 {
        (user, system)
    } else if ticked > 0.0 {
        (user * scheduled / ticked, system * scheduled / ticked)
    } else {
        (0.0, scheduled)
    };
    Spent {
        user_s: crate::load::rounded(user_s, 6),
        system_s: crate::load::rounded(system_s, 6),
        resident_bytes: after.resident,
        peak_bytes: after.peak,
    }
}

/// Makes the peak begin again at what is resident now. Works for processes of the same user.
pub fn forget_peak(pids: &[u32]) {
    for pid in pids {
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// Raises the limit of open descriptors as far as it goes, for this process and all that it starts. Returns it.
pub fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Time of all processors since the start of the machine: all of it, and what the hypervisor took away, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    total: u64,
    steal: u64,
}

impl Machine {
    /// Reads `/proc/stat`.
    pub fn now() -> Machine {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks: Vec<u64> =
            stat.lines().next().unwrap_or_default().split_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
        Machine { total: ticks.iter().take(8).sum(), steal: ticks.get(7).copied().unwrap_or(0) }
    }

    /// The part of the time since `before` that the hypervisor took away, in percent.
    pub fn steal_percent_since(&self, before: &Machine) -> f64 {
        let total = self.total.saturating_sub(before.total);
        if total == 0 { 0.0 } else { 100.0 * self.steal.saturating_sub(before.steal) as f64 / total as f64 }
    }
}

/// The kernel's USER_HZ, a constant of its interface on every platform that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// utime and stime: the 14th and 15th field; the second is a name in parentheses that may hold anything.
fn cpu_ticks(stat: &str) -> (u64, u64) {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_whitespace().skip(11).map(|field| field.parse().unwrap_or(0));
    (fields.next().unwrap_or(0), fields.next().unwrap_or(0))
}

fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_parenthesis_does_not_shift_the_fields() {
        assert_eq!(cpu_ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 111 222 0 0"), (111, 222));
        assert_eq!(cpu_ticks(""), (0, 0));
    }

    #[test]
    fn the_finer_sum_is_split_as_the_ticks_are() {
        let before = Usage::default();
        let after = Usage { user: 0.30, system: 0.10, scheduled: 0.44, ..before };
        let spent = spent(&before, &after);
        assert!((spent.user_s - 0.33).abs() < 1e-9 && (spent.system_s - 0.11).abs() < 1e-9);
    }

    #[test]
    fn this_process_uses_memory() {
        let pids = tree(std::process::id());
        assert!(pids.contains(&std::process::id()));
        if cfg!(target_os = "linux") {
            assert!(usage(&pids).resident > 100_000);
        }
    }
}
