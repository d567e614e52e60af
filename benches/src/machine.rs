//! The head of a report: what the figures were measured on. No figure means anything without it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The machine, its kernel and the tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// When the run began, UTC.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The commit that was measured, and whether the tree differed from it.
    pub commit: String,
    /// Processor.
    pub cpu: String,
    /// Processors that may be used.
    pub cpus: Vec<usize>,
    /// The processor of the servers, and of the client.
    pub pinned: Option<(usize, usize)>,
    /// How many times slower one processor computes while the other is busy: 1.0 where they share nothing.
    pub neighbour_slowdown: Option<f64>,
    /// Memory of the machine, MiB.
    pub memory_mib: u64,
    /// Kernel release.
    pub kernel: String,
    /// What the processor's faults cost here: the kernel's own list.
    pub mitigations: BTreeMap<String, String>,
    /// Where the time comes from.
    pub clocksource: String,
    /// How the frequency is chosen, where the kernel has a say in it.
    pub governor: String,
    /// The Rust compiler.
    pub rustc: String,
    /// Load of the machine before the run: one that is busy measures badly.
    pub load_average: f64,
    /// Settings that the figures depend on.
    pub settings: BTreeMap<String, String>,
}

impl Head {
    /// Looks around.
    pub fn now(command: String) -> Head {
        let cpuinfo = read("/proc/cpuinfo");
        let cpu = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
        let meminfo = read("/proc/meminfo");
        let memory = meminfo.lines().next().and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        let commit = said("git", &["rev-parse", "--short=12", "HEAD"]);
        let changed = !said("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty();
        Head {
            date: utc(SystemTime::now()),
            command,
            commit: if changed { format!("{commit} with changes") } else { commit },
            cpu: cpu.unwrap_or("unknown").into(),
            cpus: allowed_cpus(),
            pinned: None,
            neighbour_slowdown: None,
            memory_mib: memory.unwrap_or(0) / 1024,
            kernel: read("/proc/sys/kernel/osrelease"),
            mitigations: mitigations(),
            clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            rustc: said("rustc", &["--version"]),
            load_average: read("/proc/loadavg").split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
            settings: SETTINGS.iter().map(|name| ((*name).to_owned(), read(&format!("/proc/sys/{name}")))).collect(),
        }
    }
}

const SETTINGS: [&str; 5] = [
    "net/core/somaxconn",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_congestion_control",
    "kernel/sched_autogroup_enabled",
];

fn mitigations() -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else { return BTreeMap::new() };
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.flatten().map(|entry| (name(&entry), read(&entry.path().display().to_string()))).collect()
}

/// The processors that this process may run on.
pub fn allowed_cpus() -> Vec<usize> {
    let status = read("/proc/self/status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    parse_cpu_list(list.trim())
}

fn parse_cpu_list(list: &str) -> Vec<usize> {
    let ends = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
    });
    ends.flat_map(|(first, last)| first..=last).collect()
}

/// Times a computation alone and beside a busy neighbour. A hypervisor may show two threads of one core as two
/// processors: then the client's work slows the server down, and this tells by how much.
pub fn neighbour_slowdown() -> f64 {
    let alone = (0..5).map(|_| time_of_computation()).min().unwrap_or_default();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::black_box(time_of_computation());
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        let times = (0..5).map(|_| time_of_computation()).min().unwrap_or_default();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        times
    });
    beside.as_secs_f64() / alone.as_secs_f64().max(1e-9)
}

fn time_of_computation() -> Duration {
    let started = Instant::now();
    let mut x = std::hint::black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..20_000_000 {
        x = x.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ (x >> 29);
    }
    std::hint::black_box(x);
    started.elapsed()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().replace('\t', " ")
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(crate::peers::root()).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// `2026-01-31 12:00`.
pub fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60)
}

/// The Gregorian date so many days after 1970-01-01, counted in eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, date) in
            [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (19_782, (2024, 2, 29)), (20_454, (2026, 1, 1))]
        {
            assert_eq!(civil(days), date);
        }
    }

    #[test]
    fn a_list_of_processors_is_spelt_out() {
        assert_eq!(parse_cpu_list("0-2,5"), [0, 1, 2, 5]);
        assert!(!allowed_cpus().is_empty());
    }
}
