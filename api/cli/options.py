"""Options that many commands share. Light: everything here is loaded for ``ducklm --help``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from api.cli.client import Client
    from api.settings import Settings

Flag = Parameter(negative="", show_default=False)
Home = Annotated[Path | None, Parameter(help="Folder of all state (DUCKLM_HOME).", show_default=False)]
Limit = Annotated[int, Parameter(name=["--limit", "-n"], help="How many at most.")]
TaskId = Annotated[str, Parameter(help="The task's id, the last characters of it, or `last`.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Common:
    """What every command takes."""

    json: Annotated[bool, Flag, Parameter(help="Print JSON instead of text.")] = False
    home: Home = None

    def settings(self, **more: Any) -> "Settings":
        """The settings, with what was given on the command line. Raises ``SetupError``."""
        from api.settings import load_settings

        return load_settings(home=str(self.home) if self.home else None, **more)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Online(Common):
    """What commands take that talk to a running DuckLM."""

    url: Annotated[
        str | None,
        Parameter(env_var="DUCKLM_URL", help="A DuckLM elsewhere; its token is DUCKLM_TOKEN.", show_default=False),
    ] = None

    def client(self) -> "Client":
        """A client of the DuckLM that runs. Raises ``SetupError`` when there is none."""
        from api.cli.client import Client, need_server

        return Client(need_server(self.settings(), self.url))


COMMON, ONLINE = Common(), Online()
"""Nothing given: the defaults of commands."""
