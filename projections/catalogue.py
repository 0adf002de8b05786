"""The projections there are."""

from projections.approvals import ApprovalsProjection
from projections.base import Projection, RowProjection
from projections.commands import CommandsProjection
from projections.conversations import ConversationsProjection
from projections.dispatch import DispatchProjection
from projections.tasks import TasksProjection
from projections.usage import UsageProjection

READ_MODELS: dict[str, type[RowProjection]] = {
    cls.name: cls
    for cls in (TasksProjection, ConversationsProjection, ApprovalsProjection, CommandsProjection, UsageProjection)
}


def all_projections() -> list[Projection]:
    """Every projection, dispatch first: tasks should start before they are listed."""
    return [DispatchProjection(), *(cls() for cls in READ_MODELS.values())]
