"""One turn of a conversation at the terminal: events are shown, questions asked and answered, until the task ends or
nobody is there to go on with it."""

import asyncio
import contextlib
import signal
from typing import Any

import httpx
from msgspec import Struct

from api.cli.client import Client, envelope_of
from api.cli.feed import Feed
from api.cli.keys import key_by_key, next_key, read_line
from api.cli.narrator import Narrator
from api.cli.screen import Screen
from api.cli.sse import ServerEvent
from domain import errors
from domain.errors import Conflict, DuckError, SetupError
from domain.task import events as e

INTERRUPTED, TERMINATED = 130, 143
ANSWER_FIELDS = (
    "task_id", "conversation_id", "status", "response", "pending_approvals", "position", "waiting_for", "error", "notices",
)  # fmt: skip


class Manner(Struct, frozen=True):
    """How a turn is held: ``asks`` when somebody can press keys, ``patient`` when somebody watches, ``allow_all`` to
    allow once whatever is asked for; ``here`` when the server ends with the turn."""

    asks: bool
    patient: bool
    allow_all: bool = False
    here: bool = False


class _Stop(Struct, frozen=True):
    """The turn is left although its task has not ended."""

    code: int


class _Key(Struct, frozen=True):
    key: str
    reason: str = ""


class _Interrupt(Struct, frozen=True):
    pass


Item = ServerEvent | DuckError | _Key | _Interrupt | _Stop


