"""file_write: all or nothing, whatever happens in between."""

import asyncio
import errno
import hashlib
import os
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.tools import writing
from adapters.tools.gateway import Gateway
from domain.errors import ToolError, ToolRefused
from domain.tools import ToolInvocation, ToolResult


class Writer:
    def __init__(self, base: Path) -> None:
        self.ws = base / "ws"
        self.ws.mkdir(exist_ok=True)
        self.gateway = Gateway(base / "home", base / "home/workspace", person=base / "person")

    def call(self, path: str, content: str, call_id: str = "c") -> ToolInvocation:
        return ToolInvocation("t", call_id, "file_write", {"path": path, "content": content}, str(self.ws))

    async def __call__(self, path: str, content: str, call_id: str = "c") -> ToolResult:
        return await self.gateway.run(self.call(path, content, call_id), lambda text: None)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.ws))


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_create_replace_unchanged(write: Writer) -> None:
    result = await write("отчёты/короткий.md", "Привет\n")
    assert result.data == {
        "sha256_before": "",
        "sha256_after": sha("Привет\n"),
        "created": True,
        "unchanged": False,
        "bytes": 13,
    }
    file = write.ws / "отчёты/короткий.md"
    file.chmod(0o741)
    inode = file.stat().st_ino
    again = await write("отчёты/короткий.md", "Привет\n")
    assert again.ok
    assert again.data["unchanged"]
    assert not again.data["created"]
    assert file.stat().st_ino == inode
    result = await write("отчёты/короткий.md", "Пока\n")
    assert result.data["sha256_before"] == sha("Привет\n")
    assert file.read_text() == "Пока\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o741
    assert os.listdir(file.parent) == ["короткий.md"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=100), min_size=1, max_size=4))
def test_what_is_written_is_what_is_there(tmp_path_factory: pytest.TempPathFactory, contents: list[str]) -> None:
    write = Writer(tmp_path_factory.mktemp("w"))
    before = ""
    for number, content in enumerate(contents):
        result = asyncio.run(write("f", content, f"call-{number}"))
        assert (write.ws / "f").read_bytes() == content.encode()
        assert result.data["sha256_before"] == before
        assert result.data["sha256_after"] == (before := sha(content))
    assert write.names() == ["f"]


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".GIT/x",
        ".git",
        "g/hooks/x",
        ".git./x",
        "bad\nname",
        "rtl\u202e.txt",
    ],
)
async def test_refused_names(write: Writer, path: str) -> None:
    (write.ws / ".git/hooks").mkdir(parents=True)
    (write.ws / "g").symlink_to(".git")
    assert write.gateway.assess(write.call(path, "x")).decision == "deny"
    with pytest.raises(ToolRefused):
        await write(path, "x")
    assert not any((write.ws / ".git/hooks").iterdir())


@pytest.mark.parametrize("path", ["", ".", "folder", "folder/", "file/below", "x" * 300, "a/../"])
async def test_unsuitable_names(write: Writer, path: str) -> None:
    (write.ws / "folder").mkdir()
    (write.ws / "file").write_text("x")
    result = await write(path, "x")
    assert not result.ok
    assert result.output
    assert write.names() == ["file", "folder"]


@pytest.mark.parametrize("path", [".bashrc", ".gitconfig", ".config/git/config", "here/.profile", "cfg/git/config"])
def test_files_that_programs_obey_are_asked_for(write: Writer, path: str) -> None:
    (write.ws / ".config/git").mkdir(parents=True)
    (write.ws / "cfg").symlink_to(".config")
    assert write.gateway.assess(write.call(path, "x")).decision == "ask"


async def test_write_protected(write: Writer) -> None:
    (write.ws / "f").write_text("kept")
    (write.ws / "f").chmod(0o444)
    with pytest.raises(ToolRefused, match="write-protected"):
        await write("f", "x")
    assert (write.ws / "f").read_text() == "kept"


async def test_text_that_is_none(write: Writer) -> None:
    with pytest.raises(ToolError, match="no valid text"):
        await write("f", "a\ud800b")
    assert write.names() == []


