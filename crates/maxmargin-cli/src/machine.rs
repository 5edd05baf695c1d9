//! The memory of the machine.

use std::fs::read_to_string;

/// Bytes of memory available to this program, if the system reports it.
pub(crate) fn free_memory() -> Option<u64> {
    let table = read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024);
    // A container may have less memory than its machine.
    let number = |file: &str| read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let within = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    Some(within.map_or(free, |within| within.min(free)))
}
