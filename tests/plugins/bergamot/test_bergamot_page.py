"""What the page of a Firefox model says about its languages, in a real browser."""

import shutil

import pytest

from nmt.files import ModelDescription
from nmt.plugins.bergamot.page import page_of

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
CODES = [
    # Code, name, what a browser takes as the language, and direction.
    ("de", "German", "de", "ltr"),
    ("zh_CN", "Simplified Chinese (China)", "zh-CN", "ltr"),
    ("zh_Hans", "Simplified Chinese", "zh-Hans", "ltr"),
    ("pt_BR", "Brazilian Portuguese", "pt-BR", "ltr"),
    ("jpn", "Japanese", "ja", "ltr"),
    ("sr@latin", "Serbian (Latin)", "sr-Latn", "ltr"),
    ("fa", "Persian", "fa", "rtl"),
    ("pa_Arab", "Punjabi (Arabic)", "pa-Arab", "rtl"),
    ("xx", "xx", "", "ltr"),
    ("<b>", "<b>", "", "ltr"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as library:
        browser = library.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize(("code", "name", "tag", "direction"), CODES)
def test_the_page_starts_with_every_language_code(browser, tmp_path, code, name, tag, direction):
    """The engine is a program that fails, so that a page that started says so."""
    description = ModelDescription({}, 0, "ar", code, "", {})
    path = tmp_path / "page.html"
    path.write_bytes(page_of([b"throw Error('no engine')", b"", b"", b"", b""], description))
    view = browser.new_page()
    problems = list[str]()
    view.on("pageerror", lambda error: problems.append(str(error)))
    view.goto(path.as_uri())
    playwright.expect(view.get_by_role("status")).to_contain_text("no engine")
    assert view.title() == f"Arabic to {name}"
    assert view.get_by_role("heading").inner_text() == f"Arabic to {name}"
    source = view.get_by_role("textbox", name="Text in Arabic")
    assert [source.get_attribute("lang"), source.evaluate("box => getComputedStyle(box).direction")] == ["ar", "rtl"]
    target = view.get_by_role("textbox", name=f"Translation into {name}")
    assert target.get_attribute("lang") == tag
    assert target.evaluate("box => getComputedStyle(box).direction") == direction
    assert problems == ["no engine"]
    view.close()
