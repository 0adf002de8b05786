"""Carrying out what tasks want: the interpreter, the queue's worker, and the feed of what is happening now."""
