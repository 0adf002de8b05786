"""Checks of the model engine and the roles."""

import os

from adapters.engine import probe
from adapters.engine.discovery import describe
from adapters.engine.model_file import check_gguf
from adapters.engine.settings import EngineSettings
from adapters.llm import Endpoint, load_constitution, load_roles
from api.cli.checks import Check
from api.settings import PACKAGE_ROOT, Settings
from domain.errors import SetupError

ENGINES = "set DUCKLM_LLAMA_URL to a running llama-server, put llama-server on PATH, or install the extra ducklm[local]"
REAL_WORK = "for real work set DUCKLM_LLAMA_URL to a llama-server with a large model, or DUCKLM_MODEL to a GGUF file"


async def engine(settings: Settings) -> Check:
    """Which engine there is, and whether it has a model."""
    if settings.llama_url:
        return await _given(settings)
    found = describe(EngineSettings(home=settings.home_path, llama_dir=PACKAGE_ROOT / "llama"))
    if not found.usable:
        return Check("engine", "fail", "no engine is installed", ENGINES)
    name = f"llama-server at {found.llama_server}" if found.llama_server else f"xllamacpp {found.xllamacpp}"
    if settings.model:
        return _with_model(name, settings.model)
    if not found.small_model:
        return Check("engine", "fail", f"{name}, without a model", "set DUCKLM_MODEL to a GGUF file")
    return Check("engine", "warn", f"{name} with the small model, which is for smoke tests only", REAL_WORK)


async def _given(settings: Settings) -> Check:
    url = settings.llama_url.rstrip("/").removesuffix("/v1")
    if not url.startswith(("http://", "https://")):
        return Check("engine", "fail", f"{url!r} is no address", "write DUCKLM_LLAMA_URL=http://HOST:PORT")
    async with probe.client(url, settings.llama_api_key) as http:
        condition = await probe.health(http)
        if condition == "silent":
            return Check(
                "engine", "fail", f"nothing answers at {url}", "start the server there, or correct DUCKLM_LLAMA_URL"
            )
        if condition == "loading":
            return Check("engine", "warn", f"the server at {url} is loading its model", "tasks wait until it is ready")
        props = await http.get("/props")
        if props.status_code in (401, 403):
            return Check("engine", "fail", f"the server at {url} wants a key", "set DUCKLM_LLAMA_API_KEY")
    return Check("engine", "ok", f"a server at {url}{_told(props.json() if props.is_success else {})}")


def _told(props: object) -> str:
    """Model and context, where the server says."""
    if not isinstance(props, dict):
        return ""
    model = str(props.get("model_alias") or props.get("model_path") or "").rsplit("/", 1)[-1]
    context = props.get("default_generation_settings", {}).get("n_ctx", 0)
    return (f", {model}" if model else "") + (f", {context:,} tokens of context" if context else "")


def _with_model(name: str, model: str) -> Check:
    from pathlib import Path

    path = Path(model).expanduser()
    if not path.exists() and not model.endswith(".gguf") and model.count("/") == 1:
        return Check(
            "engine", "warn", f"{name} with {model}", "it is downloaded by the first start if it is not there yet"
        )
    try:
        check_gguf(path)
    except SetupError as error:
        return Check("engine", "fail", f"{name}, but {error}", "set DUCKLM_MODEL to a GGUF file that is there")
    return Check("engine", "ok", f"{name} with {path}")


def roles(settings: Settings) -> Check:
    """That models.yaml and the prompts can be read."""
    prompts = PACKAGE_ROOT / "prompts"
    try:
        found = load_roles(
            settings.models_path, prompts, Endpoint(settings.llama_url or "http://127.0.0.1:1"), os.environ
        )
        load_constitution(prompts)
    except SetupError as error:
        return Check("models.yaml", "fail", str(error), "correct the line, or unset DUCKLM_MODELS_FILE")
    others = sorted({r.endpoint for r in found.values()} - {settings.llama_url.rstrip("/"), "http://127.0.0.1:1"})
    more = f", servers beside the engine: {', '.join(others)}" if others else ""
    return Check("models.yaml", "ok", f"{len(found)} roles in {settings.models_path}{more}")
