"""What ``shell_exec`` may do without asking, what it must ask for, and what it never does. For now.

The policy issue replaces this by rules over a parsed command. Until then the whole command has to be one plain line of
a short list, in characters that mean nothing to a shell; a look at the text is enough for that and for nothing else.
"""

import os
import re
import stat
import unicodedata
from typing import Literal

from adapters.tools.guard import within
from adapters.tools.read_only import NotListed, operands
from adapters.tools.refusals import SecretFile, Unsuitable
from adapters.tools.secrets import is_secret_name, secret_part
from adapters.tools.shell import MAX_COMMAND
from adapters.tools.workspace import Workspace
from domain.errors import ToolError
from domain.text import shown
from domain.tools import Verdict

_PLAIN = re.compile(r"[A-Za-z0-9 _./,:=+@%-]+")
"""The only characters of a command that runs without asking; none of them is special inside a word."""

_MEANINGS = {
    "\n": "several lines",
    "\t": "a tab",
    ";": "several commands (;)",
    "&": "& (several commands, or one left running)",
    "|": "a pipe (|)",
    "<": "a redirection (<)",
    ">": "a redirection (>)",
    "$": "a variable or substitution ($)",
    "`": "a substitution (`)",
    "(": "brackets",
    ")": "brackets",
    "*": "a wildcard (*)",
    "?": "a wildcard (?)",
    "[": "a wildcard ([)",
    "{": "a brace expansion ({)",
    "~": "~ (a home folder)",
    "!": "an exclamation mark",
    "#": "a comment (#)",
    "\\": "a backslash",
    "'": "quotes",
    '"': "quotes",
}
_RISKY = re.compile(
    r"(?<![\w.-])(sudo|su|doas|pkexec|rm|rmdir|dd|mkfs\S*|wipefs|shred|truncate|chmod|chown|chattr|kill|killall|pkill"
    r"|reboot|shutdown|halt|poweroff|systemctl|service|crontab|at|mount|umount|curl|wget|ssh|scp|sftp|rsync|nc|ncat"
    r"|socat|eval|exec|source|base64|iptables|nft|useradd|usermod|passwd|docker|podman|git\s+push)(?![\w-])"
)
_WORDS = re.compile(r"[\s;&|<>()={}`$,:\[\]@]+")
_MAX_WORDS = 2000


def judge_command(command: str, workspace: Workspace) -> Verdict:
    """``deny``: touches what is out of reach, or can't be run. ``allow``: one plain command that only shows something
    of the workspace. ``ask``: everything else. The reason is in words and shows hidden characters as escapes."""
    if problem := _unrunnable(command):
        return Verdict("deny", "high", problem)
    words = _words(command)
    for word in words:
        if problem := _out_of_reach(word, workspace):
            return Verdict("deny", "high", problem)
    if len(words) > _MAX_WORDS:
        return Verdict("ask", "high", "the command is too long to be looked through")
    if problem := _not_plain(command):
        return Verdict("ask", _risk(command), problem)
    try:
        paths = operands(command.split())
        if within(workspace.guard.home, workspace.real) and command.split()[0] in ("ls", "du"):
            raise NotListed("DuckLM's own files lie in this workspace, and a listing may go through them")
        for path in paths:
            _check_path(path, workspace)
    except SecretFile as error:
        return Verdict("deny", "high", str(error))
    except (NotListed, ToolError) as error:
        return Verdict("ask", _risk(command), str(error))
    return Verdict("allow", "low", "it only shows something of the workspace")


def _unrunnable(command: str) -> str:
    if "\0" in command:
        return f"the command has a NUL, which no program can be given: {shown(command)[:200]}"
    try:
        size = len(command.encode("utf-8"))
    except UnicodeEncodeError:
        return f"the command is no valid text: {shown(command)[:200]}"
    if size > MAX_COMMAND:
        return f"the command has {size} bytes, at most {MAX_COMMAND} can be run; write a script and run that"
    return "" if command.strip() else "the command is empty"


def _words(command: str) -> list[str]:
    """Whatever may be a path in the command, once quotes and backslashes are gone. Too many rather than too few."""
    bare = re.sub(r"['\"\\]", "", command)
    return [word for word in _WORDS.split(bare)[: _MAX_WORDS + 1] if word]


def _out_of_reach(word: str, workspace: Workspace) -> str:
    """Why a word may not be part of a command; empty when it may."""
    if any(is_secret_name(part) for part in word.split("/")):
        return f"{shown(word)} holds credentials by its name; commands may not name such files"
    # ``.key`` and ``shadow`` are often no files at all, so they count where they look like paths or are there.
    path = os.path.normpath(os.path.join(workspace.real, word))
    for place in {path, os.path.realpath(path)}:
        secret = secret_part(place.split("/"), directory=os.path.isdir(place))
        if secret and ("/" in word or os.path.lexists(path)):
            return f"{shown(word)} holds credentials by its name; commands may not name such files"
        if workspace.guard.is_own(place, workspace.real):
            return f"{shown(word)} belongs to DuckLM itself; commands may not name it"
    return ""


def _not_plain(command: str) -> str:
    """Why the text is more than one plain command; empty when it is one."""
    if _PLAIN.fullmatch(command):
        return ""
    if _misleading(command):
        return f"the command has hidden or misleading characters: {command.encode('unicode_escape').decode()[:300]}"
    strange = next(c for c in command if not _PLAIN.fullmatch(c))
    if strange in _MEANINGS:
        return f"the command has {_MEANINGS[strange]}"
    name = unicodedata.name(strange, "without a name")
    return f"the command has the character {strange} ({name}), which is not on the list of plain ones"


def _misleading(command: str) -> bool:
    """Whether it holds characters that are invisible, reorder the text, or stand for others (full-width letters)."""
    return any(c not in "\n\t" and (not c.isprintable() or unicodedata.normalize("NFKC", c) != c) for c in command)


def _risk(command: str) -> Literal["medium", "high"]:
    return "high" if _misleading(command) or _RISKY.search(command) else "medium"


def _check_path(path: str, workspace: Workspace) -> None:
    """Raises unless ``path`` is in the workspace, an ordinary file or folder, or nothing at all."""
    try:
        with workspace.entry(path, directory=os.path.isdir(os.path.join(workspace.real, path))) as (_, status):
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise NotListed(f"{shown(path)} is no ordinary file")
    except Unsuitable:
        return  # the command will say that it is not there
