"""The page of `nmt serve` in a real browser: a Chromium that is installed, driven by Playwright."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.plugins.serve import browsers
from tests.plugins.serve.serving import serving

playwright = pytest.importorskip("playwright.sync_api")
browser = browsers.browser
open_page = browsers.open_page
LINE = "va so tu pe mika."
# Answers the page's next request in the page: a busy Chromium may send a request past a new route
# of Playwright's.
ANSWER = """([body, init]) => {
    const real = fetch;
    fetch = async () => ((fetch = real), Response.json(body, init));
}"""


@pytest.fixture(scope="module")
def address(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server from English to German and back, with the same model under another name."""
    back = shutil.copytree(word_model, tmp_path_factory.mktemp("back") / "model")
    description = json.loads((back / "config.json").read_text())
    (back / "config.json").write_text(json.dumps(description | {"source": "de", "target": "en"}))
    with serving(word_model, back) as server:
        yield f"{server.url}/"


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page(viewport={"width": 1200, "height": 800})


def translated(address: str, text: str) -> str:
    """The server's translation without the page."""
    fields = {"q": text, "source": "en", "target": "de"}
    return str(httpx.post(f"{address}translate", json=fields, timeout=60).json()["translatedText"])


def text_of(page: Any) -> Any:
    return page.get_by_role("textbox", name="Text to translate")


def translation_of(page: Any) -> Any:
    return page.get_by_role("group", name="Translation")


def translate(page: Any, text: str = LINE) -> str:
    """Type a text, wait for its translation, and return it."""
    text_of(page).fill(text)
    playwright.expect(translation_of(page)).not_to_have_class(re.compile(r"\bold\b"))
    playwright.expect(page.get_by_role("progressbar")).to_be_hidden()
    playwright.expect(translation_of(page)).not_to_be_empty()
    return str(translation_of(page).text_content())


@pytest.fixture(scope="module")
def expected(address: str) -> str:
    return translated(address, LINE)


@pytest.mark.slow
def test_text_is_translated_while_it_is_typed(page, expected):
    text_of(page).press_sequentially(LINE, delay=10)
    playwright.expect(translation_of(page)).to_have_text(expected)
    playwright.expect(page.get_by_role("status")).to_have_text(expected)
    assert page.locator("#count").inner_text() == "17 of 20,000 characters"
    assert text_of(page).get_attribute("lang") == "en"
    assert translation_of(page).get_attribute("lang") == "de"


@pytest.mark.slow
def test_lines_stay_lines_and_are_copied_so(page, address):
    text = f"{LINE}\n\nso tu\n  va we ka\n"
    expected = translated(address, text)
    assert translate(page, text) == expected
    page.get_by_role("button", name="Copy").click()
    playwright.expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == expected
    page.get_by_role("button", name="Clear").click()
    assert text_of(page).input_value() == ""
    playwright.expect(page.locator("#translation")).to_be_empty()
    playwright.expect(text_of(page)).to_be_focused()


DROP = """([name, content]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(content)], name, { type: "text/plain" }));
    for (const kind of ["dragover", "drop"])
        document.body.dispatchEvent(
            new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }),
        );
}"""


@pytest.mark.slow
def test_a_dropped_file_comes_back_as_a_download(page, address, tmp_path):
    text = f"{LINE}\n\nso tu\n"
    page.evaluate(DROP, ["talk.txt", list(text.encode())])
    link = page.get_by_role("link", name="Download talk_de.txt")
    playwright.expect(link).to_be_visible()
    with page.expect_download() as waiting:
        link.click()
    assert waiting.value.suggested_filename == "talk_de.txt"
    waiting.value.save_as(tmp_path / "talk")
    assert (tmp_path / "talk").read_text() == translated(address, text)
    page.evaluate(DROP, ["talk.pdf", list(b"no text")])
    rows = page.get_by_role("list", name="Files").get_by_role("listitem")
    playwright.expect(rows.last).to_contain_text("talk.pdf: unsupported file type; run `pdftotext")
    page.get_by_role("button", name="Remove talk.pdf").click()
    playwright.expect(rows).to_have_count(1)


