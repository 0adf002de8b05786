"""Which names hold credentials. Such files are never read, written or searched, whoever asks."""

import re
from collections.abc import Sequence

from domain.text import folded

_FOLDERS = frozenset({".ssh", ".gnupg", ".password-store", ".gcloud"})
"""Everything in them is secret."""

_PAIRS = {
    ".aws": re.compile(r"credentials|config|sso|cli"),
    ".kube": re.compile(r"config|cache"),
    ".docker": re.compile(r"config\.json"),
    ".cargo": re.compile(r"credentials(\.toml)?"),
    ".gem": re.compile(r"credentials"),
    ".config": re.compile(r"gcloud|gh|hub"),
}
"""Secret only below the folder of that name."""

_NAMES = re.compile(
    r"""\.env(rc)?([^a-z0-9].*)?
    |id_(rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss)([^a-z0-9].*)?
    |ssh_host_.*_key
    |[._]netrc|\.pgpass|\.my\.cnf|\.git-credentials|\.npmrc|\.pypirc|\.htpasswd|\.dockercfg|\.vault-token
    |credentials\.tfrc\.json|\.[a-z0-9]+_history""",
    re.VERBOSE,
)
_ENDINGS = re.compile(r".+\.(pem|key|p12|pfx|p8|ppk|jks|keystore|kdbx)")
_PLAIN = frozenset({"shadow", "shadow-", "gshadow", "gshadow-"})
"""Words that also are innocent folder names, so only a file counts."""

_EXEMPT = re.compile(r"\.env\.(example|sample|template|dist)|id_[a-z0-9_]+\.pub")
_COPY = re.compile(r"^(\.?#)|(~|#|\.(bak|old|orig|save|swp|tmp|copy))$")
"""What editors and people put around the name of a copy."""


def secret_part(parts: Sequence[str], *, directory: bool = False) -> str | None:
    """The component of a path that makes it secret, or ``None``. ``directory``: the last component is a folder."""
    names = [_original(folded(part)) for part in parts]
    for index, name in enumerate(names):
        is_folder = directory or index < len(names) - 1
        before = _PAIRS.get(names[index - 1]) if index else None
        if (
            _is_secret(name)
            or (before and before.fullmatch(name))
            or (not is_folder and (name in _PLAIN or _ENDINGS.fullmatch(name)))
        ):
            return parts[index]
    return None


def is_secret_name(name: str) -> bool:
    """Whether the name alone, wherever it stands, says credentials. Endings like ``.key`` are judged by
    :func:`secret_part` only, because in a command they are often something else."""
    return _is_secret(_original(folded(name)))


def _is_secret(name: str) -> bool:
    return name in _FOLDERS or (bool(_NAMES.fullmatch(name)) and not _EXEMPT.fullmatch(name))


def _original(name: str) -> str:
    """The name a copy was made of: ``#.env#`` and ``id_rsa.bak~`` are their originals."""
    while (shorter := _COPY.sub("", name)) != name and shorter:
        name = shorter
    return name
