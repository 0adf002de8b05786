"""Secret names are known in every spelling, and ordinary names are left alone."""

from pathlib import Path
from typing import Any

import pytest

from adapters.tools.gateway import Gateway
from adapters.tools.refusals import SecretFile
from adapters.tools.secrets import secret_part
from domain.tools import ToolInvocation, ToolResult

SECRET = (
    ".env", ".ENV", ".env.local", ".env.production", ".env.bak", ".env~", "#.env#", ".envrc", ".Env.Example.bak2",
    "a/.ssh/config", ".ssh", ".SSH/known_hosts", "id_rsa", "id_ed25519", "ID_RSA", "id_ecdsa_sk", "id_rsa.old", "id_rsa-2",
    "server.pem", "tls/server.KEY", "a.p12", "a.pfx", "x.kdbx", ".netrc", "_netrc", ".pgpass", ".git-credentials",
    ".aws/credentials", "x/.kube/config", ".docker/config.json", "etc/shadow", "shadow", "gshadow", "shadow-", ".npmrc",
    ".pypirc", ".bash_history", "．env", ".e\u200bnv", ".env. ", ".config/gh/hosts.yml", "server.pem.bak",
)  # fmt: skip
OPEN = (
    ".env.example", ".env.sample", "env", ".environment", "id_rsa.pub", "id_ed25519.pub", "src/shadow/x.ts", "key",
    ".key", "monkey.txt", "pem.md", "kube/config", ".docker/Dockerfile", ".aws/task.json", "shadow.css", "envrc.md",
    "README.md", "отчёт.md", "keys.json", "config.json", ".ssh.md", "idea_rsa",
)  # fmt: skip


@pytest.mark.parametrize("path", SECRET)
def test_secret(path: str) -> None:
    assert secret_part(path.split("/")) is not None


@pytest.mark.parametrize("path", OPEN)
def test_open(path: str) -> None:
    assert secret_part(path.split("/")) is None


def test_a_folder_called_shadow_is_no_secret() -> None:
    assert secret_part(["src", "shadow"], directory=True) is None


@pytest.mark.parametrize("path", [".env", "conf/.SSH/id_rsa", "a.pem", ".aws/credentials", "me/credentials"])
async def test_no_tool_touches_them(tmp_path: Path, path: str) -> None:
    gateway = Gateway(tmp_path / "home", tmp_path / "home/workspace", person=tmp_path / "person")
    workspace = tmp_path / "ws"
    (workspace / path).parent.mkdir(parents=True)
    (workspace / path).write_text("canary-1234")
    if path == "me/credentials":
        # By another name of the folder: what counts is what was opened.
        (workspace / "me").rename(workspace / ".aws")
        (workspace / "me").symlink_to(".aws")

    async def run(tool: str, **arguments: Any) -> ToolResult:
        call = ToolInvocation("t", "c", tool, arguments, str(workspace))
        return await gateway.run(call, lambda text: None)

    for tool, more in (("file_read", {}), ("file_write", {"content": "x"})):
        assert gateway.assess(ToolInvocation("t", "c", tool, {"path": path, **more}, str(workspace))).decision == "deny"
        with pytest.raises(SecretFile):
            await run(tool, path=path, **more)
    found = await run("search_files", pattern="canary", glob="**/*")
    assert "canary" not in found.output
    assert (workspace / path).read_text() == "canary-1234"
