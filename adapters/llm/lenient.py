"""Reads fields of foreign JSON that may be missing, null or of another type: what is not usable counts as absent."""

import math
from typing import Any

from domain.model import Timings, Usage


def read_usage(said: dict[str, Any], timings: dict[str, Any]) -> Usage:
    """Tokens by ``usage``; some servers report zeros there although ``timings`` knows."""
    cached = as_int(timings.get("cache_n"))
    return Usage(
        prompt_tokens=as_int(said.get("prompt_tokens")) or cached + as_int(timings.get("prompt_n")),
        completion_tokens=as_int(said.get("completion_tokens")) or as_int(timings.get("predicted_n")),
        cached_tokens=as_int(as_object(said.get("prompt_tokens_details")).get("cached_tokens")) or cached,
    )


def read_timings(said: dict[str, Any]) -> Timings:
    return Timings(
        cache_n=as_int(said.get("cache_n")),
        prompt_n=as_int(said.get("prompt_n")),
        prompt_ms=as_float(said.get("prompt_ms")),
        predicted_n=as_int(said.get("predicted_n")),
        predicted_ms=as_float(said.get("predicted_ms")),
    )


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """A string, or the texts of a list of content parts; anything else is no text."""
    if isinstance(value, list):
        return "".join(as_text(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def as_float(value: Any) -> float:
    """A positive finite number, else 0."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    try:
        return float(value) if value > 0 and math.isfinite(value) else 0.0
    except OverflowError:  # an integer beyond the range of float
        return 0.0


def as_int(value: Any) -> int:
    return int(as_float(value))
