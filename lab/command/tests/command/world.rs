// SPDX-License-Identifier: MIT OR Apache-2.0
//! A world in which only one stage's objects are: what is left in it was left by this stage.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// Namespaces of the calling thread, and of what it starts, for
/// everything that outlives processes and has a name.
pub(crate) struct World {
    queues: PathBuf,
}

impl World {
    /// Moves the calling thread into it, or says what is lacking: it takes CAP_SYS_ADMIN.
    pub(crate) fn enter(folder: &Path) -> Result<Self, String> {
        let failed = |call: &str| Err(format!("{call}: {}", std::io::Error::last_os_error()));
        // SAFETY: takes flags only. The mounts and the objects of
        // System V that this thread sees change, nothing else does.
        if unsafe { libc::unshare(libc::CLONE_NEWIPC | libc::CLONE_NEWNS) } != 0 {
            return failed("unshare");
        }
        let queues = folder.join("queues");
        fs::create_dir(&queues).map_err(|error| error.to_string())?;
        mount("none", Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE)?;
        mount("none", Path::new("/dev/shm"), "tmpfs", 0)?;
        mount("none", &queues, "mqueue", 0)?;
        Ok(Self { queues })
    }

    /// Every semaphore, queue and piece of shared memory that is there.
    pub(crate) fn objects(&self) -> Vec<String> {
        let named = |folder: &Path| {
            let entries = fs::read_dir(folder).unwrap().flatten();
            entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
        };
        let mut objects = [named(Path::new("/dev/shm")), named(&self.queues)].concat();
        for kind in ["sem", "msg", "shm"] {
            // The thread's own view; the first line names the columns (proc_sysvipc(5)).
            let text = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap();
            objects.extend(text.lines().skip(1).map(|line| format!("System V {kind} {}", line.trim())));
        }
        objects
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let path = CString::new(self.queues.to_str().unwrap()).unwrap();
        // A folder on which something is mounted cannot be removed.
        // SAFETY: a string that lives through the call, and a flag.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

fn mount(source: &str, target: &Path, kind: &str, flags: libc::c_ulong) -> Result<(), String> {
    let text = |text: &str| CString::new(text).unwrap();
    let (source, kind, path) = (text(source), text(kind), text(target.to_str().unwrap()));
    // SAFETY: three strings that live through the call, flags, and no data.
    let done =
        unsafe { libc::mount(source.as_ptr(), path.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) } == 0;
    done.then_some(())
        .ok_or_else(|| format!("mount on {}: {}", target.display(), std::io::Error::last_os_error()))
}
