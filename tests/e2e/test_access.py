"""Who gets in, and what bad input becomes."""

import httpx
import pytest

from tests.program import TOKEN, Program

AUTH = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"cookie": "ducklm_token=wrong"}, 401),
        ({"cookie": f"ducklm_token={TOKEN}"}, 200),
        (AUTH, 200),
        ({**AUTH, "origin": "https://evil.example"}, 403),
        ({**AUTH, "origin": "null"}, 403),
        ({**AUTH, "host": "evil.example"}, 403),
        ({**AUTH, "host": "127.0.0.1.evil.example:8000"}, 403),
        ({**AUTH, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, 403),
    ],
)
async def test_the_gate(program: Program, headers: dict[str, str], status: int) -> None:
    async with httpx.AsyncClient(base_url=program.url) as client:
        response = await client.get("/v1/tasks", headers=headers)
    assert response.status_code == status
    if status != 200:
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["status"] == status


async def test_an_origin_of_the_same_server_is_let_in(program: Program) -> None:
    assert (await program.http.get("/v1/tasks", headers={"origin": program.url})).status_code == 200


async def test_health_needs_no_token(program: Program) -> None:
    async with httpx.AsyncClient(base_url=program.url) as client:
        assert (await client.get("/health")).json() == {"status": "ok"}


async def test_the_login_link_sets_a_strict_cookie_and_hides_the_token(program: Program) -> None:
    async with httpx.AsyncClient(base_url=program.url) as client:
        response = await client.get("/", params={"token": TOKEN})
        assert (response.status_code, response.headers["location"]) == (303, "/")
        cookie = response.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await client.get("/v1/tasks")).status_code == 200
        page = await client.get("/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert TOKEN not in page.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"message": 1}', 400),
        (b'{"message": ""}', 400),
        (b'{"message": "  \\n"}', 400),
        (b'{"message": "x", "colour": "red"}', 400),
        (b'{"message": "x", "workspace": "/does/not/exist"}', 400),
        (b'{"message": "\\ud800"}', 400),
        (b"\xff", 400),
        (b'{"message": "' + b"x" * 300_000 + b'"}', 413),
        (b'{"message": "' + b"x" * 10_000_000 + b'"}', 413),
    ],
)
async def test_bad_bodies_are_named_and_change_nothing(program: Program, body: bytes, status: int) -> None:
    response = await program.http.post("/v1/chat", content=body, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    assert response.json()["detail"]
    assert (await program.get("/v1/tasks"))["items"] == []


async def test_a_form_or_plain_text_is_refused(program: Program) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        response = await program.http.post("/v1/chat", content=b'{"message":"x"}', headers={"content-type": kind})
        assert response.status_code == 415


@pytest.mark.parametrize("path", ["/v1/tasks/nothing", "/v1/tasks/..%2f..%2fetc", "/v1/conversations/nothing",
                                  "/v1/conversations/nothing/messages", "/v1/tasks/nothing/events", "/v1/nothing",
                                  "/js/../../pyproject.toml", "/js/%2e%2e/%2e%2e/pyproject.toml", "/nothing"])  # fmt: skip
async def test_what_is_not_there_is_a_404_problem(program: Program, path: str) -> None:
    response = await program.http.get(path)
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "cursor=abc", "cursor=-1"])
async def test_bad_pages(program: Program, query: str) -> None:
    assert (await program.http.get(f"/v1/tasks?{query}")).status_code == 400


async def test_lists_are_pages_that_join_without_gap(program: Program) -> None:
    for n in range(5):
        await program.chat(f"m{n}")
    seen, cursor = [], None
    while True:
        page = await program.get("/v1/tasks", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [t["title"] for t in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == ["m4", "m3", "m2", "m1", "m0"]


async def test_conversations_are_started_renamed_and_archived(program: Program) -> None:
    made = await program.post("/v1/conversations", {"title": "Планы"}, status=201)
    changed = await program.http.patch(f"/v1/conversations/{made['conversation_id']}", json={"title": "Утки"})
    assert changed.json()["title"] == "Утки"
    await program.http.patch(f"/v1/conversations/{made['conversation_id']}", json={"archived": True})
    assert (await program.get("/v1/conversations", archived=False))["items"] == []
    await program.chat("hello", conversation_id=made["conversation_id"])
    (back,) = (await program.get("/v1/conversations"))["items"]
    assert (back["archived"], back["message_count"], back["last_status"]) == (False, 2, "completed")


async def test_the_openapi_document_names_every_endpoint(program: Program) -> None:
    paths = (await program.get("/schema/openapi.json"))["paths"]
    assert {"/v1/chat", "/v1/chat/stream", "/v1/tasks/{task_id}/events", "/health"} <= set(paths)


async def test_the_api_has_a_page_to_read_without_scripts_or_the_network(program: Program) -> None:
    response = await program.http.get("/schema")
    assert response.headers["content-type"].startswith("text/html")
    assert "/v1/tasks/{task_id}/events" in response.text
    assert "<script" not in response.text
    assert "//" not in response.text.replace("application/", "").replace("</", "")
    async with httpx.AsyncClient(base_url=program.url) as stranger:
        assert (await stranger.get("/schema")).status_code == 401


async def test_status_and_models(program: Program) -> None:
    await program.chat("hi")
    status = await program.get("/v1/status")
    assert status["engine"]["kind"] == "external"
    assert all(p["lag"] == 0 for p in status["projections"] if p["name"] == "tasks")
    roles = (await program.get("/v1/models/roles"))["items"]
    assert {r["name"] for r in roles} == {
        "thinker", "critic", "coder", "action", "summary", "recall", "sys_util", "memory_policy",
    }  # fmt: skip
    ping = (await program.get("/v1/models/ping"))["items"]
    assert len(ping) == 8
    assert all(p["ok"] for p in ping)
    schema = await program.get("/v1/schemas/action_directive")
    assert schema["required"] == ["intent", "actions", "done"]
