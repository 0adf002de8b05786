"""How constrained answers are asked for: tried out now, or as tasks found out."""

import os

from rich.text import Text

from adapters.llm import Endpoint, HttpModelClient, load_roles
from api.cli import log
from api.cli.options import Common
from api.cli.output import out, print_table, safe
from api.settings import PACKAGE_ROOT, Settings
from domain.errors import NotFound
from domain.ids import SERVERS_STREAM
from domain.model import TransportProbe
from domain.server import TransportChosen


async def probe_now(settings: Settings) -> TransportProbe:
    """Renders a short tool loop on the server of the action role. Raises ``ModelError`` or ``SetupError``."""
    default = Endpoint(settings.llama_url, settings.llama_api_key)
    roles = load_roles(settings.models_path, PACKAGE_ROOT / "prompts", default, os.environ)
    async with HttpModelClient(roles) as client:
        return await client.probe("action")


def recorded_probes(options: Common) -> list[TransportProbe]:
    """The last choice for each server and template. Raises ``NotFound`` when no task has asked a model yet."""
    with log.opened(options) as database:
        events = [e.data for e in database.store.load(SERVERS_STREAM)]
    latest = {(e.probe.url, e.probe.template_hash): e.probe for e in events if isinstance(e, TransportChosen)}
    if not latest:
        raise NotFound('no model was asked yet: `ducklm ask "…"` does, or set DUCKLM_LLAMA_URL to try a server now')
    return list(latest.values())


def print_probe(found: TransportProbe) -> None:
    """The choice, and the figures behind it."""
    reasoning = "sent back" if found.send_reasoning else "not sent back"
    out.print(
        Text.assemble(
            (found.transport, "bold"), f", observations as {found.observations} messages, reasoning {reasoning}: ",
            safe(found.reason),
        )
    )  # fmt: skip
    out.print(Text(safe(f"{found.url} · {found.model} · template {found.template_hash or 'not known'}"), "dim"))
    rows = [
        (
            t.transport, t.observations, "yes" if t.reasoning else "no", " ".join(map(str, t.loop)),
            "" if t.problem else t.final, "" if t.problem else t.next_message, t.problem,
        )
        for t in found.trials
    ]  # fmt: skip
    columns = ("transport", "observations", "reasoning", "lost a step", ">at the end", ">next message", "~problem")
    print_table(columns, rows, "nothing was tried: the server can't render its template")
