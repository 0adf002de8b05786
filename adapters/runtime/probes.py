"""Keeping in the log how prompts are shaped for each model server."""

from contextlib import suppress

from adapters.store.event_store import EventStore, Write
from domain.errors import ConcurrencyConflict
from domain.ids import SERVERS_STREAM
from domain.model import TransportProbe
from domain.server import TransportChosen


def record_probe(store: EventStore, probe: TransportProbe) -> None:
    """Appends the choice unless the last one for this server and template was the same."""
    log = store.load(SERVERS_STREAM)
    before = [e.data.probe for e in log if isinstance(e.data, TransportChosen)]
    same = [p for p in before if (p.url, p.template_hash) == (probe.url, probe.template_hash)]
    if same and same[-1] == probe:
        return
    with suppress(ConcurrencyConflict):  # another task found out the same at the same moment
        store.append([Write(SERVERS_STREAM, len(log), [TransportChosen(probe)])])
