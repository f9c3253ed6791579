// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a service of a name listens, and where its clients look for it.
//!
//! A name is a socket in a folder of this user's alone. Which folder that can be depends on who is
//! logged in: `/run/user/UID` comes with a user's first login and goes with the last, so that what
//! cron started listens elsewhere; and `/tmp/doorbell-UID` may be made by another user first. A
//! service takes the first folder that is its user's; clients look in all that are. So they meet,
//! whoever was started how, and a stranger's folder keeps nobody from anybody. (A name in the
//! abstract namespace of sockets would be no better: whoever comes first has it.)

use crate::environment::{home, variable};
use crate::errno::errno;
use crate::folder::{Folder, FolderState};
use crate::rendezvous::{LONGEST_PATH, RendezvousError, is_served};
use crate::user;
use std::fs::{metadata, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The one folder in which this user's services listen and are looked for,
/// if it is to be another than those that [`folders`] has. For tests, and
/// for services that several users share: whose it is is not looked at.
pub const VARIABLE: &str = "DOORBELL_RUNTIME_DIR";

/// What a service's socket is called after its name.
const SUFFIX: &str = ".sock";

/// Where services of a user may listen, the first choice first.
#[derive(Debug)]
struct Places {
    /// By [`VARIABLE`]: then nowhere else.
    named: Option<PathBuf>,
    /// Made by the login.
    runtime: PathBuf,
    /// Where anybody can make anything, until the machine starts anew.
    shared: PathBuf,
    /// Where nobody else can, and a name for this machine until it starts anew: homes may be on a
    /// disk that several machines share, on each of which the others' sockets look as if nobody
    /// listened. The last choice.
    home: Option<(PathBuf, String)>,
}

impl Places {
    fn of_this_user() -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self {
            named: variable(VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from),
            runtime: PathBuf::from(format!("/run/user/{user}")),
            shared: PathBuf::from(format!("/tmp/doorbell-{user}")),
            home: home().zip(this_machine()),
        }
    }

    /// The home, and the folder in it.
    fn in_home(&self) -> Option<(&Path, PathBuf)> {
        let (home, machine) = self.home.as_ref()?;
        Some((home, home.join(".local/state/doorbell/services").join(machine)))
    }

    /// Where clients look, if what is there is this user's.
    fn folders(&self) -> Vec<Folder> {
        if let Some(named) = &self.named {
            return vec![Folder { path: named.clone(), state: FolderState::Named }];
        }
        let home = self.in_home().map(|(_, folder)| folder);
        let places = [self.runtime.join("doorbell"), self.shared.clone()].into_iter().chain(home);
        places.map(Folder::look).collect()
    }

    /// Paths at which a service of the file name `file` may listen.
    fn paths(&self, file: &Path) -> Result<Vec<PathBuf>, RendezvousError> {
        let (ours, others): (Vec<_>, Vec<_>) = self.folders().into_iter().partition(Folder::is_used);
        if ours.is_empty() && others.iter().any(|folder| folder.state != FolderState::Nothing) {
            return Err(RendezvousError::NoFolder { looked: others });
        }
        let mut paths: Vec<_> = ours.into_iter().map(|folder| folder.path.join(file)).collect();
        // Nobody listens at what is too long to be an address. If all are, whoever uses one says so.
        let fits = |path: &PathBuf| path.as_os_str().len() <= LONGEST_PATH;
        if paths.iter().any(fits) {
            paths.retain(fits);
        }
        Ok(paths)
    }

    /// The folder for a service that begins, made if need be.
    fn choose(&self) -> Result<PathBuf, RendezvousError> {
        if let Some(named) = &self.named {
            return Ok(named.clone());
        }
        let mut looked = Vec::new();
        for place in [self.runtime.join("doorbell"), self.shared.clone()] {
            let folder = Folder::make(place);
            if folder.is_used() {
                return Ok(folder.path);
            }
            looked.push(folder);
        }
        if let Some((home, path)) = self.in_home() {
            // Folders are made in this user's own home only: another's may have been left in the environment.
            // A home may be reached by a link that is not its user's.
            let own = metadata(home).is_ok_and(|home| user::is_ours(home.uid()));
            let mut above = home.to_owned();
            // The command `doorbell` has other things in the third, which others may enter.
            for part in [".local", "state", "doorbell", "services"].into_iter().filter(|_| own) {
                above.push(part);
                Folder::make(above.clone());
            }
            let folder = if own { Folder::make(path) } else { Folder::look(path) };
            if folder.is_used() {
                return Ok(folder.path);
            }
            looked.push(folder);
        }
        Err(RendezvousError::NoFolder { looked })
    }
}

