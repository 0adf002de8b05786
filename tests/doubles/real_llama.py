"""The real llama.cpp with the small model, for tests that must not trust a double: our own engine in a thread."""

import asyncio
import threading
from pathlib import Path
from typing import Any, Self

from adapters.engine.handle import EngineHandle
from adapters.engine.settings import EngineSettings
from adapters.engine.start import start_engine

START_S = 120


class RealLlama:
    """A context manager; keyword arguments are those of ``EngineSettings``."""

    def __init__(self, home: Path, **settings: Any) -> None:
        defaults = {"engine": "xllamacpp", "context_tokens": 2048, "threads": 2, "cache_ram": 256}
        self.settings = EngineSettings(home=home, **{**defaults, **settings})
        self._loop = asyncio.new_event_loop()
        # Linux ends the engine with the thread that started it: this one lives until the end
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.handle: EngineHandle | None = None

    @property
    def url(self) -> str:
        """The base address, without ``/v1``."""
        assert self.handle is not None
        return self.handle.info.url

    @property
    def api_key(self) -> str:
        """The key that each request but ``/health`` needs."""
        assert self.handle is not None
        return self.handle.api_key

    def __enter__(self) -> Self:
        self._thread.start()
        starting = start_engine(self.settings, lambda text, share: None)
        self.handle = asyncio.run_coroutine_threadsafe(starting, self._loop).result(START_S)
        return self

    def __exit__(self, *_: object) -> None:
        if self.handle is not None:
            asyncio.run_coroutine_threadsafe(self.handle.stop(), self._loop).result(START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()
