// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab behind the command `doorbell`.
