"""Why a tool will not or cannot touch something, as errors, and the words for what the kernel says.

::

    ToolError
    ├── ToolRefused         the rules forbid it
    │   ├── Outside         it is not in the workspace
    │   └── SecretFile      it holds credentials, or is DuckLM's own
    └── Unsuitable          it is allowed, but not there or not of the right kind; the model can mend its call
"""

import errno

from domain.errors import ToolError, ToolRefused
from domain.text import shown


class Outside(ToolRefused): ...


class SecretFile(ToolRefused): ...


class Unsuitable(ToolError): ...


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_UNSUITABLE = {
    errno.ENOENT: "there is no {path} in the workspace",
    errno.ENOTDIR: "{path} leads through something that is no folder",
    errno.EISDIR: "{path} is a folder",
    errno.ENAMETOOLONG: "the path {path} is too long",
}
_OUTSIDE = {
    errno.EXDEV: "{path} leads out of the workspace (a link to an absolute path counts as outside)",
    errno.ELOOP: "{path} leads through a link that is not followed",
}


def explained(error: OSError, path: str) -> ToolError:
    """The error of this program for an ``OSError`` met at ``path`` (as the caller wrote it)."""
    name = shown(path) or "."
    if error.errno in _UNSUITABLE:
        return Unsuitable(_UNSUITABLE[error.errno].format(path=name))
    if error.errno in _OUTSIDE:
        return Outside(_OUTSIDE[error.errno].format(path=name))
    if error.errno in (errno.EACCES, errno.EPERM):
        return Unsuitable(f"the operating system does not permit it for {name}")
    return ToolError(f"{name}: {error.strerror or error}")
