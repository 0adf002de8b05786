"""The tool gateway: judges a call, and dispatches it to its tool."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from adapters.tools.guard import Guard
from adapters.tools.listing import list_dir
from adapters.tools.reading import file_read
from adapters.tools.refusals import Unsuitable
from adapters.tools.searching import search_files
from adapters.tools.shell import ShellLimits, shell_exec
from adapters.tools.shell_policy import judge_command
from adapters.tools.workspace import Workspace, opened
from adapters.tools.writing import check_writing, file_write, is_startup_file
from domain.errors import ToolError, ToolRefused
from domain.text import shown, storable
from domain.tools import (
    CATALOGUE,
    FileRead,
    FileWrite,
    ListDir,
    SearchFiles,
    ShellExec,
    ToolGateway,
    ToolInvocation,
    ToolResult,
    Verdict,
)


class Gateway(ToolGateway):
    """The tools that work on the local machine. Stateless; calls may run side by side.

    ``home`` is DuckLM's own folder, out of reach for every tool, but for ``workspace_root``, the default workspace, when
    that lies in it. ``person`` is the home of whoever runs DuckLM (by default the current user's).
    """

    def __init__(
        self, home: Path, workspace_root: Path, *, person: Path | None = None, limits: ShellLimits | None = None
    ) -> None:
        self._guard = Guard.of(home, workspace_root, person)
        self._limits = limits or ShellLimits()

    def assess(self, call: ToolInvocation) -> Verdict:
        """See ``ToolGateway``. May touch the disk, but reads no content."""
        try:
            args = _arguments(call)
            with opened(call.workspace, self._guard) as workspace:
                return _judge(workspace, args)
        except Unsuitable:
            # Allowed as far as the rules go; that it can't be done is the tool's to say.
            return Verdict("allow", "low", "inside the workspace")
        except ToolError as error:
            return Verdict("deny", "medium", str(error))
        except OSError as error:
            return Verdict("deny", "medium", f"it could not be judged: {error}")

    async def run(self, call: ToolInvocation, on_output: Callable[[str], None]) -> ToolResult:
        """See ``ToolGateway``. ``ToolRefused`` also for what an approval can't allow. Only ``shell_exec`` has output
        while it runs."""
        args = _arguments(call)
        try:
            if isinstance(args, ShellExec):
                result = await self._shell(call, args, on_output)
            else:
                result = await self._files(call, args)
        except Unsuitable as error:
            result = ToolResult(False, str(error))
        return msgspec.structs.replace(result, output=storable(result.output))

    async def _shell(self, call: ToolInvocation, args: ShellExec, on_output: Callable[[str], None]) -> ToolResult:
        with opened(call.workspace, self._guard) as workspace:
            verdict = await asyncio.to_thread(judge_command, args.command, workspace)
            if verdict.decision == "deny":
                raise ToolRefused(verdict.reason)
            return await shell_exec(workspace, args, call.call_id, on_output, self._limits)

    async def _files(self, call: ToolInvocation, args: Struct) -> ToolResult:
        stop = threading.Event()

        def work() -> ToolResult:
            with opened(call.workspace, self._guard) as workspace:
                return _file_tool(workspace, args, call.call_id, stop.is_set)

        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            # A thread can't be killed: a search is told to stop, a write ends, so that its outcome is not left open.
            stop.set()
            await asyncio.wait([working])
            raise


def _arguments(call: ToolInvocation) -> Struct:
    spec = CATALOGUE.get(call.tool)
    if spec is None:
        raise ToolError(f"there is no tool {shown(call.tool)}; there are: {', '.join(CATALOGUE)}")
    try:
        return msgspec.convert(call.arguments, spec.arguments)
    except msgspec.ValidationError as error:
        raise ToolError(f"{call.tool}: {error}") from error


def _judge(workspace: Workspace, args: Struct) -> Verdict:
    if isinstance(args, ShellExec):
        return judge_command(args.command, workspace)
    if isinstance(args, FileWrite):
        check_writing(workspace, args.path)
        if is_startup_file(workspace, args.path):
            return Verdict("ask", "high", f"other programs run or obey {shown(args.path)} by themselves")
        return Verdict("allow", "low", "writes inside the workspace")
    if isinstance(args, ListDir | FileRead):
        with workspace.entry(args.path, directory=isinstance(args, ListDir)):
            pass
    return Verdict("allow", "low", "reads inside the workspace")


def _file_tool(workspace: Workspace, args: Struct, call_id: str, stop: Callable[[], bool]) -> ToolResult:
    try:
        match args:
            case ListDir():
                return list_dir(workspace, args)
            case FileRead():
                return file_read(workspace, args)
            case FileWrite():
                return file_write(workspace, args, call_id)
            case SearchFiles():
                return search_files(workspace, args, stop)
    except OSError as error:
        raise ToolError(f"the operating system reports: {error.strerror or error}") from error
    raise ToolError(f"{type(args).__name__} is no tool of this gateway")
