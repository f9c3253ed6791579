// SPDX-License-Identifier: MIT OR Apache-2.0
//! Of Linux nothing: `doorbell` measures its means. What is left lets
//! the tests of this program run where it is developed.

use super::Kind;

/// None.
pub(super) const ALL: &[Kind] = &[];
