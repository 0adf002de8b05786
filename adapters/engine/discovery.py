"""Which engines there are on this machine."""

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path

from msgspec import Struct

from adapters.engine.settings import EngineSettings
from adapters.engine.small_model import wheel_source


class EngineReport(Struct, frozen=True):
    """What ``ducklm doctor`` shows: paths and versions, "" where there is none."""

    llama_url: str
    llama_server: str
    xllamacpp: str
    small_model: bool

    @property
    def usable(self) -> bool:
        """Whether any engine can be used."""
        return bool(self.llama_url or self.llama_server or self.xllamacpp)


def find_llama_server(settings: EngineSettings) -> Path | None:
    """A ``llama-server`` program: the one built under ``llama/bin/`` if there is, else the one on PATH."""
    if settings.llama_dir is not None:
        own = settings.llama_dir / "bin" / "llama-server"
        if own.is_file() and os.access(own, os.X_OK):
            return own.resolve()
    found = shutil.which("llama-server")
    return Path(found).resolve() if found else None


def xllamacpp_version() -> str:
    """The version of the installed ``xllamacpp``, "" when it is not installed. Does not import it (100 MB)."""
    if importlib.util.find_spec("xllamacpp") is None:
        return ""
    try:
        return importlib.metadata.version("xllamacpp")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def engine_installed(settings: EngineSettings) -> bool:
    """Whether ``start_engine`` has anything to use."""
    return describe(settings).usable


def describe(settings: EngineSettings) -> EngineReport:
    """All that could be used, in the order in which it would be."""
    return EngineReport(
        llama_url=settings.llama_url,
        llama_server=str(find_llama_server(settings) or ""),
        xllamacpp=xllamacpp_version(),
        small_model=wheel_source() is not None,
    )
