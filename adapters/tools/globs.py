"""Globs over relative paths: ``*``, ``?``, ``[a-z]``, ``{a,b}`` and ``**`` for any number of folders.

A glob without a slash matches at any depth, as in .gitignore, because that is what people and models mean by ``*.py``.
Matching takes time linear in the length of glob and path.
"""

import fnmatch
import re

from adapters.tools.refusals import Outside, Unsuitable
from domain.text import shown

_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class Glob:
    """Raises ``ToolError`` for globs that lead out of the workspace or are too complex."""

    def __init__(self, pattern: str, *, case_sensitive: bool) -> None:
        self._fold = not case_sensitive
        self._alternatives = [_parts(text) for text in _expanded(pattern)]
        self._regexes: dict[str, re.Pattern[str]] = {}
        for part in {part for parts in self._alternatives for part in parts}:
            self._regexes[part] = re.compile(fnmatch.translate(self._folded(part)))

    def matches(self, path: tuple[str, ...]) -> bool:
        """Whether the file at ``path`` is meant."""
        return any(len(parts) in self._reached(parts, path) for parts in self._alternatives)

    def may_match_below(self, folder: tuple[str, ...]) -> bool:
        """Whether anything in ``folder`` can be meant."""
        return any(min(self._reached(parts, folder), default=len(parts)) < len(parts) for parts in self._alternatives)

    def names(self, folder: str) -> bool:
        """Whether the glob spells out this folder's name."""
        return any(folder in parts for parts in self._alternatives)

    def _folded(self, text: str) -> str:
        return text.casefold() if self._fold else text

    def _reached(self, parts: list[str], path: tuple[str, ...]) -> set[int]:
        """The positions in ``parts`` at which one can be after all of ``path``."""
        states = _skipped(parts, {0})
        for name in path:
            name = self._folded(name)
            following: set[int] = set()
            for state in states:
                if state == len(parts):
                    continue
                if parts[state] == "**":
                    following.add(state)
                elif self._regexes[parts[state]].match(name):
                    following.add(state + 1)
            states = _skipped(parts, following)
        return states


def _skipped(parts: list[str], states: set[int]) -> set[int]:
    """``**`` may also stand for no folder at all."""
    result = set(states)
    for state in states:
        while state < len(parts) and parts[state] == "**":
            state += 1
            result.add(state)
    return result


def _parts(pattern: str) -> list[str]:
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise Outside(f"the glob {shown(pattern)} leads out of the workspace; give it relative to the workspace")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.endswith("/"):
        parts.append("**")
    if "/" not in pattern:
        parts.insert(0, "**")
    return parts


def _expanded(pattern: str) -> list[str]:
    """All patterns that ``{a,b}`` stands for."""
    done, waiting = [], [pattern]
    while waiting:
        text = waiting.pop()
        if braces := _BRACES.search(text):
            waiting += [text[: braces.start()] + one + text[braces.end() :] for one in braces[1].split(",")]
        else:
            done.append(text)
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise Unsuitable(f"the glob {shown(pattern)} has more than {_MAX_ALTERNATIVES} alternatives")
    return done
