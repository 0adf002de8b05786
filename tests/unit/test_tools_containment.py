"""No path, link, rename or special file leads a file tool out of the workspace."""

import ctypes
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from adapters.tools import beneath
from adapters.tools.gateway import Gateway
from adapters.tools.guard import Guard
from adapters.tools.refusals import Outside, SecretFile, Unsuitable
from adapters.tools.workspace import opened
from domain.errors import ToolError, ToolRefused
from domain.tools import ToolInvocation, ToolResult, Verdict

SECRET = "the outside must not be seen"


class Place:
    """A workspace ``ws`` with neighbours, in a folder of its own, and a gateway for it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.ws = base / "ws"
        self.home = base / "home"
        for folder in (self.ws / "src", base / "ws2", base / "outside", self.home / "workspace", base / "person/.ssh"):
            folder.mkdir(parents=True)
        for neighbour in ("ws2/f.txt", "outside/f.txt", "home/token", "person/.ssh/id_rsa"):
            (base / neighbour).write_text(SECRET)
        (self.ws / "src/a.txt").write_text("inside\n")
        self.gateway = Gateway(self.home, self.home / "workspace", person=base / "person")

    def call(self, tool: str, workspace: Path | None = None, **arguments: Any) -> ToolInvocation:
        return ToolInvocation("task", "call", tool, arguments, str(workspace or self.ws))

    def assess(self, tool: str, **arguments: Any) -> Verdict:
        return self.gateway.assess(self.call(tool, **arguments))

    async def run(self, tool: str, workspace: Path | None = None, **arguments: Any) -> ToolResult:
        return await self.gateway.run(self.call(tool, workspace, **arguments), lambda text: None)

    def outside_is_intact(self) -> bool:
        return all((self.base / f).read_text() == SECRET for f in ("ws2/f.txt", "outside/f.txt", "home/token")) and (
            sorted(os.listdir(self.base / "outside")) == ["f.txt"]
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(params=["kernel", "walk"])
def resolution(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of resolving paths: openat2, and component by component."""
    if request.param == "kernel" and not beneath.KERNEL_RESOLVES:
        pytest.skip("this kernel has no openat2")
    monkeypatch.setattr(beneath, "KERNEL_RESOLVES", request.param == "kernel")
    return str(request.param)


ESCAPES = (
    "../outside/f.txt",
    "src/../../outside/f.txt",
    "../ws2/f.txt",
    "{base}/ws2/f.txt",
    "{base}/outside/f.txt",
    "{base}/ws/../outside/f.txt",
    "/proc/self/root{base}/outside/f.txt",
    "/proc/self/root/etc/passwd",
    "/etc/passwd",
    "~/f.txt",
    "~root/f.txt",
    "src/a.txt\0.png",
    "link/f.txt",
    "absolute/f.txt",
    "file",
    "loop",
    "magic/etc/passwd",
)


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.usefixtures("resolution")
async def test_no_way_out(place: Place, path: str) -> None:
    (place.ws / "link").symlink_to("../outside")
    (place.ws / "absolute").symlink_to(place.base / "outside")
    (place.ws / "file").symlink_to("../outside/f.txt")
    (place.ws / "loop").symlink_to("loop")
    (place.ws / "magic").symlink_to("/proc/self/root")
    path = path.format(base=place.base)
    for tool, more in (("file_read", {}), ("file_write", {"content": "x"}), ("list_dir", {})):
        assert place.assess(tool, path=path, **more).decision == "deny", tool
        with pytest.raises(ToolRefused):
            await place.run(tool, path=path, **more)
    assert place.outside_is_intact()


@pytest.mark.parametrize("path", ["src/a.txt", "./src//a.txt", "src/../src/a.txt", "{base}/ws/src/a.txt"])
@pytest.mark.usefixtures("resolution")
async def test_ways_inside(place: Place, path: str) -> None:
    path = path.format(base=place.base)
    assert place.assess("file_read", path=path).decision == "allow"
    assert "inside" in (await place.run("file_read", path=path)).output


