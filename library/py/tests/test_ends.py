# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ends that are sent to another process."""

import multiprocessing
import pathlib
from typing import Any

import doorbell
import pytest

# Longer than anything takes on the slowest machine.
FOREVER = 60.0


def receive_and_open(path: pathlib.Path) -> None:
    with doorbell.connect(path, FOREVER) as service:
        service.send(b"ready")
        sent_on = service.recv_end(FOREVER)
        assert sent_on is not None
        service.send_end(sent_on)
        service.send(b"sent back")
        end = service.recv_end(FOREVER)
        assert end is not None
        with end.open() as opened:
            message = opened.recv(FOREVER)
            assert message is not None
            opened.send(b"opened: " + message)
            opened.recv(FOREVER)


def test_an_end_is_sent_to_another_process_comes_back_and_is_opened(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "service"
    with doorbell.listen(path) as service:
        context: Any = multiprocessing.get_context("spawn")
        child = context.Process(target=receive_and_open, args=(path,))
        child.start()
        came = service.recv(FOREVER)
        assert came is not None
        client = came[0]
        ours, theirs = doorbell.pair()
        ours.send(b"early")
        service.send_end(client, theirs)
        with pytest.raises(ValueError, match="already"):
            theirs.open()
        assert service.recv(FOREVER) == (client, b"sent back")
        back = service.recv_end(client, 0.0)
        assert back is not None
        service.send_end(client, back)
        assert ours.recv(FOREVER) == b"opened: early"
        child.kill()
        child.join()
        assert list(ours) == []


def test_an_end_that_nobody_will_open_is_told_and_one_is_opened_here() -> None:
    ours, theirs = doorbell.pair(4096)
    theirs.close()
    with pytest.raises(doorbell.PeerGone):
        ours.recv(FOREVER)
    ours, theirs = doorbell.pair(4096)
    with theirs.open() as opened:
        opened.send(b"hello")
        assert ours.recv(FOREVER) == b"hello"
        assert ours.recv_end(0.01) is None
    with pytest.raises(doorbell.Closed):
        ours.recv(FOREVER)
