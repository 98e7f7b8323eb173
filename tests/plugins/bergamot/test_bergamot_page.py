"""The page of a Firefox model, in a real browser."""

import shutil

import pytest

from nmt.files import ModelDescription
from nmt.plugins.bergamot.page import page_of

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
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
ENGINE = """
class List {
  constructor() { this.items = [] }
  push_back(item) { this.items.push(item) }
  delete() {}
}
class Service {
  translate(model, lines) {
    const texts = lines.items.map(line => ({getTranslatedText: () => line.toUpperCase()}))
    return {size: () => texts.length, get: index => texts[index], delete() {}}
  }
}
class Memory {
  constructor(size) { this.bytes = new Uint8Array(size) }
  getByteArrayView() { return this.bytes }
}
Object.assign(Module, {
  AlignedMemory: Memory, AlignedMemoryList: List, VectorString: List, VectorResponseOptions: List,
  TranslationModel: class {}, BlockingService: Service,
})
Module.onRuntimeInitialized()
"""
"""An engine with the interface of Bergamot's, whose translation is the text in capitals."""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as library:
        browser = library.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def view(browser, tmp_path):
    """The page with ENGINE, in a browser that may use the clipboard."""
    path = tmp_path / "translator.html"
    description = ModelDescription({}, 0, "ar", "de", "", {})
    path.write_bytes(page_of([ENGINE.encode(), b"", b"m", b"l", b"v"], description))
    context = browser.new_context(
        viewport={"width": 390, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )
    view = context.new_page()
    problems = list[str]()
    view.on("pageerror", lambda error: problems.append(str(error)))
    view.on("console", lambda message: problems.append(message.text))
    view.goto(path.as_uri())
    yield view
    context.close()
    assert problems == []


@pytest.mark.slow
def test_page_translates_and_copies(view):
    playwright.expect(view.get_by_role("status")).to_have_text("Your text stays on this device.")
    playwright.expect(view.get_by_role("progressbar")).to_be_hidden()
    playwright.expect(view.get_by_role("button", name="Copy")).to_be_disabled()
    source, target = view.get_by_role("textbox").all()
    source.fill("a cat\n" * 40)
    playwright.expect(target).to_have_value("A CAT\n" * 40)
    # Neither box scrolls by itself, and the page is not wider than a phone.
    for box in (source, target):
        assert box.evaluate("box => box.scrollHeight <= box.clientHeight")
    assert view.evaluate("document.documentElement.scrollWidth") == 390
    view.get_by_role("button", name="Copy").click()
    playwright.expect(view.get_by_role("button", name="Copied")).to_be_visible()
    assert view.evaluate("navigator.clipboard.readText()") == "A CAT\n" * 40
    view.get_by_role("button", name="Clear").click()
    playwright.expect(target).to_have_value("")
    playwright.expect(view.get_by_role("button", name="Clear")).to_be_disabled()


def test_theme_is_kept(view):
    def ground() -> str:
        return view.evaluate("getComputedStyle(document.body).backgroundColor")

    view.get_by_role("combobox", name="Colors").select_option("Dark theme")
    dark = ground()
    view.reload()
    assert ground() == dark
    assert view.get_by_role("combobox", name="Colors").input_value() == "dark"
    view.get_by_role("combobox", name="Colors").select_option("Light theme")
    assert ground() != dark


@pytest.mark.slow
@pytest.mark.parametrize(("code", "name", "tag", "direction"), CODES)
def test_page_starts_with_every_language_code(browser, tmp_path, code, name, tag, direction):
    """The engine fails on purpose: a page that started reports it."""
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
    assert source.get_attribute("lang") == "ar"
    assert source.evaluate("box => getComputedStyle(box).direction") == "rtl"
    target = view.get_by_role("textbox", name=f"Translation into {name}")
    assert target.get_attribute("lang") == tag
    assert target.evaluate("box => getComputedStyle(box).direction") == direction
    assert problems == ["no engine"]
    view.close()
