# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two processes: meeting, ringing, dying."""

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
    with doorbell.join(path) as session:
        board = session.board
        ours, theirs = session.bell(TO_JOINER), session.bell(TO_HOST)
        theirs.ring()
        while True:
            try:
                ours.wait()
            except doorbell.PeerGone:
                return
            board.write(0, bytes(reversed(board.read(0, 5))))
            theirs.ring()


def test_two_processes_meet_at_a_path_and_talk(tmp_path: Path) -> None:
    path = tmp_path / "bell"
    board = doorbell.Board(payload=64)
    ours, theirs = board.bell(TO_HOST), board.bell(TO_JOINER)
    host = doorbell.Host(path)
    assert host.accept(board, 0.01) is None
    child = multiprocessing.get_context("spawn").Process(target=join_and_answer, args=(str(path),))
    child.start()
    session = host.accept(board, FOREVER)
    assert session is not None and session.peer is not None
    assert session.peer.pid == child.pid
    assert ours.wait(FOREVER) == 1
    for word in (b"first", b"other"):
        board.write(0, memoryview(word))
        theirs.ring()
        assert ours.wait(FOREVER) == 1
        assert board.read(0, 5) == bytes(reversed(word))
    session.close()
    child.join(FOREVER)
    assert child.exitcode == 0
    host.close()
    assert not path.exists()
    with pytest.raises(ValueError, match="closed"):
        host.fileno()


def start(role: str, board: doorbell.Board) -> tuple[subprocess.Popen[str], doorbell.Session]:
    return doorbell.start([sys.executable, __file__, role], board, text=True)


def child(role: str) -> None:
    session = doorbell.inherit()
    with pytest.raises(doorbell.MeetError):
        doorbell.inherit()
    ours, theirs = session.bell(TO_JOINER), session.bell(TO_HOST)
    for _ in range(3):
        theirs.ring()
    if role == "wait":
        ours.wait()


def test_the_rings_of_one_that_is_killed_are_heard_and_then_its_death() -> None:
    board = doorbell.Board()
    ours = board.bell(TO_HOST)
    process, session = start("wait", board)
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
    assert session.peer is not None


def test_a_file_becomes_readable_when_a_peer_dies() -> None:
    board = doorbell.Board()
    ours = board.bell(TO_HOST)
    process, _session = start("leave", board)
    file = ours.file()
    process.wait(FOREVER)
    heard = 0
    with pytest.raises(doorbell.PeerGone):
        while True:
            heard += file.heard()
    assert heard == 3


def test_a_name_is_owned_by_one_and_joined_by_others(tmp_path: Path) -> None:
    path = tmp_path / "name"
    with pytest.raises(doorbell.MeetError, match="nobody owns"):
        doorbell.join_named(path)
    with doorbell.Owner(path, payload=8) as owner:
        with pytest.raises(doorbell.MeetError, match="living owner"):
            doorbell.Owner(path)
        joined = doorbell.join_named(path)
        assert joined.peer is None
        theirs = joined.bell(0)
        owner.board.bell(0).ring()
        assert theirs.wait(FOREVER) == 1
    with pytest.raises(doorbell.PeerGone):
        theirs.wait(FOREVER)


def test_mistakes_are_told_by_name(tmp_path: Path) -> None:
    board = doorbell.Board(payload=8)
    with pytest.raises(IndexError, match="no bell 2"):
        board.bell(2)
    with pytest.raises(ValueError, match="beyond the 8 bytes"):
        board.write(1, b"12345678")
    with pytest.raises(ValueError, match="beyond the 8 bytes"):
        board.read(0, 1 << 62)
    with pytest.raises(doorbell.MeetError, match="at most 8"):
        doorbell.Board(eventfds=9)
    with pytest.raises(doorbell.MeetError):
        doorbell.join(tmp_path / "nobody")
    with pytest.raises(FileNotFoundError):
        doorbell.Host(tmp_path / "no" / "directory")
    with pytest.raises(doorbell.MeetError, match="DOORBELL_FD"):
        doorbell.inherit()


if __name__ == "__main__":
    child(sys.argv[1])
