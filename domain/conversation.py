"""A conversation: a title, a workspace, and the order of the messages and tasks in it."""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from domain.errors import Conflict
from domain.events import Event, event

TITLE_LENGTH = 80


@event("conversation.started.v1")
class ConversationStarted(Event, frozen=True):
    title: str
    workspace: str


@event("conversation.renamed.v1")
class ConversationRenamed(Event, frozen=True):
    title: str


@event("conversation.archived.v1")
class ConversationArchived(Event, frozen=True):
    archived: bool = True


@event("conversation.message_added.v1")
class MessageAdded(Event, frozen=True):
    """A person's message and the task it started. The answer is the task's ResponseCompleted."""

    message_id: str
    task_id: str
    role: Literal["user"]
    text: str


class Conversation(Struct, frozen=True):
    """``tasks`` in the order in which their messages were sent."""

    conversation_id: str = ""
    version: int = 0
    title: str = ""
    workspace: str = ""
    archived: bool = False
    tasks: tuple[str, ...] = ()


def evolve(state: Conversation, happened: Event) -> Conversation:
    changes: dict[str, Any] = {}
    match happened:
        case ConversationStarted(title=title, workspace=workspace):
            changes = {"title": title, "workspace": workspace}
        case ConversationRenamed(title=title):
            changes = {"title": title}
        case ConversationArchived(archived=archived):
            changes = {"archived": archived}
        case MessageAdded(task_id=task_id):
            changes = {"tasks": (*state.tasks, task_id)}
    return replace(state, version=state.version + 1, **changes)


def start(state: Conversation, title: str, workspace: str) -> list[Event]:
    if state.version:
        raise Conflict(f"conversation {state.conversation_id} exists already")
    return [ConversationStarted(shortened(title), workspace)]


def add_message(state: Conversation, message_id: str, task_id: str, text: str) -> list[Event]:
    """A message to a conversation; the first one gives it its title, one to an archived conversation brings it back."""
    happened: list[Event] = [MessageAdded(message_id, task_id, "user", text)]
    if not state.title:
        happened.append(ConversationRenamed(shortened(text)))
    if state.archived:
        happened.append(ConversationArchived(False))
    return happened


def rename(state: Conversation, title: str) -> list[Event]:
    return [ConversationRenamed(shortened(title))] if shortened(title) != state.title else []


def archive(state: Conversation, archived: bool) -> list[Event]:
    return [ConversationArchived(archived)] if archived != state.archived else []


def shortened(text: str) -> str:
    """The first line of a text, cut at a word where possible."""
    line = " ".join(text.strip().split("\n", 1)[0].split())
    if len(line) <= TITLE_LENGTH:
        return line
    return line[: TITLE_LENGTH - 1].rsplit(" ", 1)[0] + "…"
