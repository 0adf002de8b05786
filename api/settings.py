"""Every setting there is: one field here, one line in docs/settings.md, one environment variable ``DUCKLM_*``."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from platformdirs import user_data_path

from domain.errors import SetupError

PACKAGE_ROOT = Path(__file__).resolve().parent.parent
"""Where prompts/, llama/ and webui/ lie, in a checkout and in an installed package alike."""

PREFIX = "DUCKLM_"
_PositiveInt = Annotated[int, Meta(ge=1)]


def _doc(text: str) -> Meta:
    return Meta(description=text)


class Settings(Struct, frozen=True, kw_only=True):
    """The program's settings. An empty string means «not set»."""

    home: Annotated[str, _doc("folder of all state; default: the platform's data folder")] = ""
    database_url: Annotated[str, _doc("a Postgres of your own (postgresql://…); default: the embedded one")] = ""
    llama_url: Annotated[str, _doc("a model server of your own, such as http://127.0.0.1:8080")] = ""
    llama_api_key: Annotated[str, _doc("key for that server, if it wants one")] = ""
    model: Annotated[str, _doc("a GGUF file, or owner/repo:quant, for the engine that DuckLM starts")] = ""
    context_size: Annotated[int, Meta(ge=1024, description="tokens of context for that engine")] = 8192
    slots: Annotated[_PositiveInt, _doc("parallel requests of that engine")] = 2
    threads: Annotated[int, Meta(ge=0, description="CPU threads of that engine; 0: its own choice")] = 0
    host: Annotated[str, _doc("address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 picks a free one")] = 8000
    token: Annotated[str, _doc("access token; default: made once and kept in the home folder")] = ""
    allowed_hosts: Annotated[str, _doc("further host names, comma separated, under which browsers may reach it")] = ""
    workspace: Annotated[str, _doc("default workspace; default: workspace/ in the home folder")] = ""
    models_file: Annotated[str, _doc("roles and endpoints; default: llama/models.yaml of the package")] = ""
    concurrency: Annotated[_PositiveInt, _doc("tasks that run at once in this process")] = 4
    max_iterations: Annotated[_PositiveInt, _doc("steps of the action loop before the thinker must answer")] = 12
    max_task_tokens: Annotated[_PositiveInt, _doc("tokens (read and written) a task may use")] = 400_000
    max_task_seconds: Annotated[_PositiveInt, _doc("seconds of model and tool work a task may use")] = 3600
    max_input_tokens: Annotated[_PositiveInt, _doc("tokens of one request; the server's context caps it")] = 49_152
    recent_events_tokens: Annotated[_PositiveInt, _doc("tokens of earlier tasks in a request")] = 12_000
    model_idle_seconds: Annotated[
        _PositiveInt, _doc("silence of a model server, while it writes, that counts as dead")
    ] = 60
    model_first_seconds: Annotated[_PositiveInt, _doc("silence before the first token that counts as dead")] = 600
    log_level: Annotated[str, _doc("debug, info, warning or error")] = "info"

    @property
    def home_path(self) -> Path:
        return Path(self.home).expanduser().resolve() if self.home else user_data_path("ducklm", appauthor=False)

    @property
    def workspace_path(self) -> Path:
        return Path(self.workspace).expanduser().resolve() if self.workspace else self.home_path / "workspace"

    @property
    def models_path(self) -> Path:
        return Path(self.models_file).expanduser() if self.models_file else PACKAGE_ROOT / "llama" / "models.yaml"


def descriptions() -> list[tuple[str, Any, str]]:
    """(environment variable, default, description) of every setting."""
    out = []
    for field in msgspec.inspect.type_info(Settings).fields:  # type: ignore[attr-defined]
        out.append((PREFIX + field.name.upper(), field.default, _description(field.type)))
    return out


def _description(kind: Any) -> str:
    while isinstance(kind, msgspec.inspect.Metadata):
        if kind.extra_json_schema and "description" in kind.extra_json_schema:
            return str(kind.extra_json_schema["description"])
        kind = kind.type
    return ""


def load_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Settings from the environment; ``overrides`` (from the command line) win. Raises ``SetupError``."""
    env = os.environ if environ is None else environ
    known = {field.name for field in msgspec.structs.fields(Settings)}
    raw: dict[str, Any] = {n: env[PREFIX + n.upper()] for n in known if env.get(PREFIX + n.upper())}
    raw |= {name: value for name, value in overrides.items() if value is not None}
    try:
        settings = msgspec.convert(raw, Settings, strict=False)
    except msgspec.ValidationError as error:
        name = str(error).partition("`$.")[2].rstrip("`")
        raise SetupError(f"the setting {PREFIX}{name.upper()} is not usable: {error}") from error
    if settings.log_level.lower() not in ("debug", "info", "warning", "error"):
        raise SetupError(f"{PREFIX}LOG_LEVEL must be debug, info, warning or error, not {settings.log_level!r}")
    return settings
