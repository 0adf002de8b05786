"""given(events).when(command).then(events): tests of deciders that read like the rules they check."""

from collections.abc import Sequence

import pytest

from domain.events import Event
from domain.task.commands import Command
from domain.task.decide import decide
from domain.task.evolve import evolve
from domain.task.react import Effect, react
from domain.task.state import Task

TASK_ID = "11111111-1111-7111-8111-111111111111"


class Specification:
    """A task with a history."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.task = Task(task_id=TASK_ID)
        for event in events:
            self.task = evolve(self.task, event)
        self.happened: list[Event] = []

    def when(self, *commands: Command) -> "Specification":
        for command in commands:
            decided = decide(self.task, command)
            self.happened += decided
            for event in decided:
                self.task = evolve(self.task, event)
        return self

    def then(self, *kinds: type[Event]) -> "Specification":
        assert [type(e) for e in self.happened] == list(kinds)
        return self

    def then_state(self, **fields: object) -> "Specification":
        assert {name: getattr(self.task, name) for name in fields} == fields
        return self

    def then_wants(self, effect: type[Effect] | None) -> "Specification":
        wanted = react(self.task)
        assert (type(wanted) if wanted is not None else None) is effect
        return self

    def then_raises(self, command: Command, error: type[Exception], match: str = ".") -> "Specification":
        with pytest.raises(error, match=match):
            decide(self.task, command)
        return self


def given(*events: Event) -> Specification:
    return Specification(events)
