// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a link is opened: the shared memory, the kind of sides and
//! the run's folder that a mechanism may use.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;

use crate::arena::Arena;
use crate::run_dir::Note;
use crate::run_dir::RunDir;
use doorbell_results::record::subject::Contexts;

/// Why a link could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("{call} failed: {cause}{}", .cure.map(|cure| format!("; {cure}")).unwrap_or_default())]
    Call { call: &'static str, cause: String, cure: Option<&'static str> },
    #[error("the trial's shared memory is used up after {taken} of {size} bytes")]
    ArenaFull {
        /// Bytes handed out so far.
        taken: usize,
        size: usize,
    },
    #[error("this link has its notifier already, and there can be no other")]
    HasNotifier,
}

impl OpenError {
    pub fn call(call: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::Call { call, cause: cause.to_string(), cure: None }
    }
    pub fn of<E: std::fmt::Display>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::call(call, cause)
    }
    pub fn with_cure(call: &'static str, cause: impl std::fmt::Display, cure: &'static str) -> Self {
        Self::Call { call, cause: cause.to_string(), cure: Some(cure) }
    }
}

/// A shared 32-bit word, alone on a pair of cache lines.
///
/// 128 bytes because Intel's and AMD's adjacent-line prefetchers fetch lines in pairs: two words on
/// neighbouring lines would still disturb each other.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Word(pub AtomicU32);

impl std::ops::Deref for Word {
    type Target = AtomicU32;
    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}

fn random<const N: usize>() -> Result<[u8; N], OpenError> {
    let mut bytes = [0; N];
    // So few bytes come whole once the system has booted (getrandom(2)).
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(OpenError::of("getrandom"))?;
    Ok(bytes)
}

/// Where a link is opened.
///
/// Sides of a trial trust each other: both are this program. Shared
/// words may therefore be plain references.
#[derive(Debug)]
pub struct Site<'trial> {
    contexts: Contexts,
    arena: &'static Arena,
    run_dir: &'trial RunDir,
    link: Cell<u32>,
}

impl<'trial> Site<'trial> {
    pub fn new(contexts: Contexts, arena: &'static Arena, run_dir: &'trial RunDir) -> Self {
        Self { contexts, arena, run_dir, link: Cell::new(0) }
    }
    pub fn contexts(&self) -> Contexts {
        self.contexts
    }
    /// A fresh shared word, zero, alone on its cache lines; it lives as long as the trial.
    pub fn word(&self) -> Result<&'static Word, OpenError> {
        self.arena.place::<Word>()
    }
    /// A fresh, zeroed, suitably aligned object in memory both sides share.
    ///
    /// `T` must be valid when all its bytes are zero, which [`crate::arena::Zeroed`] asserts.
    pub fn place<T: crate::arena::Zeroed>(&self) -> Result<&'static T, OpenError> {
        self.arena.place::<T>()
    }
    /// A number that no other link of this run has; for names and keys.
    pub fn fresh(&self) -> u32 {
        let link = self.link.get();
        self.link.set(link + 1);
        self.run_dir.fresh(link)
    }
    /// A folder of this run, removed when the run is over; for FIFOs and socket files.
    pub fn folder(&self) -> &Path {
        self.run_dir.path()
    }
    /// A path in that folder which no other link uses.
    pub fn path(&self, stem: &str) -> PathBuf {
        self.folder().join(format!("{stem}-{}", self.fresh()))
    }
    /// A name without slash for an object in a namespace of the whole system; no other run has it.
    ///
    /// Random and not made from process numbers: those are the same
    /// in two containers that share the namespace.
    pub fn name(&self) -> Result<String, OpenError> {
        Ok(format!("doorbell-{:016x}", u64::from_ne_bytes(random()?)))
    }
    /// A key for an object of System V, never `IPC_PRIVATE` (0).
    ///
    /// With 31 random bits the chance to meet one of a thousand objects is one in two million;
    /// whoever makes an object refuses one that exists.
    pub fn key(&self) -> Result<i32, OpenError> {
        Ok(i32::from_ne_bytes(random()?).wrapping_abs().max(1))
    }
    /// Writes down, before it is made, an object that outlives its processes (a named semaphore, a
    /// System V set, a message queue), so that the end of the trial, or the next run if this
    /// one is killed, removes it.
    pub fn leave_note(&self, note: Note) -> Result<(), OpenError> {
        self.run_dir.leave_note(note).map_err(OpenError::of("write"))
    }
}
