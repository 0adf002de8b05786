"""Names derived from other names, so that a replay derives the same ones."""

from uuid import UUID, uuid5

TASK_PREFIX = "task-"
CONVERSATION_PREFIX = "conversation-"
GRANTS_STREAM = "grants"
SERVERS_STREAM = "servers"

_NAMESPACE = UUID("6f1d8a52-6c1e-5a6b-9d2c-3d0c5d0f7a11")


def task_stream(task_id: str) -> str:
    return TASK_PREFIX + task_id


def conversation_stream(conversation_id: str) -> str:
    return CONVERSATION_PREFIX + conversation_id


def derived_id(owner: str, *parts: object) -> str:
    """A uuid5 of an id and what distinguishes the new thing within it, like a task and its step."""
    return str(uuid5(_NAMESPACE, "/".join([owner, *map(str, parts)])))


def approval_id_of(task_id: str, call_id: str) -> str:
    """A call is asked for at most once, so its approval is named after it."""
    return derived_id(task_id, "approval", call_id)
