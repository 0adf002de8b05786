"""The console in Chromium against the fake API: what a person sees and does, and what happens to streams."""

import asyncio
import json
import os
import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.e2e.console_fake_api import FakeApi, seed
from tests.e2e.console_fake_task import Run, World

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
Json = dict[str, Any]

pytestmark = pytest.mark.browser


class Site:
    """A fake API of its own in a thread."""

    def __init__(self, token: str = "", speed: float = 0.1) -> None:
        self.api = FakeApi(World(speed=speed), token)
        seed(self.api.world)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = uvicorn.Server(
            uvicorn.Config(self.api, port=self.port, log_level="error", timeout_graceful_shutdown=1)
        )
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve()), daemon=True)
        self.thread.start()
        while not self.server.started:
            pass

    def weather(self, **body: Any) -> Json:
        request = urllib.request.Request(f"{self.url}/fake", json.dumps(body).encode())
        answer: Json = json.load(urllib.request.urlopen(request))
        return answer

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(5)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not os.path.exists(CHROMIUM):
        pytest.skip(f"no Chromium at {CHROMIUM}")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    context = browser.new_context(locale="en-US", color_scheme="dark", viewport={"width": 1280, "height": 860})
    foreign: list[str] = []
    problems: list[str] = []
    context.on("request", lambda r: foreign.append(r.url) if not r.url.startswith((site.url, "data:")) else None)
    context.on("weberror", lambda e: problems.append(str(e.error)))
    context.on("console", lambda m: problems.append(m.text) if "Content Security Policy" in m.text else None)
    yield context
    context.close()
    assert foreign == [], "a request left the machine"
    assert problems == []


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Page:
    page = context.new_page()
    page.goto(site.url)
    return page


def say(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.keyboard.press("Enter")


def ended(page: Page, turns: int = 1) -> None:
    expect(page.locator(".turn-footer")).to_have_count(turns, timeout=20_000)


def test_a_question_is_answered_with_its_steps(page: Page) -> None:
    say(page, "What is in this folder?")
    ended(page)
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]+$"))
    expect(page.locator("[data-tool=list_dir]")).to_contain_text("test_pond.py")
    expect(page.locator(".answer table")).to_contain_text("README.md")
    expect(page.locator(".usage")).to_contain_text("from cache")
    expect(page.locator(".row.is-here")).to_contain_text("What is in this folder?")
    assert page.locator(".answer img").count() == 0
    link = page.get_by_role("link", name="pytest documentation")
    assert (link.get_attribute("rel"), link.get_attribute("target")) == ("noreferrer noopener", "_blank")


def test_allow_once_and_for_ever(page: Page) -> None:
    say(page, "The tests fail. Find out why and fix it.")
    card = page.locator(".approval")
    expect(card).to_contain_text("python -m pytest -q tests")
    expect(card).to_contain_text("/home/ada/projects/duckpond")
    expect(page.locator("[data-activity=waiting_for_approval]")).to_be_visible()
    expect(page.locator(".row.is-here")).to_contain_text("needs you")
    page.get_by_role("button", name="Allow once").click()
    shell = page.locator("[data-tool=shell_exec]")
    expect(shell).to_contain_text("exit 1")
    expect(shell).to_contain_text("allowed once")
    assert shell.locator(".ansi-fg1").count() > 3
    page.get_by_role("button", name="Allow for ever").click()
    ended(page)
    expect(page.locator("[data-tool=file_write]")).to_contain_text("allowed for ever")


def test_deny_by_keyboard_with_a_reason(page: Page) -> None:
    say(page, "install it")
    reason = page.get_by_label("Reason for denying")
    expect(page.locator("mark.escaped").first).to_have_text("\\u{202e}")
    reason.fill("not from the internet")
    reason.press("Enter")
    ended(page)
    expect(page.locator("[data-status=denied]")).to_contain_text("not from the internet")


def test_an_approval_answered_in_another_tab(page: Page, context: BrowserContext) -> None:
    say(page, "The tests fail")
    expect(page.locator(".approval")).to_be_visible()
    other = context.new_page()
    other.goto(page.url)
    page.route("**/v1/tasks/*/events", lambda route: route.abort())
    expect(other.locator(".approval")).to_be_visible()
    other.get_by_role("button", name="Allow once").click()
    expect(other.locator("[data-tool=shell_exec]")).to_contain_text("exit 1")
    expect(page.locator("[data-tool=shell_exec]")).to_contain_text("exit 1")


