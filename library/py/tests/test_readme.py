# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the pages print runs as it stands there."""

import ast
import asyncio
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import doorbell

LIBRARY = Path(__file__).parent.parent.parent
FOREVER = 60.0


def printed(page: Path) -> list[str]:
    """The blocks of Python that `page` prints."""
    parts = page.read_text().split("```python\n")[1:]
    return [part.split("\n```")[0] for part in parts]


def run(block: str, names: dict[str, Any]) -> None:
    """What the block would do in a program, and in a coroutine if it awaits something."""
    code = compile(block, "printed", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def awaited() -> None:
        ran = eval(code, names)
        if inspect.isawaitable(ran):
            await ran

    asyncio.run(awaited())


def work(steps: doorbell.BroadcastReceiver) -> None:
    for step in iter(steps.recv_object, None):
        assert step == {"step": 7}


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    tx, rx = doorbell.channel()
    yield {"doorbell": doorbell, "numpy": numpy, "multiprocessing": __import__("multiprocessing"), "tx": tx, "rx": rx}


def test_the_package_page_sends_from_another_process(capsys: pytest.CaptureFixture[str]) -> None:
    run(printed(LIBRARY / "py/README.md")[0], {})
    assert capsys.readouterr().out == "b'hello'\n"


def test_the_package_page_writes_in_place(names: dict[str, Any]) -> None:
    names["values"] = numpy.arange(4)
    run(printed(LIBRARY / "py/README.md")[1], names)
    assert names["rx"].recv(FOREVER) == numpy.array([0, 2, 4, 6]).tobytes()


def test_the_package_page_sends_objects(names: dict[str, Any]) -> None:
    names["tokens"] = numpy.arange(3)
    sends, receives = printed(LIBRARY / "py/README.md")[2].splitlines()
    run(f"{sends}\ncame = {receives}", names)
    assert names["came"]["step"] == 7 and (names["came"]["tokens"] == numpy.arange(3)).all()


def test_the_package_page_tells_eight_workers_of_a_step(names: dict[str, Any]) -> None:
    names |= {"work": work, "step": {"step": 7}}
    run(printed(LIBRARY / "py/README.md")[3], names)
    with names["scheduler"] as scheduler:
        assert scheduler.send_object(None, FOREVER)
    for child in names["multiprocessing"].active_children():
        child.join(FOREVER)
        assert child.exitcode == 0


def test_the_package_page_awaits(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    block = printed(LIBRARY / "py/README.md")[4]
    # Who sends leaves, or it would receive for ever.
    run(block.replace("async for", "tx.close()\nasync for"), names)
    assert capsys.readouterr().out == "b'hello'\n"


def test_the_library_page_asks_a_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOORBELL_RUNTIME_DIR", str(tmp_path))
    (block,) = printed(LIBRARY / "doorbell/README.md")
    with doorbell.listen("clock") as service:

        def answer() -> None:
            came = service.recv(FOREVER)
            assert came is not None
            client, question = came
            assert question == b"how late is it?"
            service.send(client, b"late")

        answering = threading.Thread(target=answer)
        answering.start()
        run(block, {})
        answering.join()
    assert capsys.readouterr().out == "late\n"


def test_every_block_of_the_pages_is_tried() -> None:
    assert len(printed(LIBRARY / "py/README.md")) == 5
    assert len(printed(LIBRARY / "doorbell/README.md")) == 1
