"""The page of `nmt serve` for users who correct translations, in a real browser."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.serve import browsers
from tests.plugins.serve.serving import serving

playwright = pytest.importorskip("playwright.sync_api")
browser = browsers.browser
open_page = browsers.open_page
TEXT = "va so tu\n\nmika nu\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suggestions") / "new.tsv"


@pytest.fixture(scope="module")
def address(word_model: Path, path: Path) -> Iterator[str]:
    with serving(word_model, f"suggestions={path}") as server:
        yield f"{server.url}/"


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page(viewport={"width": 1200, "height": 800})


def rows_of(path: Path) -> list[list[str]]:
    return [row.split("\t")[:4] for row in path.read_text().splitlines()]


def translation_of(page: Any) -> Any:
    return page.get_by_role("group", name="Translation")


def translate(page: Any, text: str) -> str:
    page.get_by_role("textbox", name="Text to translate").fill(text)
    playwright.expect(page.locator("#suggest")).to_be_disabled()
    playwright.expect(page.locator("#suggest")).to_be_enabled()
    return str(translation_of(page).text_content())


def open_dialog(page: Any) -> tuple[Any, Any, Any]:
    """The boxes, the button that sends, and the explanation."""
    page.get_by_role("button", name="Suggest a better translation").click()
    dialog = page.get_by_role("dialog", name="Suggest a better translation")
    send = dialog.get_by_role("button", name="Send")
    return dialog.get_by_role("textbox"), send, dialog.get_by_role("status")


def row_of(page: Any, line: int) -> Any:
    """The box for the translation of a line."""
    return page.get_by_role("textbox", name=f"Better translation of line {line}", exact=True)


@pytest.mark.slow
def test_only_changed_lines_are_sent_and_shown(page, path):
    before = len(path.read_text().splitlines())
    first, _, last = translate(page, TEXT).rstrip("\n").split("\n")
    boxes, send, state = open_dialog(page)
    # Blank lines have no row.
    playwright.expect(boxes).to_have_count(2)
    playwright.expect(row_of(page, 1)).to_be_focused()
    playwright.expect(row_of(page, 1)).to_have_value(first)
    playwright.expect(row_of(page, 1)).to_have_accessible_description("va so tu")
    playwright.expect(row_of(page, 3)).to_have_value(last)
    playwright.expect(row_of(page, 3)).to_have_accessible_description("mika nu")
    playwright.expect(state).to_have_text("Change the translation to send it.")
    playwright.expect(send).to_be_disabled()
    row_of(page, 3).fill(" ")
    playwright.expect(state).to_have_text("Line 3 of the translation is empty.")
    playwright.expect(row_of(page, 3)).to_have_attribute("aria-invalid", "true")
    playwright.expect(send).to_be_disabled()
    row_of(page, 3).fill("Es ist besser. ")
    playwright.expect(row_of(page, 3)).to_have_attribute("aria-invalid", "false")
    playwright.expect(state).to_have_text("1 line of 2 will be sent.")
    send.click()
    shown = f"{first}\n\nEs ist besser.\n"
    playwright.expect(
        page.get_by_text("Thank you. The correction was saved.").first
    ).to_be_visible()
    assert rows_of(path)[before:] == [["mika nu", "Es ist besser.", "en", "de"]]
    assert translation_of(page).text_content() == shown
    mark = translation_of(page).get_by_role("img", name="Corrected by you.")
    playwright.expect(mark).to_have_count(1)
    page.get_by_role("button", name="Copy").click()
    playwright.expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == shown
    # The correction is what the dialog compares with now.
    _, send, state = open_dialog(page)
    playwright.expect(row_of(page, 3)).to_have_value("Es ist besser.")
    playwright.expect(send).to_be_disabled()
    page.keyboard.press("Escape")
    # Also in another text, and after the page was loaded again.
    assert translate(page, "  mika nu\nva so tu").startswith("  Es ist besser.\n")
    page.reload()
    playwright.expect(mark).to_have_count(1)
    assert translation_of(page).text_content() == f"  Es ist besser.\n{first}"


@pytest.mark.slow
def test_pasted_line_breaks_neither_add_nor_shift_lines(page, path):
    before = len(path.read_text().splitlines())
    translate(page, "so tu\n\nva we\nlo ka")
    _, send, state = open_dialog(page)
    # Not as many lines as there are rows: all of them are the translation of one line.
    page.evaluate("navigator.clipboard.writeText('eins\\r\\nzwei')")
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+V")
    playwright.expect(row_of(page, 1)).to_have_value("eins zwei")
    playwright.expect(state).to_have_text("1 line of 3 will be sent.")
    # A translation of the whole text, pasted into any row.
    page.evaluate("navigator.clipboard.writeText('erste\\n\\nzweite\\ndritte\\n')")
    row_of(page, 3).press("Control+V")
    playwright.expect(state).to_have_text("3 lines of 3 will be sent.")
    # Enter moves on, and adds no line.
    for line in (1, 3, 4):
        row_of(page, line).press("Enter")
    playwright.expect(send).to_be_focused()
    page.keyboard.press("Enter")
    playwright.expect(translation_of(page)).to_have_text("erste\n\nzweite\ndritte")
    pairs = [row[:2] for row in rows_of(path)[before:]]
    assert pairs == [["so tu", "erste"], ["va we", "zweite"], ["lo ka", "dritte"]]


@pytest.mark.slow
def test_the_dialog_opens_at_the_selected_line(page):
    translate(page, "\n".join(["so tu", "va we"] * 20))
    open_dialog(page)
    playwright.expect(row_of(page, 1)).to_be_focused()
    page.keyboard.press("Escape")
    # A word in line 31 of the translation, then a place in line 12 of the source.
    lines = translation_of(page).text_content().split("\n")
    word = len(" ".join(lines[:30]).split())
    translation_of(page).locator("span").nth(word).click()
    page.keyboard.press("Escape")
    open_dialog(page)
    playwright.expect(row_of(page, 31)).to_be_focused()
    playwright.expect(row_of(page, 31)).to_be_in_viewport()
    playwright.expect(row_of(page, 1)).not_to_be_in_viewport()
    page.keyboard.press("Escape")
    # The padding and the height of a line, see page.css.
    page.locator("#text").click(position={"x": 40, "y": 20 + 11.5 * 32})
    open_dialog(page)
    playwright.expect(row_of(page, 12)).to_be_focused()
    page.keyboard.press("Escape")
    # The cursor behind a new text selects nothing.
    translate(page, "so tu\nva we\nlo mi")
    open_dialog(page)
    playwright.expect(row_of(page, 1)).to_be_focused()


# The contrast of the text of an element with its background (WCAG 2.2, 1.4.3).
CONTRAST = """element => {
    const { color, backgroundColor } = getComputedStyle(element);
    const luminance = words => {
        const parts = words.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
        const [r, g, b] = parts.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [dark, light] = [color, backgroundColor].map(luminance).sort((one, two) => one - two);
    return (light + 0.05) / (dark + 0.05);
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dialog_is_readable_on_a_telephone(open_page, scheme):
    page = open_page(viewport={"width": 390, "height": 700}, color_scheme=scheme)
    translate(page, "\n".join(["so tu va we " * 6] * 8))
    _, send, _ = open_dialog(page)
    playwright.expect(send).to_be_disabled()
    assert send.evaluate(CONTRAST) >= 4.5
    row_of(page, 8).fill("neu")
    playwright.expect(send).to_be_enabled()
    assert send.evaluate(CONTRAST) >= 4.5
    playwright.expect(send).to_be_in_viewport(ratio=1)
    # Each box shows its whole text, and nothing is wider than the screen.
    for line in (1, 8):
        box = row_of(page, line)
        box.scroll_into_view_if_needed()
        assert box.evaluate("box => box.scrollHeight <= box.clientHeight")
        assert box.bounding_box()["width"] > 250
    assert page.evaluate("better.scrollWidth <= better.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.slow
def test_a_draft_is_kept_until_it_is_sent(page, path):
    before = len(path.read_text().splitlines())
    machine = translate(page, "lo mi")
    page.get_by_role("button", name="History").click()
    page.get_by_label("Keep my translations in this browser").check()
    page.keyboard.press("Escape")
    box, send, _ = open_dialog(page)
    start_over = page.get_by_role("button", name="Start over")
    playwright.expect(start_over).to_be_hidden()
    box.fill("Ein Entwurf")
    page.keyboard.press("Escape")
    playwright.expect(translation_of(page)).to_have_text(machine)
    page.reload()
    playwright.expect(page.locator("#suggest")).to_be_enabled()
    open_dialog(page)
    playwright.expect(box).to_have_value("Ein Entwurf")
    start_over.click()
    playwright.expect(box).to_have_value(machine)
    playwright.expect(send).to_be_disabled()
    box.fill("Ein Entwurf")
    send.click()
    playwright.expect(translation_of(page)).to_have_text("Ein Entwurf")
    assert rows_of(path)[before:] == [["lo mi", "Ein Entwurf", "en", "de"]]
    page.get_by_role("button", name="History").click()
    entry = page.get_by_role("dialog", name="History").get_by_role("listitem")
    playwright.expect(entry).to_contain_text("Ein Entwurf")


@pytest.mark.slow
def test_chosen_words_count_as_a_change(page, path):
    before = len(path.read_text().splitlines())
    translate(page, "tu pe so")
    translation_of(page).locator("span").first.click()
    page.get_by_role("listbox").get_by_role("option").first.click()
    box, send, _ = open_dialog(page)
    changed = box.input_value()
    send.click()
    playwright.expect(translation_of(page).get_by_role("img")).to_have_count(1)
    assert rows_of(path)[before:] == [["tu pe so", changed, "en", "de"]]


@pytest.mark.slow
def test_an_empty_translation_can_be_corrected(page, path):
    before = len(path.read_text().splitlines())
    empty = {"translatedText": "", "details": [{"flags": ["empty"], "alignment": []}]}
    page.route("**/translate", lambda route: route.fulfill(json=empty))
    translate(page, "pe pe")
    playwright.expect(page.get_by_text("The translation is empty.")).to_be_visible()
    flags = page.get_by_role("list", name="Check the translation")
    playwright.expect(flags).to_be_visible()
    box, send, _ = open_dialog(page)
    playwright.expect(send).to_be_disabled()
    box.fill("Doch etwas")
    send.click()
    playwright.expect(translation_of(page)).to_have_text("Doch etwas")
    playwright.expect(flags).to_be_hidden()
    assert rows_of(path)[before:] == [["pe pe", "Doch etwas", "en", "de"]]


@pytest.mark.slow
def test_a_correction_that_could_not_be_saved_can_be_sent_again(page, path):
    before = len(path.read_text().splitlines())
    machine = translate(page, "ri va")
    box, send, _ = open_dialog(page)
    box.fill("Noch einmal")
    page.route("**/suggest", lambda route: route.abort(), times=1)
    send.click()
    alert = page.get_by_role("dialog").get_by_role("alert")
    playwright.expect(alert).to_contain_text("The server is not responding")
    assert re.sub(r"\s", "", translation_of(page).text_content()) == re.sub(r"\s", "", machine)
    send.click()
    playwright.expect(translation_of(page)).to_have_text("Noch einmal")
    assert rows_of(path)[before:] == [["ri va", "Noch einmal", "en", "de"]]
