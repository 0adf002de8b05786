"""The console's own unit tests (node), and what must hold for its files."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WEBUI = HERE.parents[1] / "webui"
MODULES = [*WEBUI.glob("js/**/*.js"), *WEBUI.glob("vendor/*.js")]


@pytest.mark.parametrize("script", sorted(HERE.glob("console_*.test.mjs")), ids=lambda p: p.name)
def test_node(script: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    run = subprocess.run([node, "--test", script], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr


def test_scripts_stay_small() -> None:
    assert sum(len(gzip.compress(path.read_bytes())) for path in MODULES) < 150_000


def test_every_module_is_preloaded_once() -> None:
    page = (WEBUI / "index.html").read_text()
    preloaded = sorted(re.findall(r'<link rel="modulepreload" href="/([^"]+)"', page))
    entries = {"js/boot.js", "js/main.js"}
    assert preloaded == sorted(str(p.relative_to(WEBUI)) for p in MODULES if str(p.relative_to(WEBUI)) not in entries)


def test_nothing_is_inline_and_nothing_is_foreign() -> None:
    page = (WEBUI / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>|https?://", page)
    for path in WEBUI.glob("css/*.css"):
        assert not re.search(r"@import|https?://", path.read_text()), path.name
    for path in WEBUI.glob("js/**/*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|\beval\(|\bstyle=", text), path.name


def test_own_modules_say_what_they_are() -> None:
    for path in WEBUI.glob("js/**/*.js"):
        assert path.read_text().startswith("// "), f"{path.name} has no header"