class Turn:
    """Use it once: :meth:`run` gives the answer object and the exit code."""

    def __init__(self, client: Client, screen: Screen, manner: Manner) -> None:
        self._client = client
        self._screen = screen
        self._manner = manner
        self._narrator = Narrator(screen)
        self._feed = Feed(client, screen)
        self._items: asyncio.Queue[Item] = asyncio.Queue()
        self._approval: e.ApprovalRequested | None = None
        self._asking: asyncio.Task[None] | None = None
        self._interrupts = 0
        self._failure = 1

    async def run(self, path: str, body: Any) -> tuple[dict[str, Any], int]:
        """Sends ``body`` and follows what it starts. Raises ``DuckError``."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._items.put_nowait, _Interrupt())
        loop.add_signal_handler(signal.SIGTERM, self._items.put_nowait, _Stop(TERMINATED))
        jobs = [asyncio.create_task(self._pump(path, body)), asyncio.create_task(self._tick())]
        try:
            while True:
                outcome = await self._take(await self._items.get())
                if isinstance(outcome, _Stop):
                    return (await self._answer_now() if self._feed.task_id else {}), outcome.code
                if outcome is not None:
                    return outcome, self._code(outcome)
        finally:
            self._screen.answer_ends()
            loop.remove_signal_handler(signal.SIGINT)
            loop.remove_signal_handler(signal.SIGTERM)
            for job in (*jobs, *([self._asking] if self._asking else [])):
                job.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await job

    async def _pump(self, path: str, body: Any) -> None:
        try:
            async for event in self._feed.events(path, body):
                self._items.put_nowait(event)
        except DuckError as error:
            self._items.put_nowait(error)
        except httpx.TransportError as error:
            self._items.put_nowait(
                SetupError(f"the connection was lost before an answer came ({error}); look into `ducklm tasks`")
            )

    async def _tick(self) -> None:
        while True:
            self._screen.tick()
            await asyncio.sleep(0.12)

    async def _take(self, item: Item) -> dict[str, Any] | _Stop | None:
        match item:
            case DuckError():
                raise item
            case _Stop():
                return item
            case _Interrupt():
                return await self._interrupted()
            case _Key():
                await self._answered(item)
                return None
            case ServerEvent(name="done"):
                return dict(item.data)
            case ServerEvent(name="event"):
                return await self._happened(envelope_of(item.data).data)
        self._narrator.delta(item)
        return None

    async def _happened(self, event: Any) -> _Stop | None:
        self._narrator.event(event)
        match event:
            case e.ApprovalRequested():
                return await self._approval_wanted(event)
            case e.ApprovalGranted() | e.ApprovalDenied():
                self._stop_asking("answered")
            case e.TaskCancelled():
                self._stop_asking("not needed any more")
            case e.TaskFailed(error=name):
                self._failure = _exit_code(name)
            case e.TaskPaused(resumes=resumes):
                return self._paused(resumes)
        return None

    def _paused(self, resumes: str) -> _Stop | None:
        if resumes == "model" and self._manner.patient:
            return None
        first = "with `ducklm up`, then " if self._manner.here else ""
        if resumes == "model":
            how = f"{first}by itself when the model server answers"
        else:
            how = f"{first}with `ducklm tasks continue {self._feed.task_id}`"
        self._screen.note(f"The task is kept; it goes on {how}.", "yellow")
        return _Stop(6 if resumes == "model" else 4)

    async def _approval_wanted(self, wanted: e.ApprovalRequested) -> _Stop | None:
        self._approval = wanted
        if self._manner.allow_all:
            self._screen.note(f"  allowed once by --yes: {wanted.tool}", "yellow")
            await self._answered(_Key("y"))
            return None
        if not self._manner.asks:
            self._question(wanted)
            first = "`ducklm up`, then " if self._manner.here else ""
            self._screen.note(
                f"Nobody can answer here. The task waits; answer with {first}`ducklm approvals allow "
                f"{wanted.approval_id}` or `ducklm approvals deny {wanted.approval_id}`.",
                "yellow",
            )
            return _Stop(4)
        self._asking = asyncio.create_task(self._ask(wanted))
        return None

    def _question(self, wanted: e.ApprovalRequested) -> None:
        self._screen.question(wanted.tool, wanted.arguments, wanted.risk, wanted.reason, self._manner.asks)

    async def _ask(self, wanted: e.ApprovalRequested) -> None:
        with key_by_key():
            self._question(wanted)
            key, reason = await next_key("yan"), ""
        if key == "n":
            self._screen.note("  no. Why? (goes to the model; Enter for no reason)", "yellow")
            reason = await read_line()
        self._items.put_nowait(_Key(key, reason))

    async def _answered(self, answer: _Key) -> None:
        wanted, self._approval = self._approval, None
        if wanted is None:
            return
        verb = {"y": "allow_once", "a": "allow_forever", "n": "deny"}[answer.key]
        said = {"y": "yes, once", "a": "yes, always", "n": "denied"}[answer.key]
        try:
            body = {"reason": answer.reason} if answer.key == "n" else None
            await self._client.post(f"/v1/approvals/{wanted.approval_id}/{verb}", body)
            self._screen.note(f"  {said}", "green" if answer.key != "n" else "yellow")
        except Conflict as conflict:
            self._screen.note(f"  {conflict}")

    def _stop_asking(self, why: str) -> None:
        """Somebody answered elsewhere, or the task went away."""
        if self._approval is not None:
            self._approval = None
            if self._asking is not None:
                self._asking.cancel()
            self._screen.note(f"  {why} elsewhere")

    async def _interrupted(self) -> _Stop | None:
        self._interrupts += 1
        if self._interrupts > 1 or not self._feed.task_id:
            return _Stop(INTERRUPTED)
        self._screen.note("cancelling the task … (Ctrl-C again leaves at once)", "yellow")
        if self._asking is not None:
            self._asking.cancel()
        self._approval = None
        with contextlib.suppress(Conflict):
            await self._client.post(f"/v1/tasks/{self._feed.task_id}/cancel", {"reason": "cancelled at the terminal"})
        return None

    async def _answer_now(self) -> dict[str, Any]:
        try:
            task = await self._client.get(f"/v1/tasks/{self._feed.task_id}")
        except DuckError:
            return {"task_id": self._feed.task_id}
        return {name: task.get(name) for name in ANSWER_FIELDS}

    def _code(self, answer: dict[str, Any]) -> int:
        self._narrator.ended(answer)
        if answer["status"] == "completed":
            return 0
        if self._interrupts:
            return INTERRUPTED
        return self._failure


def _exit_code(error: str) -> int:
    """The exit code of an error's class, by its name."""
    from api.problems import kind_of  # loads the web framework, which is for servers

    cls = getattr(errors, error, None)
    return kind_of(cls("")).exit_code if isinstance(cls, type) and issubclass(cls, DuckError) else 1
