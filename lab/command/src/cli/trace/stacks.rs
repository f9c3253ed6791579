// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace --stacks`.

use std::num::NonZero;

use doorbell_harness::trace::program::Recorder;
use doorbell_results::anatomy::program::Engine;
use doorbell_results::quantity::refused;

use super::Failure;
use crate::cli::usage::Usage;

/// `1/64`, as the number of which one is taken.
pub fn one_in(text: &str) -> Result<NonZero<u32>, String> {
    let number = text.strip_prefix("1/").and_then(|number| number.parse().ok());
    number.ok_or_else(|| refused(format_args!("'{text}' is no share of the wake-ups"), &["1/64", "1/1"]))
}

/// A recorder that takes stacks too.
pub(super) fn recorder(
    one_in: NonZero<u32>,
    engine: Option<Engine>,
    children: bool,
) -> Result<Recorder, Failure> {
    if !matches!(engine, None | Some(Engine::Bpf)) {
        let message = "stacks are recorded by bpf alone: leave --engine out";
        return Err(Failure::Asked(Usage(message.to_owned()).into()));
    }
    named(one_in, children)
}

#[cfg(not(feature = "stacks"))]
fn named(_: NonZero<u32>, _: bool) -> Result<Recorder, Failure> {
    let why = crate::cli::not_built::not_built("doorbell trace --stacks");
    Err(Failure::Asked(anyhow::Error::msg(why)))
}

#[cfg(feature = "stacks")]
fn named(one_in: NonZero<u32>, children: bool) -> Result<Recorder, Failure> {
    use doorbell_harness::trace::bpf::record::Stack;
    use doorbell_harness::trace::program::stacks::{Place, Unwind};
    use doorbell_stacks::{Kernel, Registers, Spaces};

    use crate::cli::out::aside;

    #[derive(Debug)]
    struct Names {
        spaces: Spaces,
        kernel: Kernel,
    }

    impl Unwind for Names {
        fn user(&mut self, stack: &Stack) -> Vec<Place> {
            if stack.bytes.is_empty() {
                return Vec::new();
            }
            let [code, end, frame, back] = stack.at;
            let registers = Registers { code, stack: end, frame, back };
            let places = self.spaces.places(stack.process, registers, &stack.bytes);
            let place = |place: doorbell_stacks::Place| match place.file {
                Some(file) => Place::File(file, place.address),
                None => Place::Memory(place.address),
            };
            places.into_iter().map(place).collect()
        }

        fn changed(&mut self, process: i32) {
            self.spaces.changed(process);
        }

        fn name(&self, place: Place) -> Option<String> {
            let (file, address) = match place {
                Place::Kernel(address) => return self.kernel.name(address).map(str::to_owned),
                Place::File(file, address) => (Some(file), address),
                Place::Memory(address) => (None, address),
            };
            Some(self.spaces.name(doorbell_stacks::Place { file, address }))
        }
    }

    let kernel = Kernel::here();
    let nameless = kernel.is_empty();
    let names = Box::new(Names { spaces: Spaces::default(), kernel });
    let recorder = Recorder::with_stacks(one_in, names, children)?;
    if nameless {
        aside!(
            "doorbell: the kernel keeps the addresses of its functions from this user, and stacks \
             are without them; CAP_SYSLOG shows them, where kernel.kptr_restrict is not 2"
        );
    }
    Ok(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_in_a_number_that_is_not_nothing() {
        assert_eq!(one_in("1/64"), Ok(NonZero::new(64).unwrap()));
        for wrong in ["1/0", "2/64", "64", "1/", "1/-3", "1/99999999999"] {
            assert!(one_in(wrong).unwrap_err().contains("1/64"), "{wrong}");
        }
    }
}
