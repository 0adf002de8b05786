"""Makes model text fit to store: no NUL (Postgres refuses it), no half of a surrogate pair (UTF-8 refuses it)."""

from typing import Any

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """``text`` without NULs, surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cleaned(value: Any) -> Any:
    """The same for every string inside JSON builtins."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    return value


def short_model(name: str) -> str:
    """A model's name for people and events; servers often report the whole path of the file."""
    return name.replace("\\", "/").rsplit("/", 1)[-1] if name.lower().endswith(".gguf") else name


class Cleaner:
    """``clean`` for text that comes in pieces: a pair may be cut between two of them."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._held + piece.replace("\0", "")
        self._held = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return clean(text[: len(text) - len(self._held)])

    def finish(self) -> str:
        """What was held back in hope of a second half."""
        held, self._held = self._held, ""
        return _REPLACEMENT if held else ""