def test_reload_in_the_middle_resumes(page: Page, site: Site) -> None:
    site.weather(speed=0.6)
    say(page, "slow please")
    expect(page.locator(".answer")).to_contain_text("Slow and steady", timeout=30_000)
    page.reload()
    expect(page.locator(".answer")).to_contain_text("Slow and steady")
    assert page.locator("[data-activity=writing]").count() == 1
    site.weather(speed=0.01)
    ended(page)
    text = page.locator(".answer").inner_text()
    assert text.strip() == ("Slow and steady. " * 60).strip()


def test_cut_connections_lose_and_double_nothing(page: Page, site: Site) -> None:
    site.weather(speed=0.4)
    say(page, "slow please")
    for _ in range(4):
        page.wait_for_timeout(700)
        site.weather(cut=True, speed=0.4)
    site.weather(speed=0.01)
    ended(page)
    assert page.locator(".answer").inner_text().strip() == ("Slow and steady. " * 60).strip()
    expect(page.locator(".item.is-thought")).to_have_count(2)


def test_a_silent_connection_is_given_up(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.clock.install()
    page.goto(site.url)
    say(page, "The tests fail")
    expect(page.locator(".approval")).to_be_visible()
    page.wait_for_timeout(1000)
    site.weather(mute=True)

    def streams() -> int:
        return sum(r.endswith("/events") for r in site.weather(mute=True)["requests"])

    before = streams()
    page.clock.fast_forward(20_000)
    page.wait_for_timeout(500)
    assert streams() == before, "20 s of silence are no reason to give up"
    page.evaluate("dispatchEvent(new Event('online'))")
    page.wait_for_timeout(1500)
    assert streams() == before + 1, "a page that wakes up does not trust a silent line"
    page.clock.fast_forward(27_000)
    page.wait_for_timeout(2500)
    assert streams() > before + 1, "the watchdog opens the line again"
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator("[data-tool=shell_exec]")).to_contain_text("exit 1")


def test_switching_away_and_back_shows_live_progress(page: Page, site: Site) -> None:
    site.weather(speed=0.5)
    say(page, "slow please")
    expect(page.locator(".turn")).to_be_visible()
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    page.wait_for_timeout(1500)
    page.locator(".row", has_text="slow please").get_by_role("link").click()
    expect(page.locator(".turn.is-working")).to_be_visible()
    site.weather(speed=0.01)
    ended(page)


def test_stop(page: Page, site: Site) -> None:
    site.weather(speed=0.5)
    say(page, "slow please")
    page.get_by_role("button", name="Stop").click()
    ended(page)
    expect(page.locator("[data-note=cancelled]")).to_be_visible()
    expect(page.get_by_role("button", name="Send again")).to_be_visible()


def test_continue_after_a_limit(page: Page) -> None:
    say(page, "find a heron")
    ended(page)
    expect(page.locator("[data-note='stopped.iterations']")).to_be_visible()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".answer").last).to_contain_text("There it is")
    ended(page)


def test_a_message_is_queued_while_a_task_works(page: Page, site: Site) -> None:
    site.weather(speed=0.3)
    say(page, "build all")
    expect(page.locator(".turn.is-working")).to_be_visible()
    say(page, "and then say hello")
    expect(page.locator(".queued")).to_contain_text("and then say hello")
    site.weather(speed=0.01)
    ended(page, 2)
    expect(page.locator(".queued")).to_have_count(0)
    expect(page.locator(".said").last).to_have_text("and then say hello")


def test_a_queued_message_is_held_when_the_task_is_stopped(page: Page, site: Site) -> None:
    site.weather(speed=0.5)
    say(page, "slow please")
    expect(page.locator(".turn.is-working")).to_be_visible()
    say(page, "next")
    page.get_by_role("button", name="Stop").click()
    ended(page)
    expect(page.locator(".queued")).to_contain_text("did not finish")
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Message")).to_have_value("next")


def test_failures_are_told_in_words(page: Page) -> None:
    say(page, "check the settings")
    ended(page)
    for words in (
        "refused by the rules",
        "was not valid",
        "Not run again",
        "cannot read: task.something_new.v1",
        "The task failed",
    ):
        expect(page.locator(".turn")).to_contain_text(words)


def test_html_in_an_answer_stays_text(page: Page) -> None:
    say(page, "markup please")
    ended(page)
    answer = page.locator(".answer")
    expect(answer).to_contain_text("<script>alert(1)</script>")
    assert answer.locator("img, script, a[href^='javascript']").count() == 0


