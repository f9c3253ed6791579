// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded trees, as compact texts under `tests/fixtures/machines`.
//!
//! `PATH: CONTENT` is a file of one line; `PATH:` with indented lines below it is a file of those
//! lines. `cpu[0-3,8]` in a path makes one file for each number, which stands as `{n}`, `{n+24}` or
//! `{n-24}` in the content. `#` comments.

use std::fs;
use std::path::Path;

use doorbell_machine::Asked;
use doorbell_machine::root::Root;
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;

/// The recorded trees.
pub(crate) const NAMES: [&str; 5] = ["two-socket-smt", "amd-ccx", "arm-clusters", "micro-vm", "container"];

/// A recorded machine, as it reads when nothing but its files can be asked.
pub(crate) fn machine(name: &str) -> Machine {
    let tree = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines").join(name);
    expand(&fs::read_to_string(fixture).unwrap(), tree.path());
    doorbell_machine::read(&Root::at(tree.path()), Clock::MONOTONIC, Asked::default())
}

fn expand(text: &str, tree: &Path) {
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(line) = lines.next() {
        let (path, content) = line.split_once(':').expect("a path and a colon");
        let mut content = content.trim().to_owned();
        // Blank lines belong to the file above them: /proc/cpuinfo has some.
        while let Some(more) = lines.next_if(|line| line.starts_with("  ") || line.is_empty()) {
            content += more.strip_prefix("  ").unwrap_or(more);
            content += "\n";
        }
        match path.split_once('[') {
            None => put(&tree.join(path), &content),
            Some((before, rest)) => {
                let (cpus, after) = rest.split_once(']').expect("a closing bracket");
                for cpu in cpus.parse::<CpuList>().unwrap().iter() {
                    put(&tree.join(format!("{before}{cpu}{after}")), &with_number(&content, cpu));
                }
            }
        }
    }
}

fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Replaces `{n}`, `{n+K}` and `{n-K}`.
fn with_number(content: &str, n: u32) -> String {
    let mut parts = content.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once('}').expect("a closing brace");
        let offset: i64 = expression.strip_prefix('n').map_or(0, |offset| offset.parse().unwrap_or(0));
        out += &format!("{}{rest}", i64::from(n) + offset);
    }
    out
}

#[test]
fn a_pattern_makes_one_file_per_cpu_with_its_number_inside() {
    let tree = tempfile::tempdir().unwrap();
    expand("# note\na/cpu[1-2]/list: {n},{n+4}\nb:\n  one\n\n  two\n", tree.path());
    let text = |path: &str| fs::read_to_string(tree.path().join(path)).unwrap();
    assert_eq!(text("a/cpu2/list"), "2,6");
    assert_eq!(text("b"), "one\n\ntwo\n");
}
