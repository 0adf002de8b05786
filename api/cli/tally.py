"""What a turn has shown and used so far."""

import time

from api.cli.output import counted
from domain.task.events import ModelReplied


class Shown:
    """How much of each call's text was shown, so that what is sent twice is shown once."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], int] = {}

    def new_part(self, call_id: str, kind: str, offset: int, text: str) -> str:
        """The part of a delta that is new. Characters that never came are told of."""
        shown = self._texts.get((call_id, kind), 0)
        end = offset + len(text)
        if end <= shown:
            return ""
        self._texts[call_id, kind] = end
        return f"[…]{text}" if offset > shown else text[shown - offset :]

    def any(self, call_id: str, kind: str) -> bool:
        return (call_id, kind) in self._texts

    def forget(self, call_id: str) -> bool:
        """The call starts again from its beginning; whether anything of it had been shown."""
        keys = [key for key in self._texts if key[0] == call_id]
        for key in keys:
            del self._texts[key]
        return bool(keys)


class Tally:
    """Tokens and time of a turn."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.calls = self.prompt = self.cached = self.written = 0

    def add(self, reply: ModelReplied) -> None:
        self.calls += 1
        self.prompt += reply.usage.prompt_tokens
        self.cached += reply.usage.cached_tokens
        self.written += reply.usage.completion_tokens

    def line(self) -> str:
        """In words; what the server did not count is left out."""
        parts = [counted(self.calls, "model call")]
        if self.prompt:
            parts.append(f"{self.prompt:,} tokens read ({self.cached / self.prompt:.0%} from the cache)")
            parts.append(f"{self.written:,} written")
        parts.append(f"{time.monotonic() - self._started:.1f} s")
        return " · ".join(parts)
