"""list_dir, file_read and search_files: what they show, in which words, and where they stop."""

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.tools import listing, reading, searching
from adapters.tools.gateway import Gateway
from adapters.tools.globs import Glob
from adapters.tools.guard import Guard
from adapters.tools.workspace import opened
from domain.errors import ToolRefused
from domain.tools import SearchFiles, ToolInvocation, ToolResult


class Tools:
    def __init__(self, base: Path) -> None:
        self.ws = base / "ws"
        self.ws.mkdir()
        self._gateway = Gateway(base / "home", base / "home/workspace", person=base / "person")

    async def __call__(self, tool: str, **arguments: Any) -> ToolResult:
        result = await self._gateway.run(ToolInvocation("t", "c", tool, arguments, str(self.ws)), lambda text: None)
        result.output.encode("utf-8")  # storable everywhere
        assert "\0" not in result.output
        return result

    def put(self, path: str, content: str | bytes = "") -> Path:
        file = self.ws / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


async def test_list_dir(tools: Tools) -> None:
    tools.put("b.txt", "12345")
    tools.put("папка/файл.md", "привет")
    tools.put(".env", "K=V")
    (tools.ws / "in").symlink_to("b.txt")
    (tools.ws / "out").symlink_to("/etc")
    (tools.ws / "dangling").symlink_to("nowhere")
    os.mkfifo(tools.ws / "pipe")
    tools.put("line\nbreak\u202e.txt")
    (tools.ws / os.fsdecode(b"\xff.bin")).write_bytes(b"")
    assert (await tools("list_dir")).output.splitlines() == [
        "папка/",
        ".env  3 bytes  [out of reach]",
        "b.txt  5 bytes",
        "dangling -> nowhere  [link, leads nowhere]",
        "in -> b.txt  [link]",
        "line\\nbreak\\u202e.txt  0 bytes",
        "out -> /etc  [link, out of reach]",
        "pipe  [no file: pipe, socket or device]",
        "\\udcff.bin  0 bytes",
    ]
    assert (await tools("list_dir", path="папка")).output == "файл.md  12 bytes"
    assert not (await tools("list_dir", path="b.txt")).ok
    assert not (await tools("list_dir", path="missing")).ok


async def test_list_dir_is_capped(tools: Tools) -> None:
    assert (await tools("list_dir")).output == "[empty folder]"
    for number in range(listing.MAX_ENTRIES + 7):
        tools.put(f"{number:04}")
    result = await tools("list_dir")
    assert result.truncated
    assert result.output.splitlines()[-1].startswith("[7 more entries")
    assert len(result.output.splitlines()) == listing.MAX_ENTRIES + 1


async def test_file_read_pages(tools: Tools) -> None:
    tools.put("f", "".join(f"line {n}\n" for n in range(2310)))
    first = await tools("file_read", path="f")
    assert first.output.splitlines()[0] == "[lines 1–400 of 2310; next offset 400]"
    assert first.output.splitlines()[1:] == [f"line {n}" for n in range(400)]
    assert first.truncated
    last = await tools("file_read", path="f", offset=2300, limit=400)
    assert last.output.splitlines()[0] == "[lines 2301–2310 of 2310]"
    assert not last.truncated
    assert last.data["next_offset"] is None
    assert first.data["sha256"] == last.data["sha256"]
    past = await tools("file_read", path="f", offset=2310)
    assert not past.ok
    assert "2310 lines" in past.output


@given(st.lists(st.text(st.characters(blacklist_characters="\n\r\0", codec="utf-8"), max_size=30), max_size=60),
       st.integers(1, 20), st.booleans())  # fmt: skip
def test_following_next_offset_gives_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], limit: int, ended: bool
) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    expected = text.removesuffix("\n").split("\n") if text else []
    window, offset = [], 0
    for _ in range(len(lines) + 2):
        args = reading.FileRead("f", offset, limit)
        result = reading._Window(args, len(text)).read(BytesIO(text.encode()))
        window += result.output.split("\n")[1:]
        if (following := result.data["next_offset"]) is None:
            break
        offset = following
    assert window == [line.removeprefix("\ufeff") for line in expected]


async def test_file_read_is_capped(tools: Tools) -> None:
    tools.put("wide", ("x" * 3000 + "\n") * 100)
    result = await tools("file_read", path="wide")
    assert len(result.output.encode()) <= reading.MAX_OUTPUT
    assert result.truncated
    assert result.data["next_offset"] == 21
    tools.put("long", "é" * 1_000_000 + "\nend\n")
    result = await tools("file_read", path="long")
    assert result.output.endswith("end")
    assert "[… this line is longer]" in result.output
    assert "�" not in result.output
    assert "1 lines were too long" in result.output.splitlines()[0]
    tools.put("invalid", b"\xff" * 4000 + b"\n" + b"\xfe" * 60000)
    result = await tools("file_read", path="invalid")
    assert len(result.output.encode()) <= reading.MAX_OUTPUT


