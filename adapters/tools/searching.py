"""``search_files``: plain text in files, or files by name. Made to be run in a thread."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator

from adapters.tools.globs import Glob
from adapters.tools.refusals import SecretFile
from adapters.tools.secrets import secret_part
from adapters.tools.workspace import Workspace
from domain.errors import ToolError
from domain.text import shown
from domain.tools import SearchFiles, ToolResult

MAX_MATCHES = 200
MAX_LINE = 300
"""Characters shown of a matching line, around the match."""
MAX_OUTPUT = 64 * 1024
MAX_FILES = 50_000
MAX_FILE_SIZE = 16 * 1024 * 1024
MAX_SECONDS = 20.0

_NEVER = frozenset({".git", ".hg", ".svn"})
_HUGE = frozenset(
    [
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        ".cache",
    ]
)
"""Skipped unless the glob spells them out."""

Path = tuple[str, ...]


def search_files(workspace: Workspace, args: SearchFiles, stop: Callable[[], bool]) -> ToolResult:
    """Lines ``path:number: text``, or paths when the pattern is empty, in a stable order; then notes in brackets on
    what was skipped and where it ended. ``stop`` is asked between files and ends the search.

    ``data``: ``matches``, ``files`` (looked at), ``complete``.
    """
    return _Search(workspace, args, stop).run()


class _Search:
    def __init__(self, workspace: Workspace, args: SearchFiles, stop: Callable[[], bool]) -> None:
        self._workspace = workspace
        self._glob = Glob(args.glob, case_sensitive=args.case_sensitive)
        self._pattern = re.compile(re.escape(args.pattern), 0 if args.case_sensitive else re.IGNORECASE)
        self._names_only = not args.pattern
        self._stop = stop
        self._deadline = time.monotonic() + MAX_SECONDS
        self._lines: list[str] = []
        self._room = MAX_OUTPUT - 2048
        self._files = 0
        self._skipped: Counter[str] = Counter()
        self._ended = ""

    def run(self) -> ToolResult:
        for path in self._walk():
            self._files += 1
            self._look(path)
            if self._over():
                break
        notes = [f"{count} {what}" for what, count in sorted(self._skipped.items())]
        lines = [*self._lines, *([] if self._lines else ["[nothing found]"])]
        if notes:
            lines.append(f"[skipped: {', '.join(notes)}]")
        if self._ended:
            lines.append(f"[{self._ended}; narrow the glob or the pattern to see the rest]")
        output = "\n".join(lines)
        data = {"matches": len(self._lines), "files": self._files, "complete": not self._ended}
        return ToolResult(
            True, output, size=len(output.encode("utf-8", "replace")), truncated=bool(self._ended), data=data
        )

    def _over(self) -> bool:
        """Whether a limit is reached; says which."""
        if len(self._lines) >= MAX_MATCHES:
            self._ended = f"stopped after {MAX_MATCHES} matches"
        elif self._room <= 0:
            self._ended = f"stopped after {MAX_OUTPUT // 1024} KiB of matches"
        elif self._files >= MAX_FILES:
            self._ended = f"stopped after {MAX_FILES} files"
        elif time.monotonic() > self._deadline:
            self._ended = f"stopped after {MAX_SECONDS:.0f} seconds"
        elif self._stop():
            self._ended = "stopped"
        return bool(self._ended)

    def _walk(self) -> Iterator[Path]:
        """The paths the glob means, folder by folder; links are not followed."""
        folders: list[Path] = [()]
        while folders and not self._over():
            folder = folders.pop()
            below: list[Path] = []
            for name, is_folder in self._listed(folder):
                path = (*folder, name)
                if not is_folder:
                    if self._glob.matches(path):
                        yield path
                elif self._enters(path):
                    below.append(path)
            folders += reversed(below)

    def _listed(self, folder: Path) -> list[tuple[str, bool]]:
        try:
            with self._workspace.folder("/".join(folder)) as (handle, _), os.scandir(handle) as entries:
                # Neither links nor pipes, sockets and devices are of interest.
                kinds = [(e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False)) for e in entries]
        except (OSError, ToolError):
            self._skipped["folders out of reach"] += 1
            return []
        return sorted((name, is_folder) for name, is_folder, is_file in kinds if is_folder or is_file)

    def _enters(self, folder: Path) -> bool:
        name = folder[-1]
        if name in _NEVER or (name in _HUGE and not self._glob.names(name)):
            self._skipped[f"{name} folders"] += 1
            return False
        return self._glob.may_match_below(folder)

    def _look(self, path: Path) -> None:
        if secret_part(path):
            self._skipped["secret files"] += 1
        elif self._names_only:
            self._add(shown("/".join(path)))
        elif (text := self._text("/".join(path))) is not None:
            self._matches(shown("/".join(path)), text)

    def _text(self, path: str) -> str | None:
        try:
            with self._workspace.file(path) as (handle, status):
                if status.st_size > MAX_FILE_SIZE:
                    self._skipped["files too large"] += 1
                    return None
                with os.fdopen(os.dup(handle), "rb") as file:
                    raw = file.read(MAX_FILE_SIZE)
        except SecretFile:
            self._skipped["secret files"] += 1
            return None
        except (OSError, ToolError):
            self._skipped["files out of reach"] += 1
            return None
        if b"\0" in raw[:8192]:
            self._skipped["binary files"] += 1
            return None
        return raw.decode("utf-8", "replace")

    def _matches(self, path: str, text: str) -> None:
        number, counted, position = 1, 0, 0
        while not self._over() and (match := self._pattern.search(text, position)):
            begin = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            end = len(text) if end < 0 else end
            number += text.count("\n", counted, match.start())
            counted = match.start()
            self._add(f"{path}:{number}: {_around(text[begin:end].rstrip(), match.start() - begin)}")
            position = end

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._room -= len(line.encode("utf-8", "replace")) + 1


def _around(line: str, at: int) -> str:
    """At most :data:`MAX_LINE` characters of a line, with the match in them."""
    if len(line) <= MAX_LINE:
        return line
    begin = max(0, min(at - MAX_LINE // 3, len(line) - MAX_LINE))
    end = begin + MAX_LINE
    return f"{'… ' if begin else ''}{line[begin:end]}{' …' if end < len(line) else ''}"
