"""The console's pages: one HTML file for every address the console knows; scripts and styles are static files."""

from litestar import Controller, MediaType, Response, get

from api.settings import PACKAGE_ROOT

_WEBUI = PACKAGE_ROOT / "webui"


class ConsoleController(Controller):
    path = ""
    include_in_schema = False

    @get(["/", "/c/{conversation_id:str}"], media_type=MediaType.HTML)
    async def page(self) -> Response[bytes]:
        # no-cache: an upgraded program must not talk to a console of the version before
        return Response(
            (_WEBUI / "index.html").read_bytes(), media_type=MediaType.HTML, headers={"cache-control": "no-cache"}
        )

    @get("/favicon.svg", media_type="image/svg+xml")
    async def favicon(self) -> Response[bytes]:
        return Response((_WEBUI / "favicon.svg").read_bytes(), media_type="image/svg+xml")
