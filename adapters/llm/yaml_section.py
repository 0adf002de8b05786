"""Reads a YAML file so that every complaint names file and line."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from domain.errors import SetupError


class Section:
    """A mapping of a YAML file: keys with their lines, values read with the type that is wanted.

    Everything here raises ``SetupError`` in the form ``file:line: what is wrong. What to do.``"""

    def __init__(self, path: Path, name: str, node: yaml.MappingNode, loader: yaml.SafeLoader) -> None:
        self.path = path
        self.name = name
        self._loader = loader
        self._line = node.start_mark.line + 1
        self._nodes: dict[str, yaml.Node] = {}
        self._lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = str(getattr(key_node, "value", ""))
            line = key_node.start_mark.line + 1
            if key in self._nodes:
                raise SetupError(
                    f"{path}:{line}: {key!r} stands twice in {name} (first in line {self._lines[key]}). Remove one."
                )
            self._nodes[key] = value_node
            self._lines[key] = line

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def fail(self, key: str, what: str) -> NoReturn:
        """Complains about ``key``, or about the section where there is no such key."""
        raise SetupError(f"{self.path}:{self._lines.get(key, self._line)}: {what}")

    def only(self, allowed: Iterable[str], kind: str = "key") -> None:
        """Refuses keys that nobody would read: most likely a typing error."""
        known = tuple(allowed)
        for key in self._nodes:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(known)}."
                self.fail(key, f"unknown {kind} {key!r} in {self.name}. {hint}")

    def section(self, key: str) -> "Section":
        """The mapping under ``key``; an empty one where the key is missing or has no value."""
        node = self._nodes.get(key)
        if node is None or self._value(key) is None:
            mark = node.start_mark if node else yaml.Mark("", 0, self._line - 1, 0, None, 0)
            node = yaml.MappingNode("tag:yaml.org,2002:map", [], mark, mark)
        if not isinstance(node, yaml.MappingNode):
            self.fail(key, f"{key!r} must be a mapping (key: value lines below it), not {self._value(key)!r}.")
        return Section(self.path, repr(key), node, self._loader)

    def text(self, key: str, default: str = "") -> str:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self.fail(key, f"{key!r} must be text, not {value!r}. Put it in quotes.")
        return value

    def number(self, key: str, default: float, low: float, high: float) -> float:
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.fail(key, f"{key!r} must be a number from {low:g} to {high:g}, not {value!r}.")
        return float(value)

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        value = self.number(key, default, low, high)
        if value != int(value):
            self.fail(key, f"{key!r} must be a whole number, not {value!r}.")
        return int(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._value(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, f"{key!r} must be a list of names, like [one, two], not {value!r}.")
        return tuple(value)

    def _value(self, key: str) -> Any:
        node = self._nodes.get(key)
        return None if node is None else self._loader.construct_object(node, deep=True)


def read_yaml(path: Path) -> Section:
    """The top mapping of the file. Raises ``SetupError``."""
    loader = yaml.SafeLoader(read_text(path))
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SetupError(f"{path}:{line}: this is no valid YAML: {error.problem}. Mend the line.") from error
    except yaml.YAMLError as error:
        raise SetupError(f"{path}:1: this is no valid YAML: {error}.") from error
    if not isinstance(node, yaml.MappingNode):
        raise SetupError(f"{path}:1: expected a mapping (key: value lines). Compare with the file that DuckLM ships.")
    return Section(path, path.name, node, loader)


def read_text(path: Path) -> str:
    """A text file. Raises ``SetupError`` that says what to do."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SetupError(f"{path}:1: there is no such file. Restore it from the DuckLM package.") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SetupError(f"{path}:{line}: this is not UTF-8. Save the file in UTF-8.") from error
    except OSError as error:
        raise SetupError(f"{path}:1: cannot be read: {error.strerror}. Check its permissions.") from error
