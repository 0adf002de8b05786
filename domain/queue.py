"""What the projection that hands out work and the worker that takes it must agree on."""

QUEUE = "tasks"
JOB = "advance"
RETRY_SECONDS = 5
"""How long a task that waits for its model server or the database sleeps before it is looked at again."""
