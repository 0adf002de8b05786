"""The event store on Postgres: append, read, tail, and what belongs to the log beside events."""
