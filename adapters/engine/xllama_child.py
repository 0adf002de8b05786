"""Child process that serves a model with ``xllamacpp``, the C++ llama-server inside Python.

Standard input carries one line of JSON (``ChildOptions``), and is the tie to the parent from then on.
"""

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from adapters.engine.child_options import ChildOptions
from adapters.engine.lifeline import tie_to_parent


def common_params(xllamacpp: Any, options: ChildOptions) -> Any:
    """The ``CommonParams`` for the options. Raises ``AttributeError`` when this version knows one of them no more."""
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = [options.host]
    params.port = options.port
    params.api_keys = [options.api_key]
    params.cors_origins = options.cors_origin
    params.cors_origins_explicit = True
    params.slot_save_path = options.slot_save_path + "/"  # the C++ side appends the file name as it is
    params.n_ctx = options.context_tokens
    params.n_parallel = options.slots
    params.use_jinja = True
    params.ui = False
    params.endpoint_metrics = True
    if options.threads:
        params.cpuparams.n_threads = options.threads
        params.cpuparams_batch.n_threads = options.threads
    for name, value in options.params.items():
        getattr(params, name)  # setting an unknown attribute must not pass silently
        setattr(params, name, Path(value).read_text(encoding="utf-8") if name == "chat_template" else value)
    return params


def main() -> None:
    """Serves until it is killed."""
    options = msgspec.json.decode(_first_line(), type=ChildOptions)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tie_to_parent(options.parent, lambda: None)
    xllamacpp = importlib.import_module("xllamacpp")
    server = xllamacpp.Server(common_params(xllamacpp, options))
    print(f"serving at {server.listening_address}", flush=True)
    while True:
        signal.pause()


def _first_line() -> bytes:
    """Reads no further than the line, past Python's buffers: what follows belongs to the tie."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit("nothing was said on standard input")
        line += byte
    return line


if __name__ == "__main__":
    main()
