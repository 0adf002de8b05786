"""What lies out of reach whatever the workspace is: DuckLM's own home, secret files, the kernel's file systems."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.tools.refusals import Outside, SecretFile
from adapters.tools.secrets import secret_part
from domain.errors import ToolRefused
from domain.text import shown

_KERNEL = ("/proc", "/sys", "/dev")
_CREDENTIALS = (".ssh", ".aws", ".kube", ".docker", ".gnupg", ".config/gh", "")
"""Folders of a person's home that are searched for what a hard link may stand for."""


@dataclass(frozen=True)
class Guard:
    """``home`` is DuckLM's, ``default`` the workspace that may lie in it, ``person`` the home of whoever runs it.
    All absolute and free of links."""

    home: str
    default: str
    person: str

    @classmethod
    def of(cls, home: Path, default: Path, person: Path | None = None) -> "Guard":
        return cls(*(os.path.realpath(path) for path in (home, default, person or Path.home())))

    def check_root(self, real: str) -> None:
        """Raises ``ToolRefused`` when the folder ``real`` can't be a workspace."""
        if real == "/" or any(within(real, folder) for folder in _KERNEL):
            raise ToolRefused(f"{shown(real)} can't be a workspace; choose a folder of your own")
        if within(real, self.home) and not self._lent(real):
            raise ToolRefused(f"{shown(real)} can't be a workspace: DuckLM keeps its own state there")
        if secret_part(real.split("/"), directory=True):
            raise SecretFile(f"{shown(real)} can't be a workspace: credentials are kept there")

    def is_own(self, real: str, root: str) -> bool:
        """Whether ``real`` belongs to DuckLM itself and not to the workspace ``root``."""
        return within(real, self.home) and not (self._lent(root) and within(real, root))

    def _lent(self, root: str) -> bool:
        """Whether ``root`` lies in the one part of DuckLM's home that is for workspaces. A default workspace that
        holds the home, instead of lying in it, opens nothing."""
        inside = within(self.default, self.home) and self.default != self.home
        return inside and within(root, self.default)

    def check(self, real: str, root: str, *, directory: bool) -> None:
        """Raises for an object at ``real`` (as its open handle names it) reached from the workspace ``root``."""
        if not within(real, root):
            raise Outside(f"{shown(real)} is outside of the workspace")
        if self.is_own(real, root):
            raise SecretFile("DuckLM's own files are out of reach")
        check_name(real[len(root) :].strip("/").split("/"), directory=directory)

    def linked_secrets(self, root: str, folder: str) -> frozenset[tuple[int, int]]:
        """Device and inode of the credentials that a file with several names might be: those of the person and of
        DuckLM, of the system, of the workspace and of the file's own folder. Names only; nothing is opened."""
        places = [os.path.join(self.person, name) for name in _CREDENTIALS]
        found: set[tuple[int, int]] = set()
        for place in [*places, "/etc", root, folder]:
            found.update(_secret_inodes(place))
        found.update(_secret_inodes(self.home, everything=True))
        return frozenset(found)


def within(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or below it, by components; both absolute and normal."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def check_name(parts: Sequence[str], *, directory: bool) -> None:
    """Raises ``SecretFile`` when the names of a path say credentials."""
    if (part := secret_part(parts, directory=directory)) is not None:
        raise SecretFile(f"{shown('/'.join(parts))}: {shown(part)} holds credentials by its name; it is out of reach")


def _secret_inodes(folder: str, everything: bool = False) -> Iterator[tuple[int, int]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not everything and not secret_part([*folder.split("/"), entry.name]):
                    continue
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield status.st_dev, status.st_ino
    except OSError:
        return  # what can't be listed can't be compared