def test_long_output_is_folded(page: Page) -> None:
    say(page, "build all")
    ended(page)
    terminal = page.locator(".terminal")
    assert terminal.locator(".line").count() == 20
    terminal.get_by_role("button", name="Show all 160 lines").click()
    expect(terminal.locator(".line")).to_have_count(160)


def test_enter_sends_shift_enter_breaks_and_drafts_stay(page: Page) -> None:
    field = page.get_by_label("Message")
    field.fill("one")
    field.press("Shift+Enter")
    field.type("two")
    page.reload()
    expect(page.get_by_label("Message")).to_have_value("one\ntwo")
    field.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    expect(field).to_have_value("one\ntwo")
    field.press("Enter")
    expect(page.locator(".said")).to_have_text("one\ntwo")
    expect(page.get_by_label("Message")).to_have_value("")


def test_rename_and_archive(page: Page) -> None:
    row = page.locator(".row", has_text="Backup script")
    row.hover()
    row.get_by_role("button", name="Rename").click()
    page.get_by_label("New title").fill("Nightly backup")
    page.keyboard.press("Enter")
    row = page.locator(".row", has_text="Nightly backup")
    row.hover()
    row.get_by_role("button", name="Archive").click()
    expect(row).to_be_hidden()
    page.locator(".list-archived summary").click()
    expect(row).to_be_visible()


def test_banners_come_and_go(page: Page, site: Site) -> None:
    expect(page.locator(".banners")).to_contain_text("smoke tests only")
    site.weather(engine={"state": "failed", "detail": "refused", "smoke_test_model": False})
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator(".banners")).to_contain_text("model server is not there")
    site.weather(engine={"state": "ready"}, database="away")
    expect(page.locator(".banners")).to_contain_text("database is away")
    site.weather(engine={"state": "ready"})
    expect(page.locator(".banners")).to_have_text("", timeout=10_000)


def test_a_message_that_cannot_be_sent_comes_back(page: Page, site: Site) -> None:
    site.weather(database="away")
    say(page, "precious words")
    expect(page.get_by_role("alert")).to_contain_text("not sent")
    expect(page.get_by_label("Message")).to_have_value("precious words")


def test_unknown_conversation(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/c/nothing")
    expect(page.locator("main")).to_contain_text("There is no such conversation.")


def test_without_a_token_there_is_a_door(browser: Browser) -> None:
    site = Site(token="secret")
    page = browser.new_page(locale="en-US")
    page.goto(site.url)
    expect(page.get_by_role("heading")).to_contain_text("Open the link that DuckLM printed")
    page.get_by_label("Token").fill("guess")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not the right token")
    page.get_by_label("Token").fill("secret")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    page.close()
    site.stop()


def test_russian_browser_light_theme_phone(browser: Browser, site: Site) -> None:
    page = browser.new_page(locale="ru-RU", color_scheme="light", viewport={"width": 390, "height": 844})
    page.goto(site.url)
    expect(page.get_by_role("heading", name="Над чем поработаем?")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    page.get_by_role("button", name="Беседы").click()
    page.get_by_role("button", name="EN", exact=True).click()
    page.get_by_role("button", name="Theme: as the system").click()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.reload()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.get_by_role("button", name="Conversations").click()
    page.keyboard.press("Escape")
    expect(page.locator("#sidebar")).not_to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    page.close()


def test_a_long_conversation_shows_its_end_first_and_the_rest_by_scrolling(page: Page, site: Site) -> None:
    world = site.api.world
    conversation = world.conversation("long")
    for number in range(200):
        run = Run(world, conversation, f"question {number}")
        run.created = f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z"
        run.event("created", conversation_id=conversation["conversation_id"], message=run.message, workspace="/w")
        run.event("response_completed", text=f"answer {number}", call_id="", reasoning="", notices=[])
        run.event("completed")
        world.runs[run.task_id] = run
    page.goto(f"{site.url}/c/{conversation['conversation_id']}")
    expect(page.locator(".said").last).to_be_in_viewport()
    expect(page.locator(".said").last).to_have_text("question 199")
    assert page.locator(".turn").count() < 100
    page.locator(".transcript").hover()
    first = page.locator(".said", has_text=re.compile("^question 0$"))
    for _ in range(150):
        if first.count():
            break
        page.mouse.wheel(0, -2500)
        page.wait_for_timeout(40)
    expect(first).to_be_visible()