@pytest.mark.slow
def test_words_are_reached_and_replaced_by_keyboard(page):
    translation = translate(page, f"{LINE}\nso tu")
    words = translation.split()
    focused = page.locator("#translation :focus")
    options = page.get_by_role("listbox").get_by_role("option")
    translation_of(page).get_by_role("button").focus()
    for key in ("End", "ArrowUp", "Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
        playwright.expect(page.locator("mark")).not_to_have_count(0)  # the words that it translates
    for key in ("Escape", "ArrowDown"):
        playwright.expect(focused).to_have_text(words[2])
        page.keyboard.press("Enter")
        playwright.expect(options.first).to_be_focused()
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    page.evaluate(ANSWER, [{"translatedText": "", "alternatives": []}, {}])
    page.keyboard.press("Enter")
    message = page.get_by_role("dialog", name="Alternatives").get_by_role("status")
    playwright.expect(message).to_have_text("There are no alternatives for this word.")
    for key in ("Escape", "Enter"):
        page.keyboard.press(key)
    playwright.expect(options.first).to_be_focused()
    page.set_viewport_size({"width": 1000, "height": 700})
    page.keyboard.press("ArrowDown")
    other = options.nth(1).inner_text().splitlines()[0]
    page.keyboard.press("Enter")
    playwright.expect(focused).to_have_text(other)
    changed = str(translation_of(page).text_content())
    assert changed.split()[:3] == [*words[:2], other]
    assert changed.split("\n")[1] == translation.split("\n")[1]


@pytest.mark.slow
def test_a_word_replaced_in_a_later_sentence_stays_when_an_earlier_one_is_replaced(page):
    options = page.get_by_role("listbox").get_by_role("option")
    texts = [translate(page, f"{LINE} mika nu nu pe.")]
    for key in ("End", "Home"):
        page.locator("#translation [tabindex]").press(key)
        page.keyboard.press("Enter")
        playwright.expect(options.first).to_be_focused()
        page.keyboard.press("Enter")
        playwright.expect(translation_of(page)).not_to_have_text(texts[-1])
        texts.append(str(translation_of(page).text_content()))
    first_words = [text.split()[0] for text in texts]
    last_words = [text.split()[-1] for text in texts]
    assert first_words[0] == first_words[1] != first_words[2]
    assert last_words[0] != last_words[1] == last_words[2]


def test_a_history_is_kept_only_if_it_is_switched_on(page):
    rows = page.get_by_role("dialog", name="History").get_by_role("listitem")
    # The last text continues the one before it, and replaces it.
    for count, text in enumerate(("ka lo", "mi", "so", "so tu")):
        translate(page, text)
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="History").click()
        playwright.expect(rows).to_have_count(min(count, 2))
        page.get_by_label("Keep my translations in this browser").check()
        page.keyboard.press("Escape")
    page.reload()
    page.get_by_role("button", name="History").click()
    rows.filter(has_text="so tu").get_by_role("button", name="Delete this translation").click()
    rows.filter(has_text="mi").get_by_role("button").first.click()
    playwright.expect(text_of(page)).to_have_value("mi")
    page.get_by_role("button", name="History").click()
    page.get_by_role("button", name="Delete all").click()
    assert page.evaluate("localStorage.history") is None


@pytest.mark.slow
def test_a_busy_server_is_asked_again_after_the_time_that_it_gives(page, address):
    body = {"error": "too many requests; try later"}
    init = {"status": 429, "headers": {"Retry-After": "2"}}
    page.evaluate(ANSWER, [body, init])
    example = page.get_by_role("button", name="Try an example")
    example.click()
    alert = page.get_by_role("alert")
    playwright.expect(alert).to_have_text("The server is busy: too many requests.")
    assert example.is_hidden()
    expected = translated(address, text_of(page).input_value())
    playwright.expect(translation_of(page)).to_have_text(expected)


@pytest.mark.slow
def test_a_hostile_source_runs_nothing(page):
    text = "<img src=x onerror=document.title='run'> ka <script>document.title='run'</script> lo"
    translate(page, text)
    assert page.title() == "Translate"
    assert page.locator("main img, main script").count() == 0


@pytest.mark.slow
def test_languages_are_detected_swapped_and_remembered(page, address):
    source = page.get_by_role("combobox", name="From")
    source.select_option("auto")
    english = "This is a small house in the middle of the town, and we like it."
    translate(page, english)
    playwright.expect(source.get_by_role("option").first).to_have_text("English (detected)")
    assert text_of(page).get_attribute("lang") == "en"
    page.reload()
    playwright.expect(source).to_have_value("auto")
    translation = translate(page, english)
    page.get_by_role("button", name="Swap languages").click()
    playwright.expect(text_of(page)).to_have_value(translation)
    target = page.get_by_role("combobox", name="To")
    assert [source.input_value(), target.input_value()] == ["de", "en"]
    playwright.expect(translation_of(page)).to_have_attribute("lang", "en")
    assert target.get_by_role("option").all_inner_texts() == ["English"]


@pytest.mark.slow
def test_a_telephone_has_one_column_and_room_for_fingers(open_page):
    page = open_page(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    translate(page, f"{LINE} " * 12)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    source = page.get_by_role("region", name="Source").bounding_box()
    target = page.get_by_role("region", name="Translation").bounding_box()
    assert source["y"] + source["height"] <= target["y"]
    translation_of(page).locator("span").first.tap()
    playwright.expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    controls = page.locator("button:visible, select:visible").all()
    assert min(control.bounding_box()["height"] for control in controls) >= 44


@pytest.mark.slow
def test_a_key_is_asked_for_and_a_server_that_has_ended_is_asked_again(
    open_page, word_model, expected, tmp_path
):
    (tmp_path / "keys").write_text(f"colleague {sha256(b'secret').hexdigest()}\n")
    words = (word_model, f"keys={tmp_path / 'keys'}")
    with serving(*words) as server:
        page = open_page(f"{server.url}/")
        text_of(page).fill(LINE)
        alert = page.get_by_role("alert")
        playwright.expect(alert).to_have_text("This server requires an API key.")
        page.get_by_label("API key").fill("secret")
        page.keyboard.press("Enter")
        playwright.expect(translation_of(page)).to_have_text(expected)
        page.reload()  # the text is kept
        playwright.expect(translation_of(page)).to_have_text(expected)
        assert page.evaluate("document.cookie") == ""
        # Only the languages.
        kept = page.evaluate("Object.keys(localStorage)")
        assert set(kept) == {"source", "target", "lastUsed"}
    text_of(page).fill(LINE)
    playwright.expect(page.get_by_role("alert")).to_contain_text("The server is not responding")
    with serving(*words, f"port={server.port}"):
        playwright.expect(translation_of(page)).to_have_text(expected)
        playwright.expect(page.get_by_role("alert")).to_have_count(0)
