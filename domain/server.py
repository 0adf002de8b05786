"""What was found out about model servers, kept so that a later reader knows why prompts looked as they did."""

from domain.events import Event, event
from domain.model import TransportProbe


@event("server.transport_chosen.v1")
class TransportChosen(Event, frozen=True):
    """How constrained answers are asked for on a server with this chat template, and the figures behind the choice."""

    probe: TransportProbe
