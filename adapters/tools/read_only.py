"""The commands that run without asking: programs that only show something, with the options known to be harmless.

What is not in this table is asked for. The policy issue replaces it by rules over a parsed command.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

Operands = Literal["none", "text", "paths", "format"]
"""What may follow the options: nothing, any words, paths of the workspace, or one ``+FORMAT``."""


class Program(Struct, frozen=True):
    """``short``: one-letter options, which may be joined. ``long``: options in full, as a pattern. ``valued``: options
    that take a value, with the pattern of the value, which may be joined or the next word."""

    operands: Operands
    short: str = ""
    long: str = ""
    valued: Mapping[str, str] = {}
    count: bool = False
    """Whether ``-20`` means twenty lines."""


_NUMBER = r"[+-]?[0-9]{1,12}[bkKMG]?"
_LS_LONG = (
    "--(all|almost-all|human-readable|recursive|reverse|directory|size|inode|classify|group-directories-first"
    "|si|numeric-uid-gid|no-group|full-time|author|color=never|color=auto|sort=[a-z]+|time=[a-z]+|time-style=[a-z-]+)"
)

PROGRAMS: Mapping[str, Program] = {
    "ls": Program("paths", "aAlhrtSR1dFpgoGisknXUcum", _LS_LONG),
    "pwd": Program("none", "LP"),
    "cat": Program("paths", "nbsAETvet", "--(number|number-nonblank|squeeze-blank|show-all|show-ends|show-tabs)"),
    "head": Program(
        "paths", "qv", "--(quiet|verbose|(lines|bytes)=" + _NUMBER + ")", {"n": _NUMBER, "c": _NUMBER}, True
    ),
    "tail": Program(
        "paths", "qv", "--(quiet|verbose|(lines|bytes)=" + _NUMBER + ")", {"n": _NUMBER, "c": _NUMBER}, True
    ),
    "wc": Program("paths", "lwcmL", "--(lines|words|bytes|chars|max-line-length)"),
    "stat": Program(
        "paths", "tf", "--(terse|file-system|(format|printf)=[%A-Za-z0-9 ./:_,-]+)", {"c": "[%A-Za-z./:_,-]+"}
    ),
    "du": Program(
        "paths", "shackmb", "--(summarize|human-readable|all|total|apparent-size|max-depth=[0-9]+)", {"d": "[0-9]+"}
    ),
    "df": Program("paths", "hkmTia", "--(human-readable|print-type|inodes)"),
    "echo": Program("text"),
    "date": Program("format", "uIR", "--(utc|iso-8601|rfc-email|iso-8601=[a-z]+|rfc-3339=[a-z]+)"),
    "uname": Program("none", "asnrvmpio", "--(all|kernel-name|nodename|kernel-release|machine|operating-system)"),
    "id": Program("none", "ugnGr", "--(user|group|groups|name|real)"),
    "whoami": Program("none"),
    "true": Program("none"),
}


class NotListed(Exception):
    """The command is not one of those that run without asking; the message says why, in words."""


def operands(words: Sequence[str]) -> list[str]:
    """The paths a command line of the table names. Raises :class:`NotListed`."""
    program = PROGRAMS.get(words[0])
    if program is None:
        raise NotListed(f"{words[0]} is not on the short list of commands that only show something")
    if program.operands == "text":
        return []
    found: list[str] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word == "--":
            found += rest
            break
        if len(word) < 2 or not word.startswith("-"):
            found.append(word)
        elif not _is_option(program, word, rest):
            raise NotListed(f"the option {word} of {words[0]} is not on the list of harmless ones")
    if program.operands == "none" and found:
        raise NotListed(f"{words[0]} with {found[0]} does more than show something")
    if program.operands == "format":
        if len(found) > 1 or not all(re.fullmatch(r"\+[%A-Za-z0-9:/_.,+-]+", word) for word in found):
            raise NotListed(f"{words[0]} with {found[0]} may change the clock")
        return []
    return found


def _is_option(program: Program, word: str, rest: list[str]) -> bool:
    """Whether a word is a harmless option; takes its value from ``rest`` when it is there."""
    if word.startswith("--"):
        return bool(program.long and re.fullmatch(program.long, word))
    if program.count and re.fullmatch(r"-[0-9]{1,12}", word):
        return True
    for index, letter in enumerate(word[1:], start=1):
        if value := program.valued.get(letter):
            given = word[index + 1 :] or (rest.pop(0) if rest else "")
            return re.fullmatch(value, given) is not None
        if letter not in program.short:
            return False
    return True
