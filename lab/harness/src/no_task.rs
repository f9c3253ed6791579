// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why no further process or thread can be started: whose limit is reached, and how it is raised.

use std::io;

use doorbell_machine::root::Root;
use doorbell_machine::{cgroup, limits};

/// `error`, met where a process or thread was to be started, with the
/// limit that it comes from where one is known.
pub(crate) fn explained(error: &io::Error) -> io::Error {
    // fork(2), pthread_create(3): a limit of tasks is EAGAIN, whoever set it.
    if error.kind() != io::ErrorKind::WouldBlock {
        return io::Error::new(error.kind(), error.to_string());
    }
    let root = Root::live();
    let user = limits::read(&root, None).tasks.map(|limit| limit.soft);
    io::Error::new(error.kind(), told(cgroup::read(&root).pids, user))
}

/// The tighter of two limits of tasks, that of the control group and that of the user.
fn told(group: Option<u64>, user: Option<u64>) -> String {
    match (group, user) {
        (Some(group), user) if user.is_none_or(|user| group <= user) => format!(
            "its control group may have {group} tasks (pids.max): raise that, by systemd's \
             TasksMax= or `docker run --pids-limit 4096`"
        ),
        (_, Some(user)) => {
            format!("its user may have {user} tasks: raise that by `ulimit -u 4096`, or end other processes")
        }
        _ => "no further task is allowed, of its user, its control group or the whole system: \
            raise `ulimit -u`, pids.max or kernel.threads-max"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_limit_is_named_with_its_cure() {
        assert!(told(Some(2), Some(94_000)).contains("2 tasks (pids.max)"));
        assert!(told(Some(2), None).contains("pids.max"));
        assert!(told(Some(4096), Some(7)).contains("7 tasks: raise that by `ulimit -u"));
        assert!(told(None, Some(7)).contains("ulimit -u"));
        assert!(told(None, None).contains("kernel.threads-max"));
    }
}
