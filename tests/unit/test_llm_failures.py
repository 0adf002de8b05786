"""Which error a server's answer becomes."""

from typing import Any

import httpx
import pytest

from adapters.llm.failures import error_body, network_failure, refusal
from domain.errors import (
    ContextOverflow,
    ModelError,
    ModelLoading,
    ModelProtocolError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)

URL = "http://127.0.0.1:8080"
OPENAI_OVERFLOW = (
    '{"error":{"code":"context_length_exceeded","message":"This model\'s maximum context length is 4096 tokens. '
    'However, your messages resulted in 6000 tokens."}}'
)


def _error(status: int, body: str, schema: str = "", secret: str = "") -> ModelError:
    return refusal(status, error_body(body), URL, schema, secret)


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (503, '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', ModelLoading, "loading"),
        (503, "upstream is down", ModelUnavailable, "upstream is down"),
        (502, "<html>Bad Gateway</html>", ModelUnavailable, "502"),
        (500, '{"error":{"message":"out of memory"}}', ModelUnavailable, "out of memory"),
        (500, '{"error":{"message":"Jinja Exception: tool before call"}}', ModelRejected, "chat template"),
        (500, '{"error":{"message":"Failed to parse input at pos 3"}}', ModelProtocolError, "own output"),
        (401, '{"error":{"message":"Invalid API Key"}}', ModelRejected, "api_key"),
        (403, "", ModelRejected, "403"),
        (404, '{"error":{"message":"no such model"}}', ModelRejected, "no such model"),
        (400, '{"error":{"message":"messages is required"}}', ModelRejected, "messages is required"),
        (422, '{"detail":[{"loc":["body"],"msg":"bad"}]}', ModelRejected, "bad"),
        (400, '{"error":"plain text"}', ModelRejected, "plain text"),
        (429, '{"error":{"message":"slow down"}}', ModelUnavailable, "slow down"),
        (408, "", ModelTimeout, "408"),
        (302, "", ModelRejected, "base URL"),
    ],
)
def test_status_and_message_decide(status: int, body: str, kind: type[ModelError], says: str) -> None:
    error = _error(status, body)
    assert type(error) is kind
    assert says in str(error)
    assert URL in str(error)


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        (
            '{"error":{"type":"exceed_context_size_error","message":"m","n_prompt_tokens":6024,"n_ctx":4096}}',
            (6024, 4096),
        ),
        (
            OPENAI_OVERFLOW,
            (6000, 4096),
        ),
        ('{"message":"maximum context length is 2048 tokens and your request has 3000 input tokens"}', (3000, 2048)),
        ('{"error":{"type":"exceed_context_size_error","n_ctx":"?"}}', (0, 0)),
    ],
)
def test_overflow_knows_its_figures(body: str, counts: tuple[int, int]) -> None:
    error = _error(400, body)
    assert isinstance(error, ContextOverflow)
    assert (error.prompt_tokens, error.context_tokens) == counts


@pytest.mark.parametrize(
    "said",
    [
        "failed to parse grammar",
        "Unable to generate parser for this template. Automatic parser generation failed: cannot resolve $ref",
        "Failed to initialize samplers: unexpected empty grammar stack",
    ],
)
def test_a_grammar_failure_names_the_schema(said: str) -> None:
    error = _error(400, f'{{"error":{{"message":"{said}"}}}}', schema="reflection")
    assert type(error) is ModelRejected
    assert "'reflection'" in str(error)
    assert said in str(error)


def test_a_key_that_the_server_repeats_is_hidden() -> None:
    assert "sk-123" not in str(_error(401, "Incorrect API key provided: sk-123", secret="sk-123"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), ModelUnavailable),
        (httpx.ConnectTimeout(""), ModelUnavailable),
        (httpx.ReadTimeout(""), ModelTimeout),
        (httpx.RemoteProtocolError("peer closed"), ModelProtocolError),
        (httpx.ReadError(""), ModelProtocolError),
        (httpx.InvalidURL("no"), ModelRejected),
        (httpx.UnsupportedProtocol("no"), ModelRejected),
    ],
)
def test_network_failures(error: Any, kind: type[ModelError]) -> None:
    found = network_failure(error, URL)
    assert type(found) is kind
    assert URL in str(found)


def test_nothing_listening_says_what_to_do() -> None:
    assert "DUCKLM_LLAMA_URL" in str(network_failure(httpx.ConnectError("refused"), URL))


@pytest.mark.parametrize(
    "body", ["", "[]", "null", '"x"', "[" * 100_000, '{"error":null}', '{"error":{"message":null}}']
)
def test_any_error_body_is_survived(body: str) -> None:
    assert isinstance(_error(400, body), ModelRejected)
