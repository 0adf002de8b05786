"""Reference pages written from the code: docs/events.md and docs/settings.md. A test holds the files to this."""

import inspect
import re
from pathlib import Path
from typing import Any, get_args

import msgspec

import domain.conversation
import domain.grants
import domain.server
import domain.task.events  # noqa: F401 - registers its events
from api.settings import PACKAGE_ROOT, descriptions
from domain.events import REGISTRY, Event


def events_page() -> str:
    """Every event with its tag, meaning and fields."""
    lines = [
        "# Events",
        "",
        "Every step is one of these, stored for ever as plain JSON (`SELECT * FROM event_log` in psql). Written from the",
        "registry by `just docs`. An event's tag never changes its meaning; a new shape is a new tag, and old ones are read",
        "through upcasters. What a version does not understand is kept and shown raw.",
        "",
        "Streams: `task-<id>`, `conversation-<id>`, `grants`, `servers`. The envelope around `data` is told in",
        "[web_api.md](web_api.md#events).",
    ]
    area = ""
    for tag, cls in sorted(REGISTRY.items(), key=lambda item: (item[0].split(".")[0] != "task", _order(item))):
        if tag.split(".")[0] != area:
            area = tag.split(".")[0]
            lines += ["", f"## {area.capitalize()}"]
        lines += ["", f"### `{tag}`", "", _prose(cls)]
        fields = msgspec.structs.fields(cls)
        if fields:
            lines += ["", "| field | type | default |", "|---|---|---|"]
            lines += [f"| `{f.name}` | {_type(f.type)} | {_default(f)} |" for f in fields]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Every setting with its default and meaning."""
    lines = [
        "# Settings",
        "",
        "Each is an environment variable; the most used ones are options of `ducklm up` too. Written from the code by `just docs`.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {_shown(default)} | {text} |" for name, default, text in descriptions()]
    return "\n".join(lines) + "\n"


PAGES = {"events.md": events_page, "settings.md": settings_page}


def _order(item: tuple[str, type[Event]]) -> tuple[str, int]:
    tag, cls = item
    return tag.split(".")[0], inspect.getsourcelines(cls)[1]


def _prose(cls: type[Event]) -> str:
    text = inspect.cleandoc(cls.__doc__ or "")
    if not text or text.startswith(f"{cls.__name__}("):
        words = re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()
        text = f"{words.capitalize()}."
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _type(kind: Any) -> str:
    text = str(kind) if get_args(kind) else getattr(kind, "__name__", str(kind))
    text = re.sub(r"\b(?:typing|domain(?:\.\w+)*)\.", "", text).replace("|", "\\|")
    return f"`{text}`"


def _default(field: Any) -> str:
    if field.default is not msgspec.NODEFAULT:
        return _shown(field.default)
    return "" if field.default_factory is msgspec.NODEFAULT else "empty"


def _shown(value: Any) -> str:
    return "" if value in ("", None) else f"`{value}`"


def main(folder: Path = PACKAGE_ROOT / "docs") -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