async def test_workspace_given_by_a_link(place: Place) -> None:
    (place.base / "alias").symlink_to("ws")
    alias = place.base / "alias"
    assert "inside" in (await place.run("file_read", alias, path=f"{alias}/src/a.txt")).output
    assert "inside" in (await place.run("file_read", alias, path=f"{place.ws}/src/a.txt")).output


async def test_links_that_stay_inside(place: Place, resolution: str) -> None:
    (place.ws / "near").symlink_to("src/a.txt")
    if resolution == "kernel":
        assert "inside" in (await place.run("file_read", path="near")).output
    else:
        with pytest.raises(Outside):
            await place.run("file_read", path="near")
    with pytest.raises(ToolRefused, match="is a link"):
        await place.run("file_write", path="near", content="x")
    assert (place.ws / "src/a.txt").read_text() == "inside\n"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            ["..", ".", "", "src", "a.txt", "ws2", "out", "outside", "f.txt", "~", "/", "\0", "\ud800", "й"]
        ),
        max_size=8,
    ).map("/".join)
    | st.text(max_size=40)
)
@example("src/../../ws2/f.txt")
def test_whatever_the_path_says_the_outside_stays_out(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    place = Place(tmp_path_factory.mktemp("p"))
    (place.ws / "out").symlink_to(place.base / "outside")
    with opened(str(place.ws), Guard.of(place.home, place.home / "workspace")) as workspace:
        try:
            with workspace.file(path) as (handle, _):
                assert SECRET.encode() not in os.read(handle, 1000)
                assert os.readlink(f"/proc/self/fd/{handle}").startswith(f"{place.ws}/")
        except ToolError:
            pass
    assert place.assess("file_write", path=path, content="x").decision in ("allow", "ask", "deny")


def _flip(place: Place, stop: threading.Event) -> None:
    """``ws/d`` is by turns a folder and a link to the outside, exchanged in one step."""
    exchange = ctypes.CDLL(None).renameat2
    folder, link = bytes(place.ws / "d"), bytes(place.ws / "l")
    while not stop.is_set():
        assert exchange(-100, folder, -100, link, 2) == 0


@pytest.mark.usefixtures("resolution")
async def test_a_folder_swapped_for_a_link_again_and_again(place: Place) -> None:
    (place.ws / "d").mkdir()
    (place.ws / "d/f.txt").write_text("0")
    (place.ws / "l").symlink_to("../outside")
    stop = threading.Event()
    flipping = threading.Thread(target=_flip, args=(place, stop))
    flipping.start()
    written = read = refused = 0
    try:
        for number in range(400):
            try:
                written += (await place.run("file_write", path="d/f.txt", content=str(number))).ok
            except ToolRefused:
                refused += 1
            try:
                result = await place.run("file_read", path="d/f.txt")
                assert SECRET not in result.output
                read += result.ok
            except ToolRefused:
                refused += 1
            assert SECRET not in (await place.run("search_files", pattern="outside", glob="d/*")).output
            assert place.outside_is_intact()
    finally:
        stop.set()
        flipping.join(30)
    assert not flipping.is_alive()
    assert written + read + refused == 800
    assert sorted(os.listdir(place.base / "outside")) == ["f.txt"]


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "link to a device"])
async def test_files_that_would_hang(place: Place, kind: str) -> None:
    path = place.ws / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.open(place.ws, os.O_RDONLY)
            listener.bind(f"/proc/self/fd/{here}/odd")
            os.close(here)
    elif kind == "device":
        try:
            os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")
    else:
        path.symlink_to("/dev/zero")
    for tool, more in (("file_read", {}), ("file_write", {"content": "x"})):
        with pytest.raises(ToolRefused):
            await place.run(tool, path="odd", **more)
    assert (await place.run("search_files", pattern="x")).ok
    assert "odd" in (await place.run("list_dir")).output


