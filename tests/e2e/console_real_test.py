"""The console against the whole program: real API, worker, projections and tools; only the model is scripted."""

import os
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.doubles.scripted_llama import act, done, http_error, say
from tests.program import TOKEN, Program

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
SHOTS = os.environ.get("CONSOLE_SHOTS", "")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not os.path.exists(CHROMIUM), reason=f"no Chromium at {CHROMIUM}"),
]


@pytest.fixture
async def page(program: Program) -> AsyncIterator[Page]:
    async with async_playwright() as p:
        browser = await p.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        page = await browser.new_page(locale="en-US", color_scheme="dark", viewport={"width": 1280, "height": 860})
        foreign: list[str] = []
        problems: list[str] = []
        page.on("request", lambda r: foreign.append(r.url) if not r.url.startswith((program.url, "data:")) else None)
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on("console", lambda m: problems.append(m.text) if "Content Security Policy" in m.text else None)
        await page.goto(f"{program.url}/?token={TOKEN}")
        yield page
        await browser.close()
        assert (foreign, problems) == ([], [])


async def say_to(page: Page, text: str) -> None:
    await page.get_by_label("Message").fill(text)
    await page.keyboard.press("Enter")


async def ended(page: Page, turns: int = 1) -> None:
    await expect(page.locator(".turn-footer")).to_have_count(turns, timeout=20_000)


async def shot(page: Page, name: str) -> None:
    """A picture to look at, when a folder for them is given."""
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png")


async def test_a_question_answered_from_real_files(program: Program, page: Page) -> None:
    (program.workspace / "pond.txt").write_text("ducks: 3\n")
    program.llama.push("action", act("list_dir", path="."), act("file_read", path="pond.txt"), done())
    program.llama.push("thinker", say("There is **pond.txt**; it counts three ducks. 🦆", "The file says it.", 0.01))
    await say_to(page, "What is in this folder?")
    await ended(page)
    await expect(page.locator("[data-tool=list_dir]")).to_contain_text("pond.txt")
    await expect(page.locator("[data-tool=file_read]")).to_contain_text("ducks: 3")
    await expect(page.locator(".answer strong")).to_have_text("pond.txt")
    await expect(page.locator(".row.is-here")).to_contain_text("What is in this folder?")
    await shot(page, "real-answer")
    before = await page.locator(".turn").inner_text()
    await page.reload()
    await expect(page.locator("[data-tool=file_read]")).to_contain_text("ducks: 3")
    await expect(page.locator(".answer strong")).to_have_text("pond.txt")
    assert (await page.locator(".work").inner_text()) in before


async def test_a_command_is_approved_runs_and_is_shown(program: Program, page: Page) -> None:
    command = "for i in 1 2 3; do echo line $i; sleep 0.2; done; touch made.txt; exit 3"
    program.llama.push("action", act("shell_exec", command=command), done())
    program.llama.push("thinker", say("It printed three lines and ended with 3."))
    await say_to(page, "run it")
    await expect(page.locator(".approval pre").first).to_contain_text(command)
    await expect(page.locator(".approval")).to_contain_text(str(program.workspace))
    await shot(page, "real-approval")
    await page.reload()
    await page.get_by_role("button", name="Allow once").click()
    await ended(page)
    shell = page.locator("[data-tool=shell_exec]")
    await expect(shell).to_contain_text("line 3")
    await expect(shell).to_contain_text("exit 3")
    assert (program.workspace / "made.txt").exists()


async def test_denied(program: Program, page: Page) -> None:
    program.llama.push("action", act("shell_exec", command="touch made.txt"), done())
    await say_to(page, "run it")
    await page.get_by_label("Reason for denying").fill("не надо")
    await page.get_by_role("button", name="Deny").click()
    await ended(page)
    await expect(page.locator("[data-status=denied]")).to_contain_text("не надо")
    assert not (program.workspace / "made.txt").exists()


async def test_reload_in_the_middle_of_an_answer(program: Program, page: Page) -> None:
    text = " ".join(f"word{i}" for i in range(150))
    program.llama.push("thinker", say(text, "Thinking first.", token_delay=0.02))
    await say_to(page, "talk")
    await expect(page.locator(".answer")).to_contain_text("word9 ", timeout=15_000)
    await page.reload()
    await expect(page.locator(".answer[data-live=true]")).to_contain_text("word0 word1 ")
    await ended(page)
    assert (await page.locator(".answer").inner_text()).strip() == text


async def test_stop_in_the_middle_of_an_answer(program: Program, page: Page) -> None:
    program.llama.push("thinker", say("word " * 500, token_delay=0.02))
    await say_to(page, "talk")
    await expect(page.locator(".answer")).to_contain_text("word word", timeout=15_000)
    await page.get_by_role("button", name="Stop").click()
    await ended(page)
    await expect(page.locator("[data-note=cancelled]")).to_be_visible()


async def test_a_model_that_fails_is_told_and_can_be_continued(program: Program, page: Page) -> None:
    program.llama.push("action", http_error(400, "the template does not like this", "invalid_request_error"))
    await say_to(page, "hello")
    await ended(page)
    await expect(page.locator("[data-note=failed]")).to_contain_text("the template does not like this")
    await shot(page, "real-failed")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator(".answer")).to_contain_text("scripted answer", timeout=15_000)
    await ended(page)


async def test_rename_archive_and_a_second_message(program: Program, page: Page) -> None:
    await say_to(page, "first")
    await ended(page)
    await say_to(page, "second")
    await ended(page, 2)
    row = page.locator(".row.is-here")
    await row.hover()
    await row.get_by_role("button", name="Rename").click()
    await page.get_by_label("New title").fill("Пруд")
    await page.keyboard.press("Enter")
    await page.reload()
    await expect(page.locator(".header-title")).to_have_text("Пруд")
    await ended(page, 2)
    await expect(page.locator(".said").last).to_have_text("second")
