"""The HTTP application, put together."""

from collections.abc import Sequence
from typing import Any

from litestar import Litestar
from litestar.config.compression import CompressionConfig
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.static_files import create_static_files_router
from litestar.types import ASGIApp

from api.console import ConsoleController
from api.controllers.approvals import ApprovalController
from api.controllers.chat import ChatController
from api.controllers.conversations import ConversationController
from api.controllers.models import ModelController
from api.controllers.system import SystemController
from api.controllers.tasks import TaskController
from api.problems import on_bug, on_duck_error, on_http_error
from api.reads import Reads
from api.reference_page import ReferencePage
from api.runtime import Runtime
from api.security import Gate
from api.service import Service
from api.settings import PACKAGE_ROOT, Settings
from domain.errors import DuckError
from projections.catalogue import READ_MODELS

MAX_BODY = 4 * 1024 * 1024
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def create_app(runtime: Runtime) -> Litestar:
    """The application over a runtime that somebody else starts and stops."""
    service = Service(runtime)
    reads = Reads(runtime.database, [cls() for cls in READ_MODELS.values()])
    hosts = allowed_hosts(runtime.settings)
    webui = PACKAGE_ROOT / "webui"
    static = [
        create_static_files_router(f"/{name}", [webui / name], include_in_schema=False)
        for name in ("js", "css", "vendor")
        if (webui / name).is_dir()
    ]

    def gate(app: ASGIApp) -> Gate:
        return Gate(app, runtime.token, hosts, lambda: runtime.tail.connected)

    return Litestar(
        route_handlers=[
            ChatController,
            TaskController,
            ConversationController,
            ApprovalController,
            ModelController,
            SystemController,
            ConsoleController,
            *static,
        ],
        dependencies={
            "runtime": Provide(lambda: runtime, sync_to_thread=False),
            "service": Provide(lambda: service, sync_to_thread=False),
            "reads": Provide(lambda: reads, sync_to_thread=False),
        },
        middleware=[gate],
        exception_handlers={DuckError: on_duck_error, HTTPException: on_http_error, Exception: on_bug},
        request_max_body_size=MAX_BODY,
        compression_config=CompressionConfig(backend="gzip", exclude=["/stream", "/events"]),
        openapi_config=_openapi(),
        logging_config=None,  # api.logs has set it up
        signature_namespace={"Runtime": Runtime, "Service": Service, "Reads": Reads},
    )


def allowed_hosts(settings: Settings) -> frozenset[str]:
    extra: Sequence[str] = [h.strip().lower() for h in settings.allowed_hosts.split(",") if h.strip()]
    own = f"[{settings.host}]" if ":" in settings.host else settings.host
    return frozenset((*_LOOPBACK, own.lower(), *extra))


def _openapi() -> OpenAPIConfig:
    scheme: Any = SecurityScheme(type="http", scheme="bearer")
    return OpenAPIConfig(
        title="DuckLM",
        version="1",
        path="/schema",
        render_plugins=[ReferencePage(), JsonRenderPlugin()],
        components=Components(security_schemes={"token": scheme}),
        security=[{"token": []}],
    )
