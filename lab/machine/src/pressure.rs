// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much the machine's tasks had to wait: pressure stall information and the load average.

use super::root::Root;

/// Time in which some runnable task waited for a CPU, nanoseconds since boot (kernel
/// Documentation/accounting/psi.rst); `None` where the kernel does not keep it.
pub fn cpu_some_ns(root: &Root) -> Option<u64> {
    parse_some_ns(&root.text("proc/pressure/cpu")?)
}

fn parse_some_ns(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?;
    Some(total.parse::<u64>().ok()?.saturating_mul(1000))
}

/// Tasks that ran or wanted to, averaged over the last minute.
pub fn load_average(root: &Root) -> Option<f64> {
    let text = root.text("proc/loadavg")?;
    text.split_ascii_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_total_of_the_some_line_in_nanoseconds() {
        let text = "some avg10=40.24 avg60=12.45 avg300=25.10 total=317475267\nfull avg10=0.00 total=5\n";
        assert_eq!(parse_some_ns(text), Some(317_475_267_000));
        assert_eq!(parse_some_ns("some avg10=0"), None);
        assert_eq!(parse_some_ns("some total=-3"), None);
    }
}
