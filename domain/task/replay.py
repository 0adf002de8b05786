"""Looking back: what a task's events say of any moment of it, and whether what was sent is what is recorded.

Pure. Events that cannot be read are stepped over and named; they never hide what stands around them."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import fields

from domain.errors import BadInput, NotFound
from domain.events import Envelope, Unreadable
from domain.messages import Message
from domain.task.context import next_hash, resolve, start_hash
from domain.task.events import ActionDirected, ContextBuilt, DirectiveRejected, HistoryRef
from domain.task.evolve import evolve
from domain.task.state import Task

HistoryOf = Callable[[tuple[HistoryRef, ...]], Sequence[Message]]
"""The messages that references to earlier tasks stand for. Raises ``NotFound`` when one is not there any more."""

Verdict = Literal["ok", "mismatch", "unknown"]


class Change(Struct, frozen=True):
    """A field of the state that an event changed. For lists, ``before`` is what went and ``after`` what came."""

    field: str
    before: Any
    after: Any
    is_list: bool = False


class ContextCheck(Struct, frozen=True):
    """A context's recorded hash against the one computed from the log. ``unknown``: something it rests on can't be
    read any more, so that a different hash proves nothing."""

    version: int
    call_id: str
    role: str
    recorded: str
    computed: str
    verdict: Verdict


class Moment(Struct, frozen=True):
    """A task as of version ``at`` of ``last``. ``changes`` are those of ``event``, the one at ``at``; ``directive`` is
    the latest up to then."""

    at: int
    last: int
    event: Envelope
    state: Task
    changes: tuple[Change, ...]
    directive: ActionDirected | DirectiveRejected | None
    checks: tuple[ContextCheck, ...]
    unreadable: tuple[Envelope, ...]

    @property
    def verdict(self) -> Verdict:
        """On the context as a whole: it is what was sent when every piece of it is."""
        found = {check.verdict for check in self.checks}
        return "mismatch" if "mismatch" in found else "unknown" if "unknown" in found else "ok"

    @property
    def first_bad(self) -> ContextCheck | None:
        """The first context that is not known to be as recorded."""
        return next((check for check in self.checks if check.verdict != "ok"), None)


def moment(task_id: str, log: Sequence[Envelope], history_of: HistoryOf, at: int | None = None) -> Moment:
    """The task at version ``at``, or as the log ends. Raises ``BadInput`` for a version there is not."""
    last = len(log)
    wanted = last if at is None else at
    if not 1 <= wanted <= last:
        raise BadInput(f"the task has the versions 1 to {last}; there is no version {wanted}")
    state = before = Task(task_id=task_id)
    directive: ActionDirected | DirectiveRejected | None = None
    checker = _Checker(history_of)
    unreadable: list[Envelope] = []
    for envelope in log[:wanted]:
        before, data = state, envelope.data
        if isinstance(data, ContextBuilt):
            checker.check(state, envelope.version, data)
        elif isinstance(data, ActionDirected | DirectiveRejected):
            directive = data
        elif isinstance(data, Unreadable):
            unreadable.append(envelope)
            checker.doubtful = True
        state = evolve(state, data)
    return Moment(
        wanted, last, log[wanted - 1], state, tuple(changes(before, state)), directive,
        tuple(checker.checks), tuple(unreadable),
    )  # fmt: skip


def changes(before: Task, after: Task) -> list[Change]:
    """The fields in which two states of a task differ, but for the version."""
    found = []
    for field in fields(Task):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if old == new or field.name == "version":
            continue
        if isinstance(old, tuple) and isinstance(new, tuple):
            kept = _common(old, new)
            found.append(Change(field.name, old[kept:], new[kept:], is_list=True))
        else:
            found.append(Change(field.name, old, new))
    return found


def _common(old: tuple[Any, ...], new: tuple[Any, ...]) -> int:
    """Length of the common beginning."""
    return next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


class _Checker:
    """Follows the chain of context hashes."""

    def __init__(self, history_of: HistoryOf) -> None:
        self._history_of = history_of
        self._chain = ""
        self.doubtful = False
        self.checks: list[ContextCheck] = []

    def check(self, before: Task, version: int, built: ContextBuilt) -> None:
        computed = ""
        try:
            if built.history is not None:
                self._chain = start_hash(built.prefix_sha256, list(self._history_of(built.history)))
            computed = next_hash(self._chain, resolve(before, built.suffix, built.send_reasoning))
        except NotFound:
            self.doubtful = True
        verdict: Verdict = "ok" if computed == built.context_sha256 else "unknown" if self.doubtful else "mismatch"
        self.checks.append(ContextCheck(version, built.call_id, built.role, built.context_sha256, computed, verdict))
        # What follows is judged by itself, not for what stands before it.
        self._chain = built.context_sha256
