"""Language models over HTTP: llama-server and anything that is OpenAI-compatible."""

from adapters.llm.client import HttpModelClient
from adapters.llm.ping import Ping
from adapters.llm.retry import RetryPolicy
from adapters.llm.roles import Endpoint, load_constitution, load_roles
from adapters.llm.schemas import SCHEMA_NAMES, MemoryDecision, RecallSelection, Reflection, response_schema

__all__ = [
    "SCHEMA_NAMES",
    "Endpoint",
    "HttpModelClient",
    "MemoryDecision",
    "Ping",
    "RecallSelection",
    "Reflection",
    "RetryPolicy",
    "load_constitution",
    "load_roles",
    "response_schema",
]
