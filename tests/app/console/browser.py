"""A real browser at a real service: Chromium, driven by Playwright; tests that need it are skipped, aloud, without."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from bench.console import CHROMIUM, has_browser

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

needs_browser = pytest.mark.skipif(
    not (has_browser() and find_spec("axe_playwright_python")),
    reason=f"no browser: apt-get install chromium ({CHROMIUM}), and pip install casebank[dev]",
)


@asynccontextmanager
async def chromium() -> AsyncIterator["Browser"]:
    from playwright.async_api import async_playwright  # noqa: PLC0415 - may be missing

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        await browser.close()


@asynccontextmanager
async def visitor(browser: "Browser", at: str, **options: Any) -> AsyncIterator["Page"]:
    """A page of somebody without a script, who notes each request that goes anywhere else."""
    context: BrowserContext = await browser.new_context(base_url=at, **{"java_script_enabled": False, **options})
    strayed: list[str] = []
    context.on("request", lambda request: None if request.url.startswith(at) else strayed.append(request.url))
    page = await context.new_page()
    yield page
    await context.close()
    assert strayed == []


async def sign_in(page: "Page", token: str, path: str = "/console") -> None:
    await page.goto(path)
    await page.get_by_label("Your token").fill(token)
    await page.get_by_role("button", name="Sign in").click()
