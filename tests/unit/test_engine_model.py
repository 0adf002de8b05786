"""Which model is taken, and the small one put together from pieces."""

import hashlib
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.engine.model_file import check_gguf, choose_model
from adapters.engine.settings import SMALL_MODEL_CONTEXT, EngineSettings
from adapters.engine.small_model import ModelSource, assemble
from domain.errors import SetupError

PIECES = (b"GGUF" + b"a" * 1000, b"b" * 500, b"c")


def silent(text: str, share: float | None) -> None:
    """Reports to nobody."""


@pytest.fixture
def source(tmp_path: Path) -> ModelSource:
    chunks = tuple(tmp_path / f"piece{i}" for i in range(len(PIECES)))
    for chunk, data in zip(chunks, PIECES, strict=True):
        chunk.write_bytes(data)
    return ModelSource("small.gguf", hashlib.sha256(b"".join(PIECES)).hexdigest(), chunks)


def test_assembles_once(source: ModelSource, tmp_path: Path) -> None:
    shares: list[float] = []
    path = assemble(source, tmp_path / "models", lambda text, share: shares.append(share or 0))
    assert path.read_bytes() == b"".join(PIECES)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    before = path.stat().st_ino
    assert assemble(source, tmp_path / "models", silent).stat().st_ino == before
    assert not list((tmp_path / "models").glob("*.part"))


@given(st.binary(max_size=2000))
def test_whatever_is_there_ends_up_right(found: bytes) -> None:
    # a folder for each example, which a fixture would not give

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        piece = folder / "piece"
        piece.write_bytes(PIECES[0])
        source = ModelSource("m.gguf", hashlib.sha256(PIECES[0]).hexdigest(), (piece,))
        (folder / "m.gguf").write_bytes(found)
        (folder / "m.part").write_bytes(found)
        assert assemble(source, folder, silent).read_bytes() == PIECES[0]


def test_damaged_package_leaves_nothing(source: ModelSource, tmp_path: Path) -> None:
    source.chunks[1].write_bytes(b"x" * 500)
    with pytest.raises(SetupError, match="damaged: reinstall"):
        assemble(source, tmp_path / "models", silent)
    assert not list((tmp_path / "models").glob("small*"))


def test_no_space(source: ModelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=10))
    with pytest.raises(SetupError, match="make room"):
        assemble(source, tmp_path / "models", silent)


def test_folder_that_cannot_be_made(source: ModelSource, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(SetupError, match="could not be written"):
        assemble(source, tmp_path / "models", silent)


def test_small_model_is_marked(source: ModelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.engine.model_file.wheel_source", lambda: source)
    model = choose_model(EngineSettings(home=tmp_path), silent)
    assert (model.name, model.smoke_test, model.context_tokens) == ("small.gguf", True, SMALL_MODEL_CONTEXT)
    assert model.path == tmp_path / "models" / "small.gguf"


def test_nothing_set_and_nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.engine.model_file.wheel_source", lambda: None)
    with pytest.raises(SetupError, match="set DUCKLM_MODEL"):
        choose_model(EngineSettings(home=tmp_path), silent)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "does not exist"), (b"", "no GGUF"), (b"<html>", "no GGUF"), (b"GGU", "no GGUF")]
)
def test_not_a_model(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "m.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SetupError, match=message):
        choose_model(EngineSettings(home=tmp_path, model=str(path)), silent)


def test_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be read"):
        choose_model(EngineSettings(home=tmp_path, model=str(tmp_path)), silent)


def test_every_part_of_a_split_model_is_wanted(tmp_path: Path) -> None:
    first = tmp_path / "big-00001-of-00002.gguf"
    first.write_bytes(b"GGUF")
    with pytest.raises(SetupError, match="big-00002-of-00002"):
        check_gguf(first)
    (tmp_path / "big-00002-of-00002.gguf").write_bytes(b"GGUF")
    check_gguf(first)


def test_names_to_fetch(tmp_path: Path) -> None:
    model = choose_model(EngineSettings(home=tmp_path, model="owner/repo:Q4_K_M"), silent)
    assert (model.hf_name, model.path) == ("owner/repo:Q4_K_M", None)
    with pytest.raises(SetupError, match="does not exist"):
        choose_model(EngineSettings(home=tmp_path, model="owner/file.gguf"), silent)
