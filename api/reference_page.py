"""A page on which people read the OpenAPI document: plain HTML from the server, no script, nothing from elsewhere."""

from html import escape
from typing import Any

import msgspec
from litestar import Request
from litestar.openapi.plugins import OpenAPIRenderPlugin

_METHODS = ("get", "post", "put", "patch", "delete")


class ReferencePage(OpenAPIRenderPlugin):
    """Served at ``/schema``."""

    def __init__(self) -> None:
        super().__init__(path="/")

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return page(openapi_schema).encode()


def page(schema: dict[str, Any]) -> str:
    """All operations by area, with parameters, bodies and answers."""
    areas: dict[str, list[str]] = {}
    for path, operations in sorted(schema["paths"].items()):
        for method in _METHODS:
            if method in operations:
                operation = operations[method]
                area = (operation.get("tags") or ["other"])[0]
                areas.setdefault(area, []).append(_operation(path, method, operation))
    body = "".join(f"<h2>{escape(area)}</h2>{''.join(parts)}" for area, parts in areas.items())
    shapes = "".join(
        f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>{_json(shape)}</details>"
        for name, shape in sorted(schema.get("components", {}).get("schemas", {}).items())
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>DuckLM API</title><link rel=stylesheet href=/css/reference.css><main><h1>DuckLM API</h1>"
        "<p>Machine-readable: <a href=/schema/openapi.json>openapi.json</a>. Every request but <code>/health</code> carries "
        f"<code>Authorization: Bearer TOKEN</code>.</p>{body}<h2>Shapes</h2>{shapes}</main></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{escape(p['name'])}</code> in {escape(p['in'])}{' (required)' if p.get('required') else ''}</li>"
        for p in operation.get("parameters", ())
    )
    sent = operation.get("requestBody", {}).get("content", {})
    answers = "".join(
        f"<li><b>{escape(status)}</b> {escape(answer.get('description', ''))}{_contents(answer.get('content', {}))}</li>"
        for status, answer in operation.get("responses", {}).items()
    )
    return (
        f"<details><summary><b class={method}>{method.upper()}</b> <code>{escape(path)}</code> "
        f"<span>{escape(operation.get('summary', ''))}</span></summary>"
        f"{f'<h3>Parameters</h3><ul>{parameters}</ul>' if parameters else ''}"
        f"{f'<h3>Body</h3>{_contents(sent)}' if sent else ''}<h3>Answers</h3><ul>{answers}</ul></details>"
    )


def _contents(content: dict[str, Any]) -> str:
    return "".join(f"<div>{escape(kind)}{_json(body.get('schema', {}))}</div>" for kind, body in content.items())


def _json(value: Any) -> str:
    return f"<pre>{escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())}</pre>"
