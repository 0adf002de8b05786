"""Loads the roles: ``llama/models.yaml`` says who answers, ``prompts/`` what they are told."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from adapters.llm.link import base_url
from adapters.llm.schemas import SCHEMA_NAMES
from adapters.llm.yaml_section import Section, read_text, read_yaml
from domain.errors import SetupError
from domain.model import RoleName
from domain.roles import ROLE_NAMES, RoleConfig
from domain.tools import CATALOGUE

DEFAULT_ENDPOINT = "default"
MEMORY_SCOPES = ("", "global", "workspace", "conversation")
_ROLE_KEYS = ("endpoint", "model", "temperature", "max_output_tokens", "response_schema", "memory_scope", "tools")
_ENDPOINT_KEYS = ("url", "api_key", "model")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Endpoint(Struct, frozen=True):
    """``url`` without ``/v1``; ``model`` is what roles use that name none."""

    url: str
    api_key: str = ""
    model: str = ""


def load_roles(
    models_file: Path, prompts: Path, default: Endpoint, environ: Mapping[str, str]
) -> dict[RoleName, RoleConfig]:
    """All eight roles. ``default`` is the engine that ``endpoint: default`` stands for; ``environ`` fills ``${NAME}``.

    Raises ``SetupError`` with file, line and what to do."""
    top = read_yaml(models_file)
    top.only(("endpoints", "roles"))
    endpoints = top.section("endpoints")
    roles = top.section("roles")
    roles.only(ROLE_NAMES, "role")
    for name in endpoints.keys:
        if name == DEFAULT_ENDPOINT:
            endpoints.fail(name, "'default' is the engine that DuckLM starts or DUCKLM_LLAMA_URL. Choose another name.")
        endpoints.section(name).only(_ENDPOINT_KEYS)
    loaded: dict[RoleName, RoleConfig] = {}
    for role in ROLE_NAMES:
        if role not in roles:
            roles.fail(role, f"the role {role!r} is missing. Copy it from the models.yaml that DuckLM ships.")
        section = roles.section(role)
        section.only(_ROLE_KEYS)
        loaded[role] = _role(role, section, _endpoint(section, endpoints, default, environ), prompts, environ)
    return loaded


def load_constitution(prompts: Path) -> str:
    """The one system prompt of all roles. Raises ``SetupError``."""
    return _prompt(prompts / "constitution.md")


def _role(
    name: RoleName, section: Section, endpoint: Endpoint, prompts: Path, environ: Mapping[str, str]
) -> RoleConfig:
    schema = section.text("response_schema")
    if schema and schema not in SCHEMA_NAMES:
        section.fail("response_schema", f"unknown response_schema {schema!r}. There are: {', '.join(SCHEMA_NAMES)}.")
    scope = section.text("memory_scope")
    if scope not in MEMORY_SCOPES:
        section.fail("memory_scope", f"unknown memory_scope {scope!r}. There are: {', '.join(MEMORY_SCOPES[1:])}.")
    tools = section.texts("tools")
    for tool in tools:
        if tool not in CATALOGUE:
            section.fail("tools", f"unknown tool {tool!r} for {section.name}. There are: {', '.join(CATALOGUE)}.")
    return RoleConfig(
        name=name,
        endpoint=endpoint.url,
        instruction=_prompt(prompts / "roles" / f"{name}.md"),
        model=_filled(section, "model", environ) or endpoint.model,
        api_key=endpoint.api_key,
        temperature=section.number("temperature", 0.7, 0.0, 2.0),
        max_output_tokens=section.whole("max_output_tokens", 2048, 1, 1_000_000),
        response_schema=schema,
        memory_scope=scope,
        tools=tools,
    )


def _endpoint(section: Section, endpoints: Section, default: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    name = section.text("endpoint", DEFAULT_ENDPOINT)
    if name == DEFAULT_ENDPOINT:
        return Endpoint(base_url(default.url), default.api_key, default.model)
    if name not in endpoints:
        known = ", ".join((DEFAULT_ENDPOINT, *endpoints.keys))
        section.fail("endpoint", f"unknown endpoint {name!r} for {section.name}. There are: {known}.")
    found = endpoints.section(name)
    url = base_url(_filled(found, "url", environ))
    if not _is_address(url):
        found.fail("url", f"the url of endpoint {name!r} must look like http://127.0.0.1:8080, not {url!r}.")
    key = _filled(found, "api_key", environ)
    if not (key.isascii() and key.isprintable()):
        found.fail(
            "api_key", f"the api_key of endpoint {name!r} has characters that no HTTP header takes. Copy it anew."
        )
    return Endpoint(url, key, _filled(found, "model", environ))


def _filled(section: Section, key: str, environ: Mapping[str, str]) -> str:
    """The text under ``key`` with every ``${NAME}`` replaced; a variable that is not set is an error, not ""."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in environ:
            section.fail(key, f"the environment variable {name!r} is not set. Set it, or write the {key} itself.")
        return environ[name].strip()

    return _VARIABLE.sub(value, section.text(key)).strip()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _prompt(path: Path) -> str:
    text = read_text(path).strip()
    if not text:
        raise SetupError(f"{path}:1: the prompt is empty. Write it, or restore the file from the DuckLM package.")
    return text
