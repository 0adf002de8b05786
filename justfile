# All that one does with this project. `uv run just` lists it.

set shell := ["bash", "-euo", "pipefail", "-c"]

_list:
    @just --list --unsorted

# Start DuckLM: database, engine, worker, API, console
up *ARGS:
    python -m api.cli.main up {{ARGS}}

# All tests; what they need beside Python is installed from Debian's packages where it is missing
test *ARGS: _browser
    python -m pytest -n 2 --dist loadgroup {{ARGS}}

# Only the fast ones: no database, no browser, no model
test-unit *ARGS:
    python -m pytest tests/unit {{ARGS}}

# Style, types, import rules, dependencies
lint:
    ruff check .
    ruff format --check .
    mypy
    lint-imports
    deptry domain projections adapters api

# Mend what can be mended by itself
fix:
    ruff check --fix .
    ruff format .

# What the core costs on this machine, beside the limits
bench *ARGS:
    python -m tests.benchmarks.core {{ARGS}}

# Kill it at every boundary and see what is left
chaos *ARGS:
    python -m pytest tests/chaos {{ARGS}}

# Pin every package, transitive ones too, in pyproject.toml
lock:
    python .ci/lock.py

# Write the reference pages that are generated from code
docs:
    python -m api.cli.reference

# Screenshots of the console on the real program with a scripted model, into docs/images/
screenshots:
    CONSOLE_SHOTS=docs/images python -m pytest tests/e2e/console_real_test.py -n 0

_browser:
    #!/usr/bin/env bash
    set -euo pipefail
    if command -v chromium >/dev/null || command -v google-chrome >/dev/null; then exit 0; fi
    if ! command -v apt-get >/dev/null; then echo "no Chromium here: browser tests are skipped" >&2; exit 0; fi
    sudo=""; [ "$(id -u)" = 0 ] || sudo="sudo -n"
    echo "installing Chromium from Debian's packages" >&2
    ($sudo apt-get update -qq && $sudo apt-get install -y -qq chromium) >/dev/null 2>&1 \
        || echo "Chromium could not be installed: browser tests are skipped" >&2
