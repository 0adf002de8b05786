"""Roles are logical: each names an endpoint, a model, an instruction and limits; all may share one server."""

from typing import get_args

from msgspec import Struct

from domain.model import RoleName

ROLE_NAMES: tuple[RoleName, ...] = get_args(RoleName)


class RoleConfig(Struct, frozen=True):
    """One role, as configured in ``llama/models.yaml`` and ``prompts/roles/<name>.md``.

    ``endpoint`` is a base URL without ``/v1``; ``response_schema`` names the constrained answer ("" for free text)."""

    name: RoleName
    endpoint: str
    instruction: str
    model: str = ""
    api_key: str = ""
    temperature: float = 0.7
    max_output_tokens: int = 2048
    response_schema: str = ""
    memory_scope: str = ""
    tools: tuple[str, ...] = ()
