"""Conversations and their messages."""

from typing import Any

from litestar import Controller, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody

from api.contract import ConversationBody, ConversationChange, Page
from api.reads import Reads
from api.service import Service


class ConversationController(Controller):
    path = "/v1/conversations"
    tags = ["conversations"]

    @get(summary="Conversations, the latest used first")
    async def conversations(
        self,
        reads: NamedDependency[Reads],
        archived: FromQuery[bool | None] = None,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[int] = 50,
    ) -> Page[dict[str, Any]]:
        conditions = [] if archived is None else [reads.table("conversations").c.archived == archived]
        return await reads.page("conversations", "position", cursor, limit, *conditions)

    @post(summary="Start a conversation")
    async def start(
        self, data: JSONBody[ConversationBody], reads: NamedDependency[Reads], service: NamedDependency[Service]
    ) -> dict[str, Any]:
        conversation_id = await service.start_conversation(data.title, data.workspace)
        return await reads.one("conversations", conversation_id, "conversation")

    @get("/{conversation_id:str}", summary="One conversation")
    async def conversation(self, conversation_id: FromPath[str], reads: NamedDependency[Reads]) -> dict[str, Any]:
        return await reads.one("conversations", conversation_id, "conversation")

    @patch("/{conversation_id:str}", summary="Rename or archive")
    async def change(
        self,
        conversation_id: FromPath[str],
        data: JSONBody[ConversationChange],
        reads: NamedDependency[Reads],
        service: NamedDependency[Service],
    ) -> dict[str, Any]:
        await service.change_conversation(conversation_id, data.title, data.archived)
        return await reads.one("conversations", conversation_id, "conversation")

    @get("/{conversation_id:str}/messages", summary="Messages, oldest first")
    async def messages(
        self,
        conversation_id: FromPath[str],
        reads: NamedDependency[Reads],
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[int] = 50,
    ) -> Page[dict[str, Any]]:
        await reads.one("conversations", conversation_id, "conversation")
        mine = reads.table("messages").c.conversation_id == conversation_id
        return await reads.page("messages", "position", cursor, limit, mine, ascending=True)
