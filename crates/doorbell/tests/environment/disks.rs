// SPDX-License-Identifier: MIT OR Apache-2.0
//! Full disks, and those without huge pages or reservations.

use super::*;

/// Mounts a file system of its own at `path`, which only this process sees.
fn mount(path: &Path, kind: &str, options: &str) {
    let [path, kind, options] =
        [path.to_str().unwrap(), kind, options].map(|text| std::ffi::CString::new(text).unwrap());
    // SAFETY: strings that end with a zero byte.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let null = std::ptr::null();
        of_libc(libc::mount(null, c"/".as_ptr(), null, private, null.cast())).unwrap();
        let options = options.as_ptr().cast();
        of_libc(libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, options)).unwrap();
    }
}

fn entries(path: &Path) -> usize {
    fs::read_dir(path).unwrap().count()
}

fn offer(payload: u64) -> Offer {
    Offer { eventfds: 0, payload, ..Offer::default() }
}

pub(crate) fn fill_the_disk(path: &Path) {
    mount(path, "tmpfs", "size=64k");
    let full = |result: Result<named::Owner, RendezvousError>| {
        let told = result.map(drop).unwrap_err();
        assert_eq!(told, RendezvousError::Os { call: "fallocate", errno: Errno::NOSPC });
    };
    // More than fits, though the first page would.
    // SAFETY: a process or thread of this program, which follows the protocol.
    full(unsafe { named::Owner::new(path.join("name"), &offer(1 << 20)) });
    assert_eq!(entries(path), 0, "nothing is left of it");
    let mut rest = fs::File::create(path.join("rest")).unwrap();
    while rest.write_all(&[1; 4096]).is_ok() {}
    // SAFETY: a process or thread of this program, which follows the protocol.
    full(unsafe { named::Owner::new(path.join("name"), &offer(0)) });
    assert_eq!(entries(path), 1, "nothing is left of it");
    drop(rest);
    fs::remove_file(path.join("rest")).unwrap();
    // SAFETY: a process or thread of this program, which follows the protocol.
    let owner = unsafe { named::Owner::new(path.join("name"), &offer(32 << 10)) }.unwrap();
    // Every page of it is there, though the rest of the disk is full again.
    let mut rest = fs::File::create(path.join("rest")).unwrap();
    while rest.write_all(&[1; 4096]).is_ok() {}
    owner.segment().payload().write(0, &[1; 32 << 10]).unwrap();
    // SAFETY: a process or thread of this program, which follows the protocol.
    let joined = unsafe { named::join(path.join("name")) }.unwrap();
    joined.segment().bell_waiting_by::<Futex>(0).unwrap().ring();
}

pub(crate) fn use_a_disk_without_reservations(path: &Path) {
    mount(path, "ramfs", "");
    // SAFETY: a process or thread of this program, which follows the protocol.
    let owner = unsafe { named::Owner::new(path.join("name"), &offer(100_000)) }.unwrap();
    // SAFETY: a process or thread of this program, which follows the protocol.
    let joined = unsafe { named::join(path.join("name")) }.unwrap();
    let mut bell: Bell<Futex> = owner.segment().bell_waiting_by(0).unwrap();
    joined.segment().bell_waiting_by::<Futex>(0).unwrap().ring();
    assert_eq!(bell.try_wait().map(u32::from), Some(1));
    let file = fs::metadata(path.join("name")).unwrap();
    let room = 512 * std::os::unix::fs::MetadataExt::blocks(&file);
    assert!(room >= file.len(), "{room} of {} bytes have their room", file.len());
}

pub(crate) fn refuse_huge_pages(path: &Path) {
    mount(path, "hugetlbfs", "");
    // SAFETY: a process or thread of this program, which follows the protocol.
    let refused = unsafe { named::Owner::new(path.join("name"), &offer(0)) }.unwrap_err();
    assert_eq!(refused, RendezvousError::Os { call: "fallocate(hugetlbfs)", errno: Errno::OPNOTSUPP });
    assert_eq!(entries(path), 0, "nothing is left of it");
}

/// Runs `role` with a directory of its own in a mount namespace of its own.
fn on_a_disk_of_its_own(role: &str) {
    let path = scratch(role);
    fs::create_dir(&path).unwrap();
    let mut command = me_as(format!("{role} {}", path.display()));
    unshare(&mut command, libc::CLONE_NEWNS);
    if let Some(mut other) = start_if_allowed(&mut command) {
        let status = end_of(&mut other.0);
        assert!(status.success(), "it says above why: {status}");
    }
    fs::remove_dir(&path).unwrap();
}

/// The first touch of a page for which the disk had no room was a SIGBUS.
#[test]
fn a_name_on_a_full_disk_is_refused_and_one_that_was_had_has_all_its_room() {
    on_a_disk_of_its_own("fill-the-disk");
}

/// Such a file took any size, and its mapping could not be unmapped.
#[test]
fn a_name_in_huge_pages_is_refused() {
    if rustix::process::getuid().is_root() {
        on_a_disk_of_its_own("refuse-huge-pages");
    } else {
        doorbell_skipped::skip("only root mounts hugetlbfs");
    }
}

#[test]
fn a_name_can_be_had_where_the_disk_knows_no_reservations() {
    on_a_disk_of_its_own("use-a-disk-without-reservations");
}
