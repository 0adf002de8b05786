"""One place that turns what servers and sockets say into ``ModelError``."""

import json
import re
from typing import Any

import httpx

from adapters.llm.lenient import as_int
from domain.errors import (
    ContextOverflow,
    ModelError,
    ModelLoading,
    ModelProtocolError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)

_OVERFLOW_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_OVERFLOW_TEXT = re.compile(
    r"maximum context length is (\d+) tokens.*?(\d+) (?:input |prompt )?tokens", re.IGNORECASE | re.DOTALL
)
_GRAMMAR = re.compile(r"grammar|json[_ ]schema|generate parser|initialize samplers", re.IGNORECASE)
_TEMPLATE = re.compile(r"template|jinja|tool call arguments", re.IGNORECASE)
_UNREADABLE_OUTPUT = re.compile(r"failed to parse input|produced output that does not match", re.IGNORECASE)
_SHOWN = 2000
"""Characters of a server's message that are passed on."""


def error_body(raw: bytes | str) -> dict[str, Any]:
    """The error object of a response body, ``{"message": …}`` at least, from the shapes servers use."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {"message": text.strip()[:_SHOWN]}
    return error_object(body)


def error_object(body: Any) -> dict[str, Any]:
    """``error`` (llama-server, OpenAI), ``detail`` (FastAPI) or the object itself."""
    inner = body
    if isinstance(body, dict):
        inner = body.get("error", body.get("detail", body))
    if isinstance(inner, dict):
        found = {**inner}
    else:
        found = {"message": inner if isinstance(inner, str) else json.dumps(inner)}
    found["message"] = str(found.get("message", "") or json.dumps(inner, default=str))[:_SHOWN]
    return found


def refusal(status: int, error: dict[str, Any], url: str, schema: str = "", secret: str = "") -> ModelError:
    """The error for an HTTP ``status`` and its error object. ``schema`` names the constrained answer that was asked
    for; ``secret`` (the API key) never gets into the message, even if the server repeats it."""
    said = str(error.get("message", "")) or f"HTTP {status}"
    said = said.replace(secret, "•••") if secret else said
    kind = str(error.get("type", "")), str(error.get("code", ""))
    wording = _OVERFLOW_TEXT.search(said)
    if wording or _OVERFLOW_TYPES.intersection(kind):
        return _overflow(error, said, wording)
    if status == 503 and ("loading" in said.lower() or kind[0] == "unavailable_error"):
        return ModelLoading(f"The model at {url} is still loading. The request was not lost; wait, or look at its log.")
    if _UNREADABLE_OUTPUT.search(said):
        return ModelProtocolError(f"{url} could not make sense of the model's own output: {said}")
    if status < 500 or status == 500:
        if schema and _GRAMMAR.search(said):
            return ModelRejected(f"{url} cannot constrain output to the schema {schema!r}: {said}")
        if status == 500 and _TEMPLATE.search(said):
            return ModelRejected(f"The chat template of the model at {url} does not take these messages: {said}")
    return _by_status(status, said, url)


def _by_status(status: int, said: str, url: str) -> ModelError:
    if status in (401, 403):
        return ModelRejected(f"{url} refuses access ({status}): {said}. Check api_key of the endpoint in models.yaml.")
    if status == 404:
        return ModelRejected(
            f"{url} does not know this model or path (404): {said}. Check url and model in models.yaml."
        )
    if status == 408:
        return ModelTimeout(f"{url} gave up waiting (408): {said}")
    if status == 429:
        return ModelUnavailable(f"{url} takes no more requests just now (429): {said}")
    if status >= 500:
        return ModelUnavailable(f"{url} failed ({status}): {said}. Look at the model server's log.")
    if status >= 400:
        return ModelRejected(f"{url} refused the request ({status}): {said}")
    return ModelRejected(f"{url} answered {status} where an answer was expected. Is this the base URL, without /v1?")


def _overflow(error: dict[str, Any], said: str, wording: re.Match[str] | None) -> ContextOverflow:
    context, prompt = (int(wording[1]), int(wording[2])) if wording else (0, 0)
    prompt = as_int(error.get("n_prompt_tokens")) or prompt
    context = as_int(error.get("n_ctx")) or context
    return ContextOverflow(
        f"The prompt ({prompt or '?'} tokens) does not fit the context of a slot ({context or '?'} tokens): {said}. "
        "Shorten the history or start the server with a larger context.",
        prompt,
        context,
    )


def network_failure(error: httpx.HTTPError | httpx.InvalidURL, url: str) -> ModelError:
    """The error for a request that got no (whole) HTTP answer."""
    detail = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return ModelUnavailable(
            f"Nothing answers at {url} ({detail}). Start the model server there, or set DUCKLM_LLAMA_URL "
            "(or the endpoint in llama/models.yaml) to one that runs."
        )
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        return ModelRejected(f"{url} is no usable address ({detail}). An endpoint looks like http://127.0.0.1:8080.")
    if isinstance(error, httpx.TimeoutException):
        return ModelTimeout(f"{url} did not answer in time ({detail}).")
    return ModelProtocolError(
        f"The connection to {url} broke before the answer was whole ({detail}). Nothing was kept."
    )
