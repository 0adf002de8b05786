"""The events of one turn, from the request that starts it to the end of its task, over as many connections as it takes."""

from collections.abc import AsyncIterator
from typing import Any

import httpx

from api.cli.client import Client
from api.cli.screen import Screen
from api.cli.sse import ServerEvent
from domain.errors import SetupError
from domain.task.state import ENDED


class Feed:
    """``task_id`` is "" until the first event has told it."""

    def __init__(self, client: Client, screen: Screen) -> None:
        self._client = client
        self._screen = screen
        self._position = 0
        self._is_lost = False
        self.task_id = ""

    async def events(self, path: str, body: Any) -> AsyncIterator[ServerEvent]:
        """Everything until ``done``. Raises ``DuckError``, and ``httpx.TransportError`` while no task is known."""
        try:
            async for event in self._client.stream("POST", path, body):
                if event.name == "event" and not self.task_id:
                    self.task_id = str(event.data["correlation_id"])
                self._position = event.position or self._position
                if event.name == "error" and not self.task_id:
                    raise SetupError(str(event.data.get("detail")))
                if event.name == "error" or (event.name == "done" and event.data["status"] not in ENDED):
                    break  # it waits, or something went wrong on the way: the task is followed further below
                yield event
                if event.name == "done":
                    return
        except httpx.TransportError:
            if not self.task_id:
                raise
        if not self.task_id:
            raise SetupError("the connection was closed before the message had become a task; look into `ducklm tasks`")
        async for event in self._client.follow(self.task_id, self._position, self._lost):
            self._position = event.position or self._position
            self._is_lost = False
            yield event

    def _lost(self, why: str) -> None:
        if not self._is_lost:
            self._screen.note(f"! the connection is lost ({why}); the task goes on, and it is tried again", "yellow")
        self._is_lost = True
        self._screen.status("connecting again")