/// What names this machine until it starts anew.
fn this_machine() -> Option<String> {
    let id = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.get(..8)?.to_owned())
}

/// The file that is the socket of `name`, unless that is a path
/// already, as it is if it has a slash.
///
/// # Errors
/// [`RendezvousError::BadName`]: what shells, lists and folders take for something else is none.
fn file(name: &Path) -> Result<Option<PathBuf>, RendezvousError> {
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Ok(None);
    }
    let unfit = |letter: char| letter.is_whitespace() || letter.is_control();
    match name.to_str() {
        Some(text) if !matches!(text, "" | "." | "..") && !text.contains(unfit) => {
            Ok(Some(format!("{text}{SUFFIX}").into()))
        }
        _ => Err(RendezvousError::BadName { name: name.to_owned() }),
    }
}

/// Where a service `name` may listen: where its clients look for it, in this order.
pub(crate) fn paths(name: &Path) -> Result<Vec<PathBuf>, RendezvousError> {
    file(name)?.map_or_else(|| Ok(vec![name.to_owned()]), |file| Places::of_this_user().paths(&file))
}

/// The path for a service `name` that begins.
///
/// # Errors
/// [`RendezvousError::NoFolder`]; [`RendezvousError::Owned`] if one
/// serves the name in another folder.
pub(super) fn path_to_listen_at(name: &Path) -> Result<PathBuf, RendezvousError> {
    let Some(file) = file(name)? else { return Ok(name.to_owned()) };
    let path = Places::of_this_user().choose()?.join(file);
    check_alone(name, &path)?;
    Ok(path)
}

/// Does anybody serve `name` elsewhere than at `path`?
///
/// # Errors
/// [`RendezvousError::Owned`] if so.
pub(super) fn check_alone(name: &Path, path: &Path) -> Result<(), RendezvousError> {
    for other in paths(name)?.into_iter().filter(|other| other != path) {
        if is_served(&other)? {
            return Err(RendezvousError::Owned { path: other });
        }
    }
    Ok(())
}

/// As [`check_alone`] once `path` is served: of two that began at once in two folders, each of
/// which finds the other, the one whose folder is looked at first goes on.
pub(super) fn check_first(name: &Path, path: &Path) -> Result<(), RendezvousError> {
    for other in paths(name)?.into_iter().take_while(|other| other != path) {
        if is_served(&other)? {
            return Err(RendezvousError::Owned { path: other });
        }
    }
    Ok(())
}

/// The folders in which services of this user listen and are looked for, in this order, and what is
/// there: `/run/user/UID/doorbell`, `/tmp/doorbell-UID`, `~/.local/state/doorbell/services/BOOT`;
/// or the one that [`VARIABLE`] names.
pub fn folders() -> Vec<Folder> {
    Places::of_this_user().folders()
}

