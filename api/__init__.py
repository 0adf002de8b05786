"""The outside: HTTP, command line, settings, and the composition root that puts everything together."""
