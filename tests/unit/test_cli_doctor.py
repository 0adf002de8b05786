"""``ducklm doctor`` on broken machines: each fault is a line with advice, never a traceback."""

import os
import socket
from pathlib import Path

import pytest

from api.cli import check_server, checks
from api.cli.checks import CHECKS, Check, examine
from api.cli.options import Common


@pytest.fixture(autouse=True)
def free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCKLM_PORT", "0")


async def diagnosed(home: Path) -> dict[str, Check]:
    return {check.name: check async for check in examine(Common(home=home))}


async def test_a_machine_where_all_is_well(tmp_path: Path) -> None:
    found = await diagnosed(tmp_path / "home")
    assert list(found) == ["python", "settings", *(name for name, _ in CHECKS)]
    assert {c.status for c in found.values()} <= {"ok", "warn"}
    assert all(c.advice for c in found.values() if c.status != "ok")
    assert not (tmp_path / "home").exists(), "looking changes nothing"


async def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    found = (await diagnosed(tmp_path / "home"))["home"]
    assert found.status == "fail"
    assert "DUCKLM_HOME" in found.advice


async def test_a_home_that_cannot_be_written() -> None:
    found = (await diagnosed(Path("/proc/ducklm")))["home"]
    assert found.status == "fail"
    assert "can't be written" in found.found


async def test_a_setting_that_is_nonsense_does_not_hide_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUCKLM_PORT", "lots")
    found = await diagnosed(tmp_path)
    assert found["settings"].status == "fail"
    assert "DUCKLM_PORT" in found["settings"].found
    assert found["database"].status == "ok"


async def test_a_database_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCKLM_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/x")
    found = await diagnosed(tmp_path)
    assert found["database"].status == "fail"
    assert "DUCKLM_DATABASE_URL" in found["database"].advice
    assert found["socket"].status == "ok"


async def test_data_of_another_postgres(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("12\n")
    found = (await diagnosed(tmp_path))["database"]
    assert found.status == "fail"
    assert "version 12" in found.found


@pytest.mark.parametrize(
    ("url", "told"), [("http://127.0.0.1:9", "nothing answers"), ("duck", "no address"), ("http://[::", "broke")]
)
async def test_a_model_server_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, told: str
) -> None:
    monkeypatch.setenv("DUCKLM_LLAMA_URL", url)
    found = (await diagnosed(tmp_path))["engine"]
    assert found.status == "fail"
    assert told in found.found


async def test_no_engine_and_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCKLM_MODEL", str(tmp_path / "none.gguf"))
    assert "does not exist" in (await diagnosed(tmp_path))["engine"].found
    monkeypatch.setattr("adapters.engine.discovery.xllamacpp_version", lambda: "")
    monkeypatch.setattr("adapters.engine.discovery.find_llama_server", lambda _: None)
    found = (await diagnosed(tmp_path))["engine"]
    assert found.status == "fail"
    assert "DUCKLM_LLAMA_URL" in found.advice


async def test_a_models_file_with_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models.yaml"
    file.write_text("roles:\n  thinker:\n    temprature: 1\n")
    monkeypatch.setenv("DUCKLM_MODELS_FILE", str(file))
    found = (await diagnosed(tmp_path))["models.yaml"]
    assert found.status == "fail"
    assert "models.yaml:" in found.found


async def test_a_port_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setenv("DUCKLM_PORT", str(other.getsockname()[1]))
        found = (await diagnosed(tmp_path))["server"]
    assert found.status == "fail"
    assert "DUCKLM_PORT" in found.advice


async def test_a_home_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    found = (await diagnosed(tmp_path / ("x" * 120)))["socket"]
    assert found.status == "ok"
    assert "used instead" in found.found


async def test_a_token_that_others_can_read(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    token.chmod(0o644)
    assert (await diagnosed(tmp_path))["token"].advice == f"chmod 600 {token}"
    token.write_bytes(b"\xff\xfe")
    assert (await diagnosed(tmp_path))["token"].status == "fail"


async def test_optional_programs_are_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_server.shutil, "which", lambda _: None)
    found = await diagnosed(tmp_path)
    assert {found["bubblewrap"].status, found["chromium"].status} == {"warn"}


async def test_a_check_that_breaks_is_a_line_and_so_is_a_damaged_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (("one", "api.cli.none:x"), ("two", "api.cli.checks:nothing"), ("three", "api.cli.check_home:user"))
    monkeypatch.setattr(checks, "CHECKS", places)
    found = await diagnosed(tmp_path)
    assert "damaged" in found["one"].advice
    assert found["two"].status == "fail"
    assert found["user"].status == ("warn" if os.getuid() == 0 else "ok")
