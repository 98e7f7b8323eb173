"""A real browser for the tests of the page: a Chromium that is installed, driven by Playwright."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if chromium is None:
        pytest.skip("no Chromium is installed")
    # In milliseconds, like Playwright's default for actions.
    playwright.expect.set_options(timeout=30_000)
    with playwright.sync_playwright() as library:
        browser = library.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page in a new context.

    Checks afterwards that it sent nothing elsewhere and caused no errors.
    """
    contexts = []
    addresses = list[str]()
    requests = list[str]()
    problems = list[str]()

    def open_page(at: str = address, **options: Any) -> Any:
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        contexts.append(context)
        addresses.append(at)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(at)
        targets = page.get_by_role("combobox", name="To").get_by_role("option")
        targets.first.wait_for(state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert requests
    assert [url for url in requests if not url.startswith(tuple(addresses))] == []
    reported_by_chromium = "Failed to load resource:"
    assert [text for text in problems if reported_by_chromium not in text] == []
