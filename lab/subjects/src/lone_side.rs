// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trials that one side does alone: operations, tasks, transfers, kernels of a GPU.

use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};

/// Has the side that notifies first do `drive`, once both are there; the other leaves at once.
pub(crate) fn drive_alone(
    role: Role,
    side: &mut Side,
    drive: impl FnOnce(&mut Side) -> Result<(), SideError>,
) -> Result<(), SideError> {
    side.step(Step::Meets, 0);
    side.control.meet(2, 1);
    if role.index() == 0 {
        drive(side)?;
    }
    side.step(Step::Finished, side.tally.seen);
    Ok(())
}
