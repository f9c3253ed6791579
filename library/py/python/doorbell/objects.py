# SPDX-License-Identifier: MIT OR Apache-2.0
"""Objects as messages: pickled by protocol 5, large buffers (numpy's arrays, torch's tensors) beside the pickle and not in it, so that
they are copied once on either side."""

import copyreg
import importlib
import io
import pickle
import struct
import sys
from collections.abc import Iterator
from typing import Any

# Smaller ones are cheaper in the pickle.
LEAST_APART = 1024
ALIGNMENT = 64


def _tensor(buffer: Any, dtype: Any, shape: Any) -> Any:
    torch: Any = importlib.import_module("torch")
    return torch.frombuffer(buffer, dtype=torch.uint8).view(dtype).reshape(shape)


def _reduce_tensor(tensor: Any) -> Any:
    """A tensor by its bytes, where it has some that lie in this process's memory."""
    torch: Any = sys.modules["torch"]
    if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.requires_grad or tensor.numel() == 0:
        return tensor.__reduce_ex__(5)
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    return _tensor, (pickle.PickleBuffer(flat.numpy()), tensor.dtype, tuple(tensor.shape))


class _Parts:
    """The parts of a message, each with its place, and the message's length."""

    def __init__(self, object: Any) -> None:
        apart: list[memoryview] = []

        def buffer(found: pickle.PickleBuffer) -> bool:
            raw = found.raw()
            if raw.nbytes < LEAST_APART:
                return True
            apart.append(raw)
            return False

        torch = sys.modules.get("torch")
        if torch is None:
            pickled = pickle.dumps(object, protocol=5, buffer_callback=buffer)
        else:
            file = io.BytesIO()
            pickler = pickle.Pickler(file, protocol=5, buffer_callback=buffer)
            pickler.dispatch_table = {**copyreg.dispatch_table, torch.Tensor: _reduce_tensor}
            pickler.dump(object)
            pickled = file.getvalue()
        lengths = [part.nbytes for part in apart]
        head = struct.pack(f"<{len(apart) + 2}Q", len(apart), len(pickled), *lengths)
        places = list(_places(len(head), [len(pickled), *lengths]))
        self.all: list[tuple[int, Any]] = [(0, head), *zip(places, [pickled, *apart])]
        self.length = places[-1] + [len(pickled), *lengths][-1]


def _places(head: int, lengths: list[int]) -> Iterator[int]:
    """The pickle directly behind the head, buffers where they are aligned."""
    yield head
    end = head + lengths[0]
    for length in lengths[1:]:
        place = -(-end // ALIGNMENT) * ALIGNMENT
        yield place
        end = place + length


def parts(object: Any) -> tuple[int, list[tuple[int, Any]]]:
    """The length of the message that is `object`, and what lies where in it."""
    made = _Parts(object)
    return made.length, made.all


def load(message: bytes | memoryview) -> Any:
    """The object that `message` is. Its large buffers show the message, which nobody can write to."""
    count, pickled = struct.unpack_from("<2Q", message)
    lengths = struct.unpack_from(f"<{count}Q", message, 16)
    whole = memoryview(message)
    shown = [whole[at : at + length] for at, length in zip(_places(16 + 8 * count, [pickled, *lengths]), [pickled, *lengths])]
    return pickle.loads(shown[0], buffers=shown[1:])