async def test_a_file_longer_than_what_is_scanned(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_SCAN", 10_000)
    tools.put("f", "0123456789\n" * 5000)
    result = await tools("file_read", path="f", limit=10)
    assert "of more than" in result.output.splitlines()[0]
    assert result.data["sha256"] is None
    assert result.data["lines"] is None
    assert result.data["next_offset"] == 10


async def test_encodings(tools: Tools) -> None:
    tools.put("utf8", "Отчёт\n")
    assert (await tools("file_read", path="utf8")).output == "[lines 1–1 of 1]\nОтчёт"
    tools.put("cp1251", "Отчёт\n".encode("cp1251"))
    result = await tools("file_read", path="cp1251")
    assert "not valid UTF-8" in result.output
    tools.put("utf16", "Отчёт\nда\n".encode("utf-16"))
    assert (await tools("file_read", path="utf16")).output == "[lines 1–2 of 2; UTF-16]\nОтчёт\nда"
    tools.put("bom", "\ufeffx\r\ny\r\n")
    assert (await tools("file_read", path="bom")).output == "[lines 1–2 of 2; lines end with CRLF]\nx\ny"
    tools.put("empty")
    assert (await tools("file_read", path="empty")).output == "[empty file]"
    tools.put("late", "x" * 9000 + "\0")
    assert (await tools("file_read", path="late")).ok  # a NUL where nobody looked for one
    tools.put("replacement", "� is meant here\n")
    assert "not valid" not in (await tools("file_read", path="replacement")).output


async def test_binary(tools: Tools) -> None:
    tools.put("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
    tools.put("a.bin", b"abc\0def")
    assert (await tools("file_read", path="a.png")).output == "[a.png is binary: PNG image, 108 bytes; it is not shown]"
    assert "unknown kind, 7 bytes" in (await tools("file_read", path="a.bin")).output


async def test_search(tools: Tools) -> None:
    tools.put("a/b.py", "import os\nПривет, Мир\n")
    tools.put("c.txt", "nothing\nприветливо\r\nИмпорт import\n")
    tools.put("node_modules/x/i.js", "import\n")
    tools.put(".git/config", "import\n")
    tools.put("bin", b"import\0")
    tools.put(".env", "import\n")
    (tools.ws / "link.txt").symlink_to("c.txt")
    found = await tools("search_files", pattern="ПРИВЕТ")
    assert found.output.splitlines()[:2] == ["c.txt:2: приветливо", "a/b.py:2: Привет, Мир"]
    found = await tools("search_files", pattern="import")
    assert found.output.splitlines() == [
        "c.txt:3: Импорт import",
        "a/b.py:1: import os",
        "[skipped: 1 .git folders, 1 binary files, 1 node_modules folders, 1 secret files]",
    ]
    assert (await tools("search_files", pattern="Import", case_sensitive=True)).output.startswith("[nothing found]")
    assert (await tools("search_files", pattern="import", glob="*.{py,js}")).data["matches"] == 1
    named = await tools("search_files", pattern="import", glob="node_modules/**")
    assert named.output.startswith("node_modules/x/i.js:1")
    assert (await tools("search_files", glob="**/*.PY")).output.splitlines()[0] == "a/b.py"
    assert (await tools("search_files", pattern=".*")).data["matches"] == 0  # plain text, no pattern language


async def test_search_is_capped(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.put("many", "hit\n" * 1000)
    result = await tools("search_files", pattern="hit")
    assert result.data["matches"] == searching.MAX_MATCHES
    assert result.truncated
    assert "stopped after 200 matches" in result.output
    tools.put("many", "a" * 100_000 + "NEEDLE" + "b" * 100_000)
    line = (await tools("search_files", pattern="needle")).output
    assert "NEEDLE" in line
    assert len(line) < 400
    for limit, value, words in (
        ("MAX_FILES", 1, "1 files"),
        ("MAX_SECONDS", -1.0, "seconds"),
        ("MAX_FILE_SIZE", 10, ""),
    ):
        with monkeypatch.context() as patch:
            tools.put("other")
            patch.setattr(searching, limit, value)
            result = await tools("search_files", pattern="x")
            assert words in result.output


def test_a_search_can_be_stopped(tools: Tools) -> None:
    for number in range(9):
        tools.put(f"f{number}", "x")
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(True)
        return len(asked) > 3

    with opened(str(tools.ws), Guard.of(tools.ws / "h", tools.ws / "h/w")) as workspace:
        result = searching.search_files(workspace, SearchFiles("x"), stop)
    assert not result.data["complete"]
    assert result.data["matches"] < 9


@pytest.mark.parametrize("glob", ["../*", "/etc/*", "a/../../b", "{../*,x}"])
async def test_globs_stay_inside(tools: Tools, glob: str) -> None:
    with pytest.raises(ToolRefused):
        await tools("search_files", glob=glob)


async def test_globs_that_explode(tools: Tools) -> None:
    tools.put("a" * 200)
    assert not (await tools("search_files", glob="{a,b}" * 12)).ok
    assert (await tools("search_files", glob="/".join(["**"] * 200) + "/" + "*a" * 100 + "b")).ok


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("**/*", "a", True), ("**/*", "a/b/c", True), ("*.py", "x/y/z.py", True), ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/x/a.py", False), ("src/**", "src/x/a.py", True), ("src/", "src/x/a.py", True),
        ("**/t_*.{py,js}", "a/t_1.js", True), ("**/t_*.{py,js}", "a/t_1.ts", False), ("[ab]/?", "b/x", True),
        ("./a", "a", True), ("", "x/y", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/x/y/c", False), ("ОТЧЁТ*", "x/отчёт.md", True), ("[", "[", True),
    ],
)  # fmt: skip
def test_globs(glob: str, path: str, matches: bool) -> None:
    compiled = Glob(glob, case_sensitive=False)
    parts = tuple(path.split("/"))
    assert compiled.matches(parts) is matches
    if matches:
        assert all(compiled.may_match_below(parts[:depth]) for depth in range(len(parts)))