/// The names of this user's services, those of dead ones among them.
///
/// # Errors
/// [`RendezvousError::Os`] if a folder cannot be read.
pub fn names() -> Result<Vec<String>, RendezvousError> {
    let mut names: Vec<_> = sockets()?.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The names of this user's services, and their paths.
pub(super) fn sockets() -> Result<Vec<(String, PathBuf)>, RendezvousError> {
    let failed = |error| RendezvousError::Os { call: "readdir", errno: errno(&error) };
    let mut sockets = Vec::new();
    for folder in folders().into_iter().filter(Folder::is_used) {
        for entry in std::fs::read_dir(folder.path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|file| file.to_str()?.strip_suffix(SUFFIX));
            sockets.extend(name.map(str::to_owned).map(|name| (name, path.clone())));
        }
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::{Places, file};
    use crate::folder::FolderState;
    use crate::rendezvous::RendezvousError;
    use std::fs::{Permissions, create_dir, create_dir_all, remove_dir_all, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    /// Places of a user in a folder of the test, with a home, and not logged in.
    fn places(test: &str) -> (Places, PathBuf) {
        let scratch = std::env::temp_dir().join(format!("doorbell-names-{test}-{}", std::process::id()));
        let home = scratch.join("home");
        create_dir_all(&home).unwrap();
        let (runtime, shared) = (scratch.join("run"), scratch.join("tmp"));
        let machine = "0a1b2c3d".to_owned();
        (Places { named: None, runtime, shared, home: Some((home, machine)) }, scratch)
    }

    #[test]
    fn a_name_with_a_slash_is_a_path_and_any_other_a_socket_in_a_folder() {
        assert_eq!(file(Path::new("/tmp/clock")), Ok(None));
        assert_eq!(file(Path::new("./clock")), Ok(None));
        assert_eq!(file(Path::new("clock")), Ok(Some(PathBuf::from("clock.sock"))));
    }

    /// They were services: `.sock`, `..sock`, and one that a list shows as two.
    #[test]
    fn what_a_list_or_a_shell_takes_for_something_else_is_no_name() {
        for name in ["", ".", "..", "two words", "two\nlines", "tab\t", "bell\u{7}", "wide\u{2003}space"] {
            let name = PathBuf::from(name);
            assert_eq!(file(&name), Err(RendezvousError::BadName { name: name.clone() }));
            assert_eq!(crate::listen(&name).map(drop), Err(RendezvousError::BadName { name: name.clone() }));
            assert_eq!(crate::connect(&name).map(drop), Err(RendezvousError::BadName { name }));
        }
        let path = PathBuf::from("/tmp/two\nlines");
        assert_eq!(crate::listen(&path).map(drop), Err(RendezvousError::BadName { name: path }));
    }

    /// "File name too long" named neither.
    #[test]
    fn a_path_that_no_socket_can_have_is_told_with_its_length_and_the_longest() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(200)));
        for told in [crate::listen(&path).map(drop), crate::connect(&path).map(drop)] {
            let told = told.unwrap_err().to_string();
            assert!(["/tmp/xxx", "205", "107"].iter().all(|part| told.contains(part)), "{told}");
        }
    }

    /// Who was started without a login was looked for where nobody was.
    #[test]
    fn who_began_before_a_login_is_found_after_it() {
        let (places, scratch) = places("login");
        assert_eq!(places.choose().unwrap(), places.shared);
        create_dir(&places.runtime).unwrap();
        let file = Path::new("clock.sock");
        assert_eq!(places.paths(file).unwrap(), [places.shared.join(file)]);
        assert_eq!(places.choose().unwrap(), places.runtime.join("doorbell"));
        // In both from now on, and the new one first.
        let both = [places.runtime.join("doorbell").join(file), places.shared.join(file)];
        assert_eq!(places.paths(file).unwrap(), both);
        remove_dir_all(scratch).unwrap();
    }

    /// Every name was refused from then on.
    #[test]
    fn a_folder_that_is_not_ours_alone_is_passed_by_for_one_in_our_home_which_clients_find() {
        let (places, scratch) = places("taken");
        create_dir(&places.shared).unwrap();
        set_permissions(&places.shared, Permissions::from_mode(0o777)).unwrap();
        // The lab's own, which others may enter.
        let labs = scratch.join("home/.local/state/doorbell");
        create_dir_all(&labs).unwrap();
        set_permissions(&labs, Permissions::from_mode(0o755)).unwrap();
        let chosen = places.choose().unwrap();
        assert_eq!(chosen, labs.join("services/0a1b2c3d"));
        let file = Path::new("clock.sock");
        assert_eq!(places.paths(file).unwrap(), [chosen.join(file)]);
        // Another machine on which the home is too has a folder of its own.
        let (home, _) = places.home.clone().unwrap();
        let elsewhere = Places { home: Some((home, "4e5f6a7b".to_owned())), ..places };
        assert!(matches!(elsewhere.paths(file), Err(RendezvousError::NoFolder { .. })));
        assert_ne!(elsewhere.choose().unwrap(), chosen);
        let places = elsewhere;
        // Without a home it is said whose fault it is.
        let homeless = Places { home: None, ..places };
        let told = homeless.choose().unwrap_err();
        let RendezvousError::NoFolder { looked } = &told else { panic!("{told:?}") };
        assert_eq!(looked[1].state, FolderState::Open { mode: 0o777 });
        assert!(told.to_string().contains("chmod 700"), "{told}");
        assert!(matches!(homeless.paths(file), Err(RendezvousError::NoFolder { .. })));
        remove_dir_all(scratch).unwrap();
    }
}
