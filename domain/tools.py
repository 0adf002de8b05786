"""The tools an agent may ask for: their names, typed arguments, and how safe a second run is."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta, Struct

Safety = Literal["repeatable", "idempotent", "probe", "unsafe"]
"""After a crash with a start and no outcome: run again · run again with the same call id · ask the world · never."""


def _doc(text: str) -> Meta:
    return Meta(description=text)


class ListDir(Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, _doc("folder, relative to the workspace")] = "."


class FileRead(Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, _doc("file, relative to the workspace")]
    offset: Annotated[int, Meta(ge=0, description="first line to show, counted from 0")] = 0
    limit: Annotated[int, Meta(ge=1, le=5000, description="how many lines")] = 400


class FileWrite(Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, _doc("file, relative to the workspace; folders are made")]
    content: Annotated[str, _doc("the whole new content")]


class SearchFiles(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[str, _doc("text to find in lines; empty lists the files that match the glob")] = ""
    glob: Annotated[str, _doc("which files, like **/*.py")] = "**/*"
    case_sensitive: Annotated[bool, _doc("whether upper and lower case differ")] = False


class ShellExec(Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, _doc("a shell command, run in the workspace")]
    timeout: Annotated[int, Meta(ge=1, le=3600, description="seconds until it is killed")] = 120
    wait: Annotated[int, Meta(ge=0, le=600, description="seconds to wait first, to poll something slow")] = 0


class ToolSpec(Struct, frozen=True):
    """One entry of the catalogue. ``mutating`` tools change the world, so equal calls after them are no repetition."""

    name: str
    description: str
    arguments: type[Struct]
    safety: Safety
    mutating: bool = False


CATALOGUE: dict[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        ToolSpec("list_dir", "List a folder of the workspace.", ListDir, "repeatable"),
        ToolSpec("file_read", "Read lines of a text file.", FileRead, "repeatable"),
        ToolSpec("file_write", "Create or replace a text file.", FileWrite, "idempotent", mutating=True),
        ToolSpec("search_files", "Find text in files, or files by name.", SearchFiles, "repeatable"),
        ToolSpec(
            "shell_exec", "Run a shell command. The person may be asked first.", ShellExec, "unsafe", mutating=True
        ),
    )
}
FINISH = "finish"
"""Native transport only: the call that says no more tools are needed."""


def argument_schema(arguments: type[Struct]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments: one flat object, without references (grammar engines like that)."""
    schema, components = msgspec.json.schema_components([arguments], ref_template="{name}")
    del schema
    flat = dict(next(iter(components.values())))
    for noise in ("title", "description"):
        flat.pop(noise, None)
    for prop in flat["properties"].values():
        prop.pop("default", None)
    return {**flat, "additionalProperties": False}


class ToolInvocation(Struct, frozen=True):
    """A call as it is run. ``arguments`` are validated builtins; ``attempt`` counts from 1."""

    task_id: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    workspace: str
    attempt: int = 1


class ToolResult(Struct, frozen=True):
    """What a tool gave back. ``output`` is text, capped; ``size`` the bytes there were, ``data`` facts by tool
    (``file_write``: sha256_before, sha256_after, created; ``shell_exec``: duration_ms, timed_out)."""

    ok: bool
    output: str
    exit_code: int | None = None
    size: int = 0
    truncated: bool = False
    data: dict[str, Any] = {}


class Verdict(Struct, frozen=True):
    """What policy says of an action. ``reason`` is for people and for the model."""

    decision: Literal["allow", "ask", "deny"]
    risk: Literal["low", "medium", "high"] = "low"
    reason: str = ""


class ToolGateway(Protocol):
    def assess(self, call: ToolInvocation) -> Verdict:
        """Judges an action before it is run: path rules, secret files, command rules. Never raises for bad calls."""
        ...

    async def run(self, call: ToolInvocation, on_output: Callable[[str], None]) -> ToolResult:
        """Runs it. A tool that fails in its own terms returns ``ok=False``; raises ``ToolError`` when it could not run.
        Cancelling the coroutine ends every process it started within a second."""
        ...
