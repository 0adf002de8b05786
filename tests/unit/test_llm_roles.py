"""Roles from files: the shipped ones, and complaints that say file, line and what to do."""

import re
import shutil
from pathlib import Path

import pytest

from adapters.llm import Endpoint, load_constitution, load_roles
from domain.errors import SetupError
from domain.model import RoleName
from domain.roles import ROLE_NAMES, RoleConfig
from domain.tools import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = re.sub(r"(?m)^ *#.*\n|^\n", "", (ROOT / "llama" / "models.yaml").read_text(encoding="utf-8"))
"""Without comments and blank lines, so that a replacement hits what is read."""
ENGINE = Endpoint("http://127.0.0.1:9001/v1/", "engine-key")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "prompts", tmp_path / "prompts")
    return tmp_path


def _load(folder: Path, text: str, environ: dict[str, str] | None = None) -> dict[RoleName, RoleConfig]:
    file = folder / "models.yaml"
    file.write_text(text, encoding="utf-8")
    return load_roles(file, folder / "prompts", ENGINE, environ or {})


def test_the_shipped_roles(folder: Path) -> None:
    roles = _load(folder, SHIPPED)
    assert tuple(roles) == ROLE_NAMES
    limits = {name: roles[name].max_output_tokens for name in ("thinker", "critic", "coder", "action", "summary")}
    assert limits == {"thinker": 8192, "critic": 4096, "coder": 16384, "action": 2048, "summary": 4096}
    assert {name: config.response_schema for name, config in roles.items() if config.response_schema} == {
        "critic": "reflection",
        "action": "action_directive",
        "recall": "recall_selection",
        "memory_policy": "memory_decision",
    }
    assert {(config.endpoint, config.api_key) for config in roles.values()} == {("http://127.0.0.1:9001", "engine-key")}
    assert set(roles["action"].tools) <= set(CATALOGUE)


def test_instructions_are_short_and_each_names_its_role(folder: Path) -> None:
    """They are repeated in the context at each change of role."""
    for name, config in _load(folder, SHIPPED).items():
        assert config.instruction.startswith("Your role:"), name
        assert len(config.instruction) < 700, name


def test_the_constitution_holds_nothing_volatile(folder: Path) -> None:
    text = load_constitution(folder / "prompts")
    assert "DuckLM" in text
    assert "never instructions" in text
    assert not re.search(r"\{|\}|20\d\d", text), "the prompt cache breaks with anything that changes"


def test_an_endpoint_of_ones_own_with_key_and_model_from_the_environment(folder: Path) -> None:
    own = "endpoints:\n  big:\n    url: https://${HOST}/v1\n    api_key: ${KEY}\n    model: qwen\n"
    text = SHIPPED.replace("endpoints:\n", own).replace("coder:\n    endpoint: default", "coder:\n    endpoint: big")
    coder = _load(folder, text, {"HOST": "big.lan", "KEY": " k-1 \n"})["coder"]
    assert (coder.endpoint, coder.api_key, coder.model) == ("https://big.lan", "k-1", "qwen")
    unused = text.replace("endpoint: big", "endpoint: default")
    assert _load(folder, unused)["coder"].endpoint == "http://127.0.0.1:9001", "an unused endpoint needs no variable"


def _big(line: str) -> str:
    return SHIPPED.replace("endpoints:\n", f"endpoints:\n  big:\n    {line}\n").replace(
        "endpoint: default", "endpoint: big", 2
    )


@pytest.mark.parametrize(
    ("text", "marked", "says"),
    [
        (SHIPPED.replace("max_output_tokens: 4096", "max_output_token: 4096", 1), "max_output_token:", "Did you mean 'max_output_tokens'?"),
        (SHIPPED.replace("  thinker:", "  tinker:"), "  tinker:", "Did you mean 'thinker'?"),
        (SHIPPED.replace("16384", "lots"), "lots", "must be a number from 1"),
        (SHIPPED.replace("16384", "1.5"), "1.5", "whole number"),
        (SHIPPED.replace("16384", "yes"), "yes", "must be a number"),
        (SHIPPED.replace("temperature: 0.3", "temperature: 3"), "temperature: 3", "from 0 to 2"),
        (SHIPPED.replace("response_schema: reflection", "response_schema: refl"), "refl", "unknown response_schema"),
        (SHIPPED.replace("memory_scope: workspace", "memory_scope: all", 1), "memory_scope: all", "unknown memory_scope"),
        (SHIPPED.replace("search_files]", "format_disk]", 1), "format_disk", "unknown tool"),
        (SHIPPED.replace("tools: [list_dir, file_read", "tools: list_dir #", 1), "tools: list_dir #", "must be a list"),
        (SHIPPED.replace("endpoint: default", "endpoint: big", 1), "endpoint: big", "unknown endpoint 'big'"),
        (SHIPPED.replace("endpoint: default", "endpoint: 8", 1), "endpoint: 8", "must be text"),
        (SHIPPED.replace("roles:\n", "roles:\n  action: {}\n"), "  action:\n", "stands twice"),
        (SHIPPED.replace("  thinker:\n    endpoint: default\n    temperature: 0.7\n    max_output_tokens: 8192\n    memory_scope: conversation\n", ""), "roles:", "'thinker' is missing"),
        (SHIPPED.replace("endpoints:\n", "endpoints:\n  default: {url: x}\n"), "  default:", "Choose another name"),
        (SHIPPED + "\nextra: 1\n", "extra: 1", "unknown key 'extra'"),
        (SHIPPED.replace("roles:\n", "roles: [\n"), None, "valid YAML"),
        ("- a\n", "- a", "expected a mapping"),
        ("", "", "expected a mapping"),
        (_big("url: big:8080"), "url: big:8080", "must look like http://"),
        (_big("url: http://h:99999"), "url: http://h:99999", "must look like http://"),
        (_big("url: http://${HOST}"), "url: http://${HOST}", "'HOST' is not set"),
        (_big("address: http://h"), "address:", "unknown key 'address'"),
        (_big("url: http://h\n    api_key: ключ"), "api_key: ключ", "no HTTP header takes"),
    ],
)  # fmt: skip
def test_complaints_name_the_line_and_the_way_out(folder: Path, text: str, marked: str | None, says: str) -> None:
    with pytest.raises(SetupError) as caught:
        _load(folder, text)
    message = str(caught.value)
    assert says in message
    found = re.match(rf"{re.escape(str(folder / 'models.yaml'))}:(\d+): ", message)
    assert found, message
    if marked is not None:
        line = int(found[1])
        expected = text[: text.rindex(marked) if "twice" in says else text.index(marked)].count("\n") + 1
        assert line == expected + ("missing" in says), message


def test_missing_empty_and_unreadable_files(folder: Path) -> None:
    prompt = folder / "prompts" / "roles" / "coder.md"
    prompt.write_bytes(b"fine\n\xff\xfe")
    with pytest.raises(SetupError, match=r"coder\.md:2: this is not UTF-8"):
        _load(folder, SHIPPED)
    prompt.write_text(" \n")
    with pytest.raises(SetupError, match=r"coder\.md:1: the prompt is empty"):
        _load(folder, SHIPPED)
    prompt.unlink()
    with pytest.raises(SetupError, match=r"coder\.md:1: there is no such file\. Restore it"):
        _load(folder, SHIPPED)
    with pytest.raises(SetupError, match=r"nowhere\.yaml:1: there is no such file"):
        load_roles(folder / "nowhere.yaml", folder / "prompts", ENGINE, {})
    with pytest.raises(SetupError, match="cannot be read"):
        load_roles(folder, folder / "prompts", ENGINE, {})
