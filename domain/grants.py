"""Standing permissions: what a person has allowed for ever, and may take back."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from domain.errors import Conflict, NotFound
from domain.events import Event, event


@event("grant.issued.v1")
class GrantIssued(Event, frozen=True):
    """Exactly this action in this workspace, by its hash."""

    grant_id: str
    tool: str
    workspace: str
    arguments: dict[str, Any]
    action_sha256: str
    task_id: str


@event("grant.revoked.v1")
class GrantRevoked(Event, frozen=True):
    grant_id: str


class Grants(Struct, frozen=True):
    """``active`` maps an action's hash to the id of the grant that allows it."""

    version: int = 0
    active: dict[str, str] = {}
    revoked: frozenset[str] = frozenset()


def evolve(state: Grants, happened: Event) -> Grants:
    active, revoked = state.active, state.revoked
    match happened:
        case GrantIssued(grant_id=grant_id, action_sha256=sha):
            active = {**active, sha: grant_id}
        case GrantRevoked(grant_id=grant_id):
            active = {sha: g for sha, g in active.items() if g != grant_id}
            revoked = revoked | {grant_id}
    return replace(state, version=state.version + 1, active=active, revoked=revoked)


def issue(state: Grants, issued: GrantIssued) -> list[Event]:
    return [] if issued.action_sha256 in state.active else [issued]


def revoke(state: Grants, grant_id: str) -> list[Event]:
    if grant_id in state.revoked:
        raise Conflict(f"grant {grant_id} was revoked before")
    if grant_id not in state.active.values():
        raise NotFound(f"there is no grant {grant_id}")
    return [GrantRevoked(grant_id)]