async def test_hard_links(place: Place) -> None:
    os.link(place.base / "outside/f.txt", place.ws / "shared.txt")
    with pytest.raises(ToolRefused, match="hard links"):
        await place.run("file_write", path="shared.txt", content="x")
    os.link(place.base / "home/token", place.ws / "notes.txt")
    os.link(place.base / "person/.ssh/id_rsa", place.ws / "src/more.txt")
    (place.ws / ".env").write_text("KEY=" + SECRET)
    os.link(place.ws / ".env", place.ws / "src/env.txt")
    for path in ("notes.txt", "src/more.txt", "src/env.txt"):
        with pytest.raises(SecretFile):
            await place.run("file_read", path=path)
        assert place.assess("shell_exec", command=f"cat {path}").decision == "deny"
    found = (await place.run("search_files", pattern=SECRET)).output.splitlines()
    assert [line.split(":")[0] for line in found] == ["shared.txt", "[skipped"]
    assert place.outside_is_intact()


async def test_ducklms_home_is_out_of_reach(place: Place) -> None:
    whole = place.base
    for path in ("home/token", str(place.home / "token")):
        with pytest.raises(SecretFile):
            await place.run("file_read", whole, path=path)
    with pytest.raises(SecretFile):
        await place.run("file_write", whole, path="home/new", content="x")
    with pytest.raises(SecretFile):
        await place.run("list_dir", whole, path="home")
    assert "home" not in (await place.run("search_files", whole, pattern=SECRET)).output.replace("[skipped", "")
    for workspace in (place.home, place.home / "postgres", Path("/"), Path("/proc"), place.base / "person/.ssh"):
        workspace.mkdir(exist_ok=True, parents=True)
        with pytest.raises(ToolRefused):
            await place.run("list_dir", workspace)


async def test_the_default_workspace_in_ducklms_home_is_usable(place: Place) -> None:
    inner = place.home / "workspace"
    assert (await place.run("file_write", inner, path="a/b.txt", content="x")).ok
    with pytest.raises(ToolRefused):
        await place.run("file_read", inner, path="../token")
    (inner / "link").symlink_to("../token")
    with pytest.raises(ToolRefused):
        await place.run("file_read", inner, path="link")


def test_a_default_workspace_around_the_home_opens_nothing(place: Place) -> None:
    gateway = Gateway(place.home, place.base)
    call = ToolInvocation("t", "c", "file_read", {"path": "home/token"}, str(place.base))
    assert gateway.assess(call).decision == "deny"
    assert gateway.assess(ToolInvocation("t", "c", "list_dir", {}, str(place.home))).decision == "deny"


async def test_bad_workspaces_and_calls(place: Place) -> None:
    for workspace in ("relative", str(place.base / "missing"), str(place.ws / "src/a.txt"), "/tmp/\0", ""):
        call = ToolInvocation("t", "c", "list_dir", {}, workspace)
        assert place.gateway.assess(call).decision == "deny"
        with pytest.raises(ToolError):
            await place.gateway.run(call, lambda text: None)
    for tool, arguments in (("nope", {}), ("file_read", {}), ("file_read", {"path": 1}), ("list_dir", {"x": 1})):
        call = ToolInvocation("t", "c", tool, arguments, str(place.ws))
        assert place.gateway.assess(call).decision == "deny"
        with pytest.raises(ToolError):
            await place.gateway.run(call, lambda text: None)


def test_a_nul_never_reaches_the_kernel(place: Place) -> None:
    root = os.open(place.ws, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="NUL"):
            beneath.open_beneath(root, "src/a.txt\0x", os.O_RDONLY)
    finally:
        os.close(root)


async def test_what_vanishes(place: Place) -> None:
    result = await place.run("file_read", path="gone.txt")
    assert not result.ok
    assert "no gone.txt" in result.output
    with opened(str(place.ws), Guard.of(place.home, place.home / "workspace")) as workspace:
        # Opened before it was removed, looked at afterwards.
        with workspace.file("src/a.txt") as (handle, _):
            (place.ws / "src/a.txt").unlink()
            assert os.read(handle, 10) == b"inside\n"
        with pytest.raises(Unsuitable), workspace.file("src/a.txt"):
            pass
