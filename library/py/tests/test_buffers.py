# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whatever `memoryview` takes is sent as its bytes, in the order of C."""

import array
import ctypes
import datetime
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import doorbell


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int32), ("y", ctypes.c_double)]


def ctypes_point() -> Any:
    return Point(3, 0.5)


RECORDS = numpy.array([(1, 2.5), (3, 4.5)], dtype=[("Ordinal", "i4"), ("value", "f8")])
GRID = numpy.arange(24, dtype="f4").reshape(4, 6)

BUFFERS: list[Any] = [
    bytearray(b"bytes"),
    array.array("d", [1.0, 2.0]),
    ctypes_point(),
    (ctypes.c_int16 * 3)(1, 2, 3),
    (Point * 2)(Point(1, 2.0), Point(3, 4.0)),
    ctypes.c_double(0.25),
    numpy.float64(0.25),
    numpy.int32(7),
    numpy.array(7.5),
    RECORDS,
    RECORDS[1],
    RECORDS["value"],
    GRID[:, ::2],
    GRID[::-1],
    GRID.T,
    numpy.asfortranarray(GRID),
    memoryview(b"abcdefgh")[::3],
    memoryview(array.array("i", range(10)))[1::4],
    numpy.zeros((0, 3)),
]


def whole(buffer: Any) -> bytes:
    return memoryview(buffer).tobytes(order="C")


@pytest.mark.parametrize("buffer", BUFFERS, ids=lambda buffer: type(buffer).__name__)
@pytest.mark.parametrize("way", ["send", "try_send", "send_batch", "publish", "of a view"])
def test_what_memoryview_takes_is_sent(buffer: Any, way: str) -> None:
    """Structures of ctypes, numpy's scalars, arrays of no dimension and with strides were refused."""
    received: list[bytes | None] = []
    if way == "publish":
        publisher = doorbell.Publisher(1 << 16)
        subscriber = publisher.subscribe()
        assert publisher.publish(buffer)
        heard = subscriber.recv()
        received.append(heard and heard[0])
    else:
        segment = doorbell.Segment(lanes=1)
        to, from_ = segment.sender(0), segment.receiver(0)
        how: dict[str, Callable[[], object]] = {
            "send": lambda: to.send(buffer),
            "try_send": lambda: to.try_send(buffer),
            "send_batch": lambda: to.send_batch([buffer]),
            "of a view": lambda: to.send(memoryview(buffer)),
        }
        assert how[way]()
        received.append(from_.try_recv())
    assert received == [whole(buffer)]


def test_objects_of_this_interpreter_are_no_bytes_of_a_message() -> None:
    sender, _receiver = doorbell.channel()
    with pytest.raises(TypeError, match="send_object"):
        sender.send(numpy.array([datetime.date.today()], dtype=object))
    with pytest.raises(TypeError, match="send_object"):
        sender.send(numpy.zeros(1, dtype=[("name", object), ("number", "i4")]))
    with pytest.raises(TypeError):
        sender.send(7)
