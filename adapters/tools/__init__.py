"""The tools of an agent: files of one workspace, and commands in it. ``gateway.Gateway`` is the way in."""
