"""Pins every package, transitive ones too, as constraints in pyproject.toml. The lock file itself names registries,
so it stays out of the repository."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = "constraint-dependencies = ["


def pins() -> list[str]:
    """``name==version`` (with a marker where it matters) of all packages of all groups and extras."""
    subprocess.run(["uv", "lock", "--upgrade", "--quiet"], cwd=ROOT, check=True)
    command = [
        "uv",
        "export",
        "--all-groups",
        "--all-extras",
        "--no-hashes",
        "--no-emit-project",
        "--no-annotate",
        "--no-header",
    ]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({line.strip() for line in text.splitlines() if "==" in line})


def main() -> None:
    file = ROOT / "pyproject.toml"
    text = file.read_text()
    bare = re.sub(re.escape(HEAD) + r".*?\n\]\n", "", text, flags=re.S)
    file.write_text(bare)
    try:
        lines = "".join(f'    "{pin.replace(chr(34), chr(39))}",\n' for pin in pins())
    except BaseException:
        file.write_text(text)
        raise
    file.write_text(bare.replace("[tool.uv]\n", f"[tool.uv]\n{HEAD}\n{lines}]\n", 1))
    print(f"{lines.count(chr(10))} packages pinned")


if __name__ == "__main__":
    main()
