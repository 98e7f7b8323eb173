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
    """The box, the button that sends, and the explanation."""
    page.get_by_role("button", name="Suggest a better translation").click()
    dialog = page.get_by_role("dialog", name="Suggest a better translation")
    send = dialog.get_by_role("button", name="Send")
    return dialog.get_by_role("textbox"), send, dialog.get_by_role("status")


def test_only_changed_lines_are_sent_and_shown(page, path):
    before = len(path.read_text().splitlines())
    first, _, last = translate(page, TEXT).rstrip("\n").split("\n")
    box, send, state = open_dialog(page)
    playwright.expect(state).to_have_text("Change the translation to send it.")
    playwright.expect(send).to_be_disabled()
    for text, words in [
        (f"{first}\n{last} besser", "The source has 3 lines, but the translation has 2 lines."),
        (f"{first}\n\n", "The source has 3 lines, but the translation has 1 line."),
        (f"\n\n{last}", "Line 1 of the translation is empty."),
        (f"{first}\nx\n{last}", "Line 2 of the translation has text, but its source is empty."),
    ]:
        box.fill(text)
        playwright.expect(state).to_contain_text(words)
        playwright.expect(send).to_be_disabled()
    box.fill(f"{first}\n\nEs ist besser. ")
    playwright.expect(state).to_have_text("1 line of 3 will be sent.")
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
    box, send, state = open_dialog(page)
    playwright.expect(box).to_have_value(shown)
    playwright.expect(send).to_be_disabled()
    page.keyboard.press("Escape")
    # Also in another text, and after the page was loaded again.
    assert translate(page, "  mika nu\nva so tu").startswith("  Es ist besser.\n")
    page.reload()
    playwright.expect(mark).to_have_count(1)
    assert translation_of(page).text_content() == f"  Es ist besser.\n{first}"


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
