"""Telling repetition from progress.

Two calls are equal when they ask for the same thing; parts that change by themselves (times, random ids, temporary
names) don't count. A call repeats an earlier one when nothing new has been changed in the world in between: an
A-B-A-B cycle of commands changes nothing new after its first round.
"""

import hashlib
import re
from typing import Any

import msgspec

from domain.task.state import Past, Task

LAST_CHANCE = 4
"""The fourth equal call, or the fourth repetition in a row, ends the loop."""

_NOT_ASKED = frozenset({"timeout", "wait"})
_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\b\d{10,}\b"
    r"|/tmp/[\w.-]+"
)


def canonical(value: Any) -> bytes:
    """JSON with sorted keys: equal values give equal bytes."""
    return msgspec.json.encode(value, order="deterministic")


def action_hash(tool: str, arguments: dict[str, Any], workspace: str) -> str:
    """SHA-256 of the normalised action: what is approved is exactly this."""
    return hashlib.sha256(canonical([tool, arguments, workspace])).hexdigest()


def fingerprint(tool: str, arguments: dict[str, Any]) -> str:
    """A short hash that is equal for calls that ask for the same thing."""
    kept = {k: _stable(v) for k, v in arguments.items() if k not in _NOT_ASKED}
    return hashlib.sha256(canonical([tool, kept])).hexdigest()[:16]


def repeated(task: Task, mark: str, arguments: dict[str, Any]) -> Past | None:
    """The earlier call that this one repeats, if it does. A ``wait`` makes it a poll, which is no loop."""
    if arguments.get("wait"):
        return None
    seen = next((p for p in task.past if p.fingerprint == mark), None)
    return seen if seen and seen.novelty == task.novelty else None


def _stable(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return " ".join(_VOLATILE.sub("#", value).split())
