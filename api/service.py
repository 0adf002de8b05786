"""What people and programs can ask for, whichever door they come through."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from adapters.runtime.session import in_request
from adapters.store.event_store import Write, new_id
from api.runtime import Runtime
from domain import conversation as conv
from domain import grants
from domain.errors import BadInput, ConcurrencyConflict, NotFound, TooLarge
from domain.events import Actor, Envelope
from domain.ids import GRANTS_STREAM, conversation_stream, derived_id, task_stream
from domain.task import commands as c
from domain.task.decide import decide
from domain.task.events import ApprovalRequested, Limits
from domain.task.state import Task, ToolCallState

MAX_MESSAGE = 256_000
"""Characters in one message."""
_ATTEMPTS = 8
R = TypeVar("R")


class Turn(Struct, frozen=True):
    """A task that was just made, and the position of its first event."""

    task_id: str
    conversation_id: str
    position: int


class Service:
    """Commands from outside, as events. Conflicts with a worker that appends at the same time are decided again."""

    def __init__(self, runtime: Runtime) -> None:
        self._r = runtime
        self._store = runtime.database.store
        self._aggregates = runtime.database.aggregates

    async def send_message(
        self, message: str, conversation_id: str | None = None, workspace: str | None = None, reflect: bool = True
    ) -> Turn:
        """Adds a person's message and makes its task, in one append."""
        text = _checked_message(message)
        task_id = new_id()

        def attempt() -> Turn:
            if conversation_id is None:
                owner = conv.Conversation(new_id())
                folder = self._workspace(workspace)
                events = conv.start(owner, text, folder)
                owner = conv.Conversation(owner.conversation_id, title=conv.shortened(text), workspace=folder)
            else:
                owner = self._aggregates.conversation(_checked_id(conversation_id, "conversation"))
                folder = self._workspace(workspace) if workspace else owner.workspace
                events = []
            events += conv.add_message(owner, derived_id(task_id, "message"), task_id, text)
            created = decide(
                Task(task_id=task_id), c.Create(owner.conversation_id, text, folder, reflect, self._limits())
            )
            writes = [
                Write(conversation_stream(owner.conversation_id), owner.version, events),
                Write(task_stream(task_id), 0, created),
            ]
            stored = self._store.append(writes, actor="person", correlation_id=task_id)
            return Turn(task_id, owner.conversation_id, stored[-1].position)

        return await self._again(attempt)

    async def start_conversation(self, title: str, workspace: str | None) -> str:
        def attempt() -> str:
            owner = conv.Conversation(new_id())
            events = conv.start(owner, title, self._workspace(workspace))
            self._store.append([Write(conversation_stream(owner.conversation_id), 0, events)], actor="person")
            return owner.conversation_id

        return await in_request(attempt)

    async def change_conversation(self, conversation_id: str, title: str | None, archived: bool | None) -> None:
        def attempt() -> None:
            owner = self._aggregates.conversation(_checked_id(conversation_id, "conversation"))
            events = conv.rename(owner, title) if title is not None else []
            events += conv.archive(owner, archived) if archived is not None else []
            if events:
                stream = conversation_stream(conversation_id)
                self._store.append([Write(stream, owner.version, events)], actor="person")

        await self._again(attempt)

    async def command(self, task_id: str, command: c.Command, actor: Actor = "person") -> list[Envelope]:
        """Carries out one command on a task. Raises ``NotFound`` or ``Conflict``."""

        def attempt() -> list[Envelope]:
            loaded = self._aggregates.task(_checked_id(task_id, "task"))
            events = decide(loaded.state, command)
            return self._append_task(loaded.state, loaded.last_event_id, events, actor)

        return await self._again(attempt)

    async def allow(self, task_id: str, approval_id: str, forever: bool) -> list[Envelope]:
        """Allows the pending action once, or for ever: then a grant is issued in the same append."""

        def attempt() -> list[Envelope]:
            loaded = self._aggregates.task(task_id)
            task = loaded.state
            grant_id = ""
            if forever:
                standing = self._aggregates.grants()
                sha = task.approval.action_sha256 if task.approval else ""
                grant_id = standing.active.get(sha) or new_id()
            events = decide(task, c.Grant(approval_id, "forever" if forever else "once", grant_id))
            more = []
            if forever:
                assert isinstance(task.call, ToolCallState)
                issued = grants.GrantIssued(
                    grant_id, task.call.tool, task.workspace, task.call.arguments, task.call.action_sha256, task_id
                )
                more = [Write(GRANTS_STREAM, standing.version, grants.issue(standing, issued))]
            return self._append_task(task, loaded.last_event_id, events, "person", more)

        return await self._again(attempt)

    async def task_of_approval(self, approval_id: str) -> str:
        """The task that asked, from the log itself: an approval can be answered whatever state the read models are in."""
        checked = _checked_id(approval_id, "approval")
        found = await in_request(self._store.find, "task.approval_requested.v1", checked)
        for envelope in found:
            if isinstance(envelope.data, ApprovalRequested) and envelope.data.approval_id == checked:
                return envelope.correlation_id
        raise NotFound(f"there is no approval {checked!r}")

    async def revoke(self, grant_id: str) -> None:
        def attempt() -> None:
            state = self._aggregates.grants()
            events = grants.revoke(state, grant_id)
            self._store.append([Write(GRANTS_STREAM, state.version, events)], actor="person")

        await self._again(attempt)

    async def task(self, task_id: str) -> Task:
        loaded = await in_request(self._aggregates.task, _checked_id(task_id, "task"))
        return loaded.state

    def _append_task(
        self, task: Task, caused_by: str, events: list[Any], actor: Actor, more: list[Write] | None = None
    ) -> list[Envelope]:
        writes = [Write(task_stream(task.task_id), task.version, events), *(more or [])]
        return self._store.append(writes, actor=actor, correlation_id=task.task_id, caused_by=caused_by)

    async def _again(self, attempt: Callable[[], R]) -> R:
        for n in range(_ATTEMPTS):
            try:
                return await in_request(attempt)
            except ConcurrencyConflict:
                if n == _ATTEMPTS - 1:
                    raise
                await asyncio.sleep(0.005 * (n + 1))
        raise AssertionError("unreachable")

    def _limits(self) -> Limits:
        s = self._r.settings
        return Limits(s.max_iterations, s.max_task_tokens, s.max_task_seconds)

    def _workspace(self, given: str | None) -> str:
        """An existing folder, absolute. DuckLM's own home is no workspace, but for the default one in it."""
        default, home = self._r.settings.workspace_path, self._r.home
        if not given:
            return str(default)
        if "\x00" in given or len(given) > 4000:
            raise BadInput("the workspace's name contains a NUL or is too long")
        try:
            path = Path(given).expanduser()
            path = (path if path.is_absolute() else default / path).resolve()
            there = path.is_dir()
        except (OSError, RuntimeError) as error:
            raise BadInput(f"the workspace {given[:200]!r} can't be used: {error}") from error
        if not there:
            raise BadInput(f"the workspace {path} is not a folder; make it first, or leave it out for {default}")
        inside_home = path == home or home in path.parents
        holds_home = path in home.parents
        if (inside_home and path != default and default not in path.parents) or (holds_home and path == Path("/")):
            raise BadInput(f"{path} can't be a workspace: DuckLM keeps its own state there")
        return str(path)


def _checked_message(message: str) -> str:
    if len(message) > MAX_MESSAGE:
        raise TooLarge(
            f"the message has {len(message)} characters, {MAX_MESSAGE} are allowed; "
            "put the text into a file of the workspace and ask about it"
        )
    text = message.replace("\x00", "␀")
    if not text.strip():
        raise BadInput("the message is empty")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"the message is not valid Unicode: {error}") from error
    return text


def _checked_id(value: str, what: str) -> str:
    """Ids come from outside: whatever can't be one is as unknown as one that is not there."""
    if not value or len(value) > 100 or not all(ch.isalnum() or ch in "-_" for ch in value):
        raise NotFound(f"there is no {what} {value[:100]!r}")
    return value