async def test_what_a_crash_left_behind_is_cleared_by_the_retry(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", _die)
        patch.setattr(os, "unlink", _not_there)  # a crash clears nothing
        with pytest.raises(ToolError):
            await write("f", "new")
    assert [name.startswith(".ducklm-") for name in write.names()] == [True]
    assert (await write("f", "new")).ok
    assert write.names() == ["f"]


def _die(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def _not_there(*_: object, **__: object) -> None:
    raise FileNotFoundError


@pytest.mark.parametrize("step", ["write", "fsync", "fchmod", "rename"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
async def test_a_fault_at_any_step_keeps_the_old_file(
    write: Writer, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    (write.ws / "f").write_text("old")

    def fault(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(writing.os, step, fault)
        with pytest.raises(ToolError) as raised:
            await write("f", "new")
    assert ("disk is full" in str(raised.value)) == (code != errno.EIO)
    assert (write.ws / "f").read_text() == "old"
    assert write.names() == ["f"]


def test_disk_full_for_real(tmp_path: Path) -> None:
    """In a process whose files may not grow over 64 KiB, the kernel stops the write in the middle."""
    script = """
        import asyncio, resource, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from tests.unit.test_tools_writing import Writer
        from domain.errors import ToolError
        write = Writer(Path(sys.argv[1]))
        asyncio.run(write("f", "old"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        try:
            asyncio.run(write("f", "x" * 1_000_000))
        except ToolError as error:
            print(error)
    """
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), str(root)],
        capture_output=True, text=True, timeout=120, check=True, cwd=root,
    )  # fmt: skip
    assert "the disk is full" in done.stdout
    assert (tmp_path / "ws/f").read_text() == "old"
    assert os.listdir(tmp_path / "ws") == ["f"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "ws").mkdir()
    mounted = os.geteuid() == 0 and (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path / "ws")], capture_output=True, check=False
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip("only root can mount a small disk")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path / "ws")], check=True)


async def test_a_really_full_disk(tiny_disk: Path) -> None:
    write = Writer(tiny_disk)
    await write("f", "old")
    with pytest.raises(ToolError, match="the disk is full"):
        await write("f", "x" * 1_000_000)
    with pytest.raises(ToolError, match="the disk is full"):
        await write("new/g", "x" * 1_000_000)
    assert (write.ws / "f").read_text() == "old"
    assert (await write("f", "small")).ok
    assert write.names() == ["f", "new"]


async def test_readers_see_the_old_or_the_new_content(write: Writer) -> None:
    contents = [letter * 200_000 for letter in "abcdef"]
    await write("f", contents[0])
    stop, seen = threading.Event(), set()

    def read() -> None:
        while not stop.is_set():
            seen.add((write.ws / "f").read_text())

    reading = threading.Thread(target=read)
    reading.start()
    try:
        for number, content in enumerate(contents * 5):
            await write("f", content, f"call-{number}")
    finally:
        stop.set()
        reading.join(30)
    assert seen <= set(contents)


async def test_a_change_in_between_is_not_overwritten(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    (write.ws / "f").write_text("old")
    fill = writing._fill

    def interfering(*args: Any) -> None:
        fill(*args)
        (write.ws / "f").write_text("somebody else's")

    monkeypatch.setattr(writing, "_fill", interfering)
    with pytest.raises(ToolError, match="at the same time"):
        await write("f", "new")
    assert (write.ws / "f").read_text() == "somebody else's"
    assert write.names() == ["f"]


async def test_cancelling_waits_for_the_outcome(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    fill, begun, go = writing._fill, threading.Event(), threading.Event()

    def slow(*args: Any) -> None:
        begun.set()
        go.wait(30)
        fill(*args)

    monkeypatch.setattr(writing, "_fill", slow)
    running = asyncio.ensure_future(write("f", "new"))
    await asyncio.to_thread(begun.wait, 30)
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (write.ws / "f").read_text() == "new"
