"""Sending messages and going on with tasks."""

from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from litestar.response import ServerSentEvent

from api.contract import ChatAnswer, ChatBody, ContinueBody
from api.runtime import Runtime
from api.service import Service
from api.streaming import TaskFollower, wait_for_turn
from domain.task.commands import Resume


class ChatController(Controller):
    path = "/v1"
    tags = ["chat"]

    @post("/chat", status_code=200, summary="Send a message, answer when its task ends or waits")
    async def chat(
        self, data: JSONBody[ChatBody], service: NamedDependency[Service], runtime: NamedDependency[Runtime]
    ) -> ChatAnswer:
        turn = await service.send_message(data.message, data.conversation_id, data.workspace, data.reflect)
        answer: ChatAnswer = await wait_for_turn(runtime, turn.task_id)
        return answer

    @post("/chat/stream", status_code=200, summary="Send a message, stream its task")
    async def chat_stream(
        self, data: JSONBody[ChatBody], service: NamedDependency[Service], runtime: NamedDependency[Runtime]
    ) -> ServerSentEvent:
        turn = await service.send_message(data.message, data.conversation_id, data.workspace, data.reflect)
        return ServerSentEvent(TaskFollower(runtime, turn.task_id, 0, until_waits=True).messages())

    @post("/tasks/{task_id:str}/continue", status_code=200, summary="Go on with a task, answer when it ends or waits")
    async def go_on(
        self,
        task_id: FromPath[str],
        service: NamedDependency[Service],
        runtime: NamedDependency[Runtime],
        data: JSONBody[ContinueBody | None] = None,
    ) -> ChatAnswer:
        following, _ = await _continued(task_id, data, service)
        answer: ChatAnswer = await wait_for_turn(runtime, following)
        return answer

    @post("/tasks/{task_id:str}/continue/stream", status_code=200, summary="Go on with a task, stream it")
    async def go_on_stream(
        self,
        task_id: FromPath[str],
        service: NamedDependency[Service],
        runtime: NamedDependency[Runtime],
        data: JSONBody[ContinueBody | None] = None,
    ) -> ServerSentEvent:
        following, after = await _continued(task_id, data, service)
        return ServerSentEvent(TaskFollower(runtime, following, after, until_waits=True).messages())


async def _continued(task_id: str, data: ContinueBody | None, service: Service) -> tuple[str, int]:
    """(task to follow, position to start after). A message makes the next task of the same conversation."""
    if data is not None and data.message is not None:
        task = await service.task(task_id)
        turn = await service.send_message(data.message, task.conversation_id, task.workspace, task.reflect)
        return turn.task_id, 0
    happened = await service.command(task_id, Resume())
    return task_id, happened[0].position - 1
