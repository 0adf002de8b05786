"""The documentation is held to the code: generated pages are current, and nothing is left out."""

import re
from pathlib import Path

import pytest

from api.app import create_app
from api.cli.reference import PAGES
from api.settings import descriptions, load_settings
from domain.errors import SetupError
from domain.events import REGISTRY

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `just docs`"


def test_every_event_is_documented() -> None:
    text = (DOCS / "events.md").read_text(encoding="utf-8")
    assert [tag for tag in REGISTRY if f"`{tag}`" not in text] == []


def test_every_endpoint_is_documented() -> None:
    text = re.sub(r"\{\w+\}", "{id}", (DOCS / "web_api.md").read_text(encoding="utf-8"))
    missing = []
    for method, path in endpoints():
        written = re.sub(r"\{\w+:str\}", "{id}", path)
        last = written.rsplit("/", 1)[1]
        if written not in text and f"…/{last}" not in text:
            missing.append(f"{method} {path}")
    assert missing == []


def endpoints() -> list[tuple[str, str]]:
    from api.controllers import approvals, chat, conversations, models, system, tasks

    out = []
    for module in (approvals, chat, conversations, models, system, tasks):
        for value in vars(module).values():
            if isinstance(value, type) and value.__name__.endswith("Controller") and value.__name__ != "Controller":
                for handler in vars(value).values():
                    if hasattr(handler, "http_methods"):
                        for path in handler.paths:
                            full = (value.path.rstrip("/") + "/" + path.strip("/")).rstrip("/")
                            out += [(m, full) for m in handler.http_methods if m in ("GET", "POST", "PATCH", "DELETE")]
    assert len(out) > 20
    assert create_app is not None
    return out


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CHANGELOG.md"]:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.name} → {target}")
    assert broken == []


def test_nothing_of_the_machine_it_was_written_on_is_in_the_project() -> None:
    root = DOCS.parent
    files = [
        p
        for p in root.rglob("*")
        if p.is_file() and not any(part.startswith(".") for part in p.relative_to(root).parts)
    ]
    for path in files:
        if path.suffix in (".py", ".md", ".toml", ".yaml", ".sh", ".js", ".mjs") and path.name != "test_docs.py":
            assert "/work/" not in path.read_text(encoding="utf-8", errors="replace"), path


SET = {
    "DUCKLM_HOME": "/tmp/duck", "DUCKLM_DATABASE_URL": "postgresql://x", "DUCKLM_LLAMA_URL": "http://h:1",
    "DUCKLM_LLAMA_API_KEY": "k", "DUCKLM_MODEL": "m.gguf", "DUCKLM_CONTEXT_SIZE": "4096", "DUCKLM_SLOTS": "3",
    "DUCKLM_THREADS": "5", "DUCKLM_HOST": "::1", "DUCKLM_PORT": "9", "DUCKLM_TOKEN": "t", "DUCKLM_ALLOWED_HOSTS": "a,b",
    "DUCKLM_WORKSPACE": "/w", "DUCKLM_MODELS_FILE": "/m.yaml", "DUCKLM_CONCURRENCY": "7", "DUCKLM_MAX_ITERATIONS": "3",
    "DUCKLM_MAX_TASK_TOKENS": "11", "DUCKLM_MAX_TASK_SECONDS": "13", "DUCKLM_MAX_INPUT_TOKENS": "17",
    "DUCKLM_RECENT_EVENTS_TOKENS": "19", "DUCKLM_MODEL_IDLE_SECONDS": "23", "DUCKLM_MODEL_FIRST_SECONDS": "29",
    "DUCKLM_LOG_LEVEL": "debug",
}  # fmt: skip


@pytest.mark.parametrize("variable", [name for name, _, _ in descriptions()])
def test_every_setting_is_read_from_its_variable(variable: str) -> None:
    settings = load_settings({variable: SET[variable]})
    value = getattr(settings, variable.removeprefix("DUCKLM_").lower())
    assert str(value) == SET[variable]
    assert value != getattr(load_settings({}), variable.removeprefix("DUCKLM_").lower())


@pytest.mark.parametrize(
    ("variable", "value"),
    [("DUCKLM_PORT", "http"), ("DUCKLM_PORT", "70000"), ("DUCKLM_CONCURRENCY", "0"), ("DUCKLM_LOG_LEVEL", "loud")],
)
def test_a_setting_that_makes_no_sense_is_named(variable: str, value: str) -> None:
    with pytest.raises(SetupError, match=variable):
        load_settings({variable: value})
