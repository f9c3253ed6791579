// SPDX-License-Identifier: MIT OR Apache-2.0
//! Views: from records and verdicts to text and pictures. Nothing here measures.
