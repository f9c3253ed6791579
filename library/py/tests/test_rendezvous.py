# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two processes: rendezvous, ringing, dying."""

import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import doorbell

FOREVER = 60.0
TO_HOST, TO_JOINER = 0, 1


def join_and_answer(path: str) -> None:
    with doorbell.join(path) as connection:
        segment = connection.segment
        ours, theirs = connection.bell(TO_JOINER), connection.bell(TO_HOST)
        theirs.ring()
        while True:
            try:
                ours.wait()
            except doorbell.PeerGone:
                return
            segment.write(0, bytes(reversed(segment.read(0, 5))))
            theirs.ring()


def test_two_processes_meet_at_a_path_and_talk(tmp_path: Path) -> None:
    path = tmp_path / "bell"
    segment = doorbell.Segment(payload=64)
    ours, theirs = segment.bell(TO_HOST), segment.bell(TO_JOINER)
    host = doorbell.Host(path)
    assert host.accept(segment, 0.01) is None
    child = multiprocessing.get_context("spawn").Process(target=join_and_answer, args=(str(path),))
    child.start()
    connection = host.accept(segment, FOREVER)
    assert connection is not None and connection.peer is not None
    assert connection.peer.pid == child.pid
    assert ours.wait(FOREVER) == 1
    for word in (b"first", b"other"):
        segment.write(0, memoryview(word))
        theirs.ring()
        assert ours.wait(FOREVER) == 1
        assert segment.read(0, 5) == bytes(reversed(word))
    connection.close()
    child.join(FOREVER)
    assert child.exitcode == 0
    host.close()
    assert not path.exists()
    with pytest.raises(ValueError, match="closed"):
        host.fileno()


def start(role: str, segment: doorbell.Segment) -> tuple[subprocess.Popen[str], doorbell.Connection]:
    return doorbell.start([sys.executable, __file__, role], segment, text=True)


def child(role: str) -> None:
    connection = doorbell.inherit()
    with pytest.raises(doorbell.RendezvousError):
        doorbell.inherit()
    ours, theirs = connection.bell(TO_JOINER), connection.bell(TO_HOST)
    for _ in range(3):
        theirs.ring()
    if role == "wait":
        ours.wait()


def test_the_rings_of_one_that_is_killed_are_heard_and_then_its_death() -> None:
    segment = doorbell.Segment()
    ours = segment.bell(TO_HOST)
    process, connection = start("wait", segment)
    heard = 0
    while heard < 3:
        heard += ours.wait(FOREVER)
    # While this waits, in its sleep or before it.
    threading.Timer(0.05, process.kill).start()
    with pytest.raises(doorbell.PeerGone, match=f"process {process.pid}"):
        ours.wait(FOREVER)
    with pytest.raises(doorbell.PeerGone):
        ours.wait(FOREVER)
    process.wait()
    assert connection.peer is not None


def test_a_file_becomes_readable_when_a_peer_dies() -> None:
    segment = doorbell.Segment()
    ours = segment.bell(TO_HOST)
    process, _connection = start("leave", segment)
    file = ours.file()
    process.wait(FOREVER)
    heard = 0
    with pytest.raises(doorbell.PeerGone):
        while True:
            heard += file.heard()
    assert heard == 3


def test_mistakes_are_told_by_name(tmp_path: Path) -> None:
    segment = doorbell.Segment(payload=8)
    with pytest.raises(IndexError, match="no bell 2"):
        segment.bell(2)
    with pytest.raises(ValueError, match="beyond the 8 bytes"):
        segment.write(1, b"12345678")
    with pytest.raises(ValueError, match="beyond the 8 bytes"):
        segment.read(0, 1 << 62)
    with pytest.raises(doorbell.RendezvousError, match="at most 8"):
        doorbell.Segment(eventfds=9)
    with pytest.raises(doorbell.RendezvousError):
        doorbell.join(tmp_path / "nobody")
    with pytest.raises(FileNotFoundError):
        doorbell.Host(tmp_path / "no" / "directory")
    with pytest.raises(doorbell.RendezvousError, match="DOORBELL_FD"):
        doorbell.inherit()


if __name__ == "__main__":
    child(sys.argv[1])


def test_callers_who_come_at_once_are_all_met(tmp_path: Path) -> None:
    """Whoever had said hello while another was met was waited for at the door, where nobody said anything more."""
    callers = 4
    joined: list[doorbell.Connection] = []
    threads = [threading.Thread(target=lambda: joined.append(doorbell.join(tmp_path / "host"))) for _ in range(callers)]
    with doorbell.Host(tmp_path / "host") as host:
        for thread in threads:
            thread.start()
        met = [host.accept(doorbell.Segment(), 60.0) for _ in range(callers)]
        for thread in threads:
            thread.join()
    assert None not in met and len(joined) == callers
