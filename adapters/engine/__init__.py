"""The model engine: a llama-server somewhere, or one that we find, start, watch and stop ourselves.

``start.start_engine(EngineSettings, report)`` gives an ``EngineHandle`` (``info``, ``state``, ``api_key``, ``stop()``);
``discovery.describe`` tells what there is. Nothing is imported here: child processes run modules of this package and
should start fast.
"""
