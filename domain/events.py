"""Events in general: the envelope, the registry of tags, decoding of whatever the store holds.

An event class is a frozen struct with a stable tag (``task.created.v1``), never a Python path. Old events load for ever:
raw dict → raw dict upcasters by tag, see :func:`upcaster`. What cannot be read becomes :class:`Unreadable` and never
hides its stream.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

Actor = Literal["person", "runtime", "model", "tool"]


class Event(Struct, frozen=True):
    """Base of every domain event. Subclasses are registered by :func:`event`."""


class Unreadable(Event, frozen=True):
    """A stored event whose tag or body this version does not understand, kept as it is."""

    tag: str
    raw: Any
    problem: str


class Skimmed(Event, frozen=True):
    """An event of which only the envelope was read: enough where it matters that it happened, and when."""

    tag: str


class Envelope(Struct, frozen=True):
    """An event as it stands in the log. ``position`` is global and 0 until stored; ``version`` counts in the stream
    from 1; ``correlation_id`` is the task, ``causation_id`` the id of the event that led to this one."""

    position: int
    stream: str
    version: int
    id: str
    time: datetime
    actor: Actor
    correlation_id: str
    causation_id: str
    data: Event

    @property
    def type(self) -> str:
        return tag_of(self.data)


E = TypeVar("E", bound=Event)
D = TypeVar("D")


class Body(Struct, Generic[D], frozen=True):
    """What the store keeps beside stream, version, position and tag: plain JSON."""

    id: str
    time: datetime
    actor: Actor
    corr: str
    caus: str
    data: D


REGISTRY: dict[str, type[Event]] = {}
_TAGS: dict[type[Event], str] = {}
_DECODERS: dict[str, "msgspec.json.Decoder[Body[Any]]"] = {}
_UPCASTERS: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
_RAW = msgspec.json.Decoder(Body[Any])
_HEAD = msgspec.json.Decoder(Body[msgspec.Raw])


def event(tag: str) -> Callable[[type[E]], type[E]]:
    """Registers an event class under its tag."""

    def register(cls: type[E]) -> type[E]:
        if tag in REGISTRY:
            raise ValueError(f"two events claim the tag {tag}")
        REGISTRY[tag] = cls
        _TAGS[cls] = tag
        _DECODERS[tag] = msgspec.json.Decoder(Body[cls])  # type: ignore[valid-type]
        return cls

    return register


def upcaster(old: str, new: str) -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], None]:
    """Registers a raw dict → raw dict step from a tag that is no longer written to its successor."""

    def register(step: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        _UPCASTERS[old] = (new, step)

    return register


def tag_of(data: Event) -> str:
    return data.tag if isinstance(data, Unreadable | Skimmed) else _TAGS[type(data)]


def tag_of_class(cls: type[Event]) -> str:
    return _TAGS[cls]


def encode_body(envelope: Envelope) -> bytes:
    """The stored JSON of an envelope."""
    e = envelope
    return msgspec.json.encode(Body(e.id, e.time, e.actor, e.correlation_id, e.causation_id, e.data))


def decode_body(tag: str, body: bytes, stream: str, version: int, position: int = 0) -> Envelope:
    """An envelope from what is stored. Never raises for a bad body: it is then :class:`Unreadable`."""
    decoder = _DECODERS.get(tag)
    try:
        b = _upcast(tag, body) if decoder is None else decoder.decode(body)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        b = _unreadable(tag, body, str(error))
    return Envelope(position, stream, version, b.id, b.time, b.actor, b.corr, b.caus, b.data)


def skim_body(tag: str, body: bytes, stream: str, version: int, position: int = 0) -> Envelope:
    """As :func:`decode_body`, without reading what the event says."""
    try:
        b = _HEAD.decode(body)
    except (msgspec.DecodeError, ValueError):
        return decode_body(tag, body, stream, version, position)
    return Envelope(position, stream, version, b.id, b.time, b.actor, b.corr, b.caus, Skimmed(tag))


def _upcast(tag: str, body: bytes) -> Body[Any]:
    raw = _RAW.decode(body)
    data, current = raw.data, tag
    while current in _UPCASTERS:
        current, step = _UPCASTERS[current]
        data = step(data)
    if current not in REGISTRY:
        return Body(raw.id, raw.time, raw.actor, raw.corr, raw.caus, Unreadable(tag, raw.data, f"unknown event {tag}"))
    typed = msgspec.convert(data, REGISTRY[current])
    return Body(raw.id, raw.time, raw.actor, raw.corr, raw.caus, typed)


def _unreadable(tag: str, body: bytes, problem: str) -> Body[Any]:
    try:
        raw = _RAW.decode(body)
        return Body(raw.id, raw.time, raw.actor, raw.corr, raw.caus, Unreadable(tag, raw.data, problem))
    except (msgspec.DecodeError, ValueError):
        text = body.decode("utf-8", "replace")
        return Body("", datetime.fromtimestamp(0).astimezone(), "runtime", "", "", Unreadable(tag, text, problem))
