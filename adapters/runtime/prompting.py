"""What stands at the start of every request, and which earlier tasks come after it."""

from functools import cache, lru_cache

import msgspec

from adapters.store.blobs import Blobs
from adapters.store.tasks import Aggregates
from domain.directive import native_tools
from domain.messages import Message
from domain.model import Transport
from domain.task.context import Earlier, Prefix, message_tokens, plain_transcript, transcript
from domain.task.events import HistoryRef
from domain.task.state import Task
from domain.tools import CATALOGUE, argument_schema


@cache
def make_prefix(constitution: str, transport: Transport) -> Prefix:
    """The one prefix for all roles. Nothing in it changes while the program runs: no time, no name, no task."""
    if transport == "native_tools":
        return Prefix(constitution.strip(), native_tools())
    lines = [constitution.strip(), "", "Tools:"]
    for spec in CATALOGUE.values():
        properties = argument_schema(spec.arguments)["properties"]
        arguments = ", ".join(f"{name} ({p.get('type')}): {p.get('description', '')}" for name, p in properties.items())
        lines.append(f"- {spec.name}: {spec.description} Arguments: {arguments}.")
    return Prefix("\n".join(lines))


class History:
    """Earlier tasks of a conversation as they stand before a later one."""

    def __init__(self, aggregates: Aggregates, blobs: Blobs) -> None:
        self._aggregates = aggregates
        self._blobs = blobs
        # What these hold never changes: a prefix by its hash, an ended task as of a version.
        self._transcript = lru_cache(256)(self._load_transcript)
        self._prefix = lru_cache(64)(self._load_prefix)

    def choose(self, task: Task, transport: Transport, budget: int) -> tuple[tuple[Earlier, ...], tuple[Earlier, ...]]:
        """(what goes in, what is the first to stay out), oldest first. ``budget`` in tokens.

        As long as it fits, the history starts where the previous task's did, so that the prompt stays an extension of
        the last one. When it no longer fits, it is cut to half the budget at once, not a little at every turn."""
        order = self._aggregates.conversation(task.conversation_id).tasks
        before = order[: order.index(task.task_id)] if task.task_id in order else ()
        chosen: list[Earlier] = []
        start, room = "", budget
        for task_id in reversed(before):
            found = self._ended(task_id, transport)
            if found is None:
                continue
            if not chosen:
                refs = self._aggregates.task(task_id).state.history or ()
                start = refs[0].task_id if refs else task_id
            if found.tokens > room:
                return self._halved(chosen, budget), (found,)
            chosen.insert(0, found)
            room -= found.tokens
            if task_id == start:
                break
        return tuple(chosen), ()

    def _halved(self, chosen: list[Earlier], budget: int) -> tuple[Earlier, ...]:
        kept, room = len(chosen), budget // 2
        while kept and chosen[kept - 1].tokens <= room:
            kept -= 1
            room -= chosen[kept].tokens
        return tuple(chosen[kept:])

    def messages(self, refs: tuple[HistoryRef, ...]) -> tuple[Message, ...]:
        """The messages that references stand for, exactly as they were."""
        return tuple(m for ref in refs for m in self._transcript(ref))

    def prefix(self, sha256: str) -> Prefix:
        return self._prefix(sha256)

    def _load_transcript(self, ref: HistoryRef) -> tuple[Message, ...]:
        task = self._aggregates.task(ref.task_id, at=ref.version).state
        return plain_transcript(task) if ref.plain else transcript(task)

    def _load_prefix(self, sha256: str) -> Prefix:
        return msgspec.json.decode(self._blobs.get(sha256), type=Prefix)

    def base(self, task: Task) -> tuple[Prefix, list[Message]]:
        """What stands before the task's own messages in all its requests: prefix, system message, earlier tasks."""
        prefix = self.prefix(task.prefix_sha256)
        return prefix, [Message("system", prefix.system), *self.messages(task.history or ())]

    def exact(self, task: Task) -> tuple[Prefix, list[Message]]:
        """Prefix and all messages of the task's latest request, byte for byte, from events and blobs alone."""
        prefix, before = self.base(task)
        return prefix, [*before, *task.messages]

    def _ended(self, task_id: str, transport: Transport) -> Earlier | None:
        task = self._aggregates.task(task_id).state
        if not task.ended or not task.messages:
            return None
        plain = transport != task.transport
        messages = plain_transcript(task) if plain else transcript(task)
        return Earlier(HistoryRef(task_id, task.version, plain), messages, sum(map(message_tokens, messages)))
