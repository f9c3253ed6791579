// SPDX-License-Identifier: MIT OR Apache-2.0
//! The atomics every other module uses: the processor's, or the model checker's under `--cfg loom`.

#[cfg(loom)]
mod loom;
#[cfg(not(loom))]
mod std;

#[cfg(loom)]
pub use self::loom::*;
#[cfg(not(loom))]
pub use self::std::*;
