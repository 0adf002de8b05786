"""Why an engine died, in words that say what to do: from its exit code and the end of its log."""

from pathlib import Path

from adapters.engine.settings import Engine

_LOG_BYTES = 16_384
_SHOWN_LINES = 6
_CAUSES = (
    (
        ("out of memory", "bad_alloc", "failed to allocate", "cannot allocate", "outofdevicememory", "outofhostmemory"),
        "there was not enough memory: use a smaller model or context, fewer slots, or fewer layers on the GPU",
    ),
    (("couldn't bind", "address already in use"), "its port was taken meanwhile: choose another one"),
    (("invalid argument", "unknown argument"), "it does not know one of its flags: look at the extra arguments"),
    (("unknown model architecture",), "it is too old for this model: update it"),
    (("hf_repo", "failed to download", "error from hf"), "the model could not be downloaded"),
    (("failed to load model",), "it cannot load the model: the file may be damaged or too new for it"),
)
_SIGNALS = {
    4: "it was compiled for another processor: build one here (llama/build_vulkan.sh), or take it off PATH so that xllamacpp is used",
    6: "it gave up because of an error of its own, see its last words",
    9: "it was killed, most likely by the system for want of memory: use a smaller model or context",
    11: "it crashed: update it, or run it without the GPU",
}


def log_tail(log: Path, start: int = 0) -> list[str]:
    """The last lines that were written to the log after the offset ``start`` (bytes)."""
    try:
        with log.open("rb") as handle:
            size = log.stat().st_size
            handle.seek(max(start if start <= size else 0, size - _LOG_BYTES))  # it may have been cut meanwhile
            text = handle.read().decode(errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]


def diagnose(engine: Engine, code: int, lines: list[str], log: Path) -> str:
    """A sentence on why it ended, and its last words. ``code`` as from ``wait``: negative or above 128 by a signal."""
    text = "\n".join(lines).lower()
    signal = -code if code < 0 else max(code - 128, 0)
    cause = next((advice for words, advice in _CAUSES if any(word in text for word in words)), "")
    if not cause:
        cause = _SIGNALS.get(signal, "")
    if engine.model.count("/") == 1 and not engine.model.endswith(".gguf") and "failed to load model ''" in text:
        cause = (
            f"{engine.model} is neither downloaded nor to be had from the network: download the GGUF file yourself and "
            "set DUCKLM_MODEL to its path"
        )
    how = f"was ended by signal {signal}" if signal else f"ended with code {code}"
    last = "".join(f"\n  {line}" for line in lines[-_SHOWN_LINES:])
    return f"the engine ({engine.kind}, model {engine.model}) {how}{': ' + cause if cause else ''}. Log: {log}{last}"
