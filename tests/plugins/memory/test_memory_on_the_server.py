"""A translation memory behind `nmt serve`, over HTTP and on the page in a real browser."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from tests.plugins.serve import browsers
from tests.plugins.serve.serving import Server, as_pairs, serving

browser = browsers.browser
open_page = browsers.open_page
EXACT = "mika nu nu pe."
SIMILAR = "va so tu pe mika."
TARGET = "Aus dem Speicher: 3."
ENTRY = "va so tu pe ka."
HEBREW = "זה הזיכרון"
LONG_ENTRY = {"source": "so tu " * 20 + "mika", "target": TARGET, "score": 0.8}
EXACT_LINE = {"flags": [], "alignment": [], "memory": {"match": "exact", "entries": []}}
LONG = {
    "translatedText": "\n".join([TARGET] * 30),
    "details": [
        {"flags": [], "alignment": [], "memory": {"match": "fuzzy", "entries": [LONG_ENTRY]}},
        EXACT_LINE,
        EXACT_LINE,
        *[{"flags": [], "alignment": []}] * 27,
    ],
}
"""An answer whose notes would be below the window."""


@pytest.fixture(scope="module")
def server(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("memory")
    memory = folder / "memory.tsv"
    memory.write_text(f"{EXACT}\t{TARGET}\n{ENTRY}\t{HEBREW}\n")
    models = as_pairs(word_model, folder, "en>he")
    with serving(*models, f"memory={memory}") as server:
        yield server


@pytest.fixture(scope="module")
def address(server: Server) -> str:
    return f"{server.url}/"


def translate(server: Server, text: str, **fields: Any) -> dict[str, Any]:
    status, answer = server.translate(text, target="he", **fields)
    assert status == 200, answer
    assert isinstance(answer, dict)
    return answer


def test_answers_name_the_entries_of_the_memory(server):
    text = f"{EXACT}\n\n{SIMILAR}\nso tu"
    answer = translate(server, text, details=True)
    assert answer["translatedText"].splitlines()[0] == TARGET
    exact, similar, other = answer["details"]
    entry = {"source": EXACT, "target": TARGET, "score": 1.0}
    assert exact["memory"] == {"match": "exact", "entries": [entry]}
    assert exact["alignment"] == []
    assert similar["memory"] == {
        "match": "fuzzy",
        "entries": [{"source": ENTRY, "target": HEBREW, "score": 0.8}],
    }
    assert similar["alignment"]
    assert "memory" not in other


def test_other_words_for_a_line_of_the_memory_come_from_the_model(server):
    # The letters of the memory's target are not in the vocabulary of this model.
    fields = {"prefix": "551", "rest": " 3.", "alternatives": 2}
    answer = translate(server, EXACT, **fields)
    for text in (answer["translatedText"], *answer["alternatives"]):
        assert text.startswith("551")
        assert text != TARGET


def test_html_comes_from_the_memory(server):
    html = translate(server, f"<p>{EXACT}</p>", format="html")["translatedText"]
    assert html == f'<p dir="rtl">{TARGET}</p>'


@pytest.mark.slow
def test_the_page_marks_lines_and_offers_similar_entries(open_page: Callable[..., Any]):
    playwright = pytest.importorskip("playwright.sync_api")
    expect = playwright.expect
    page = open_page(viewport={"width": 1200, "height": 800})
    text = page.get_by_role("textbox", name="Text to translate")
    text.fill(f"{EXACT}\n{SIMILAR}")
    notes = page.get_by_role("list", name="Translation memory").get_by_role("listitem")
    expect(notes).to_have_text(
        [
            "From the translation memory (line 1).",
            "The translation memory has similar texts: select a mark such as 80% to see them "
            "(line 2).",
        ]
    )
    text.fill(SIMILAR)
    expect(notes).to_have_count(1)
    translation = page.get_by_role("group", name="Translation")
    # With the keyboard alone: the first word, its dialog, and the last option.
    translation.locator("span").first.focus()
    page.keyboard.press("Enter")
    option = page.get_by_role("option", name=HEBREW)
    expect(option).to_contain_text(f"80% similar: {ENTRY}")
    assert option.get_attribute("dir") == "rtl"
    assert option.get_attribute("lang") == "he"
    page.keyboard.press("End")
    expect(option).to_be_focused()
    page.keyboard.press("Enter")
    expect(translation).to_have_text(HEBREW)
    # The entry is still similar, and the mark still opens it. Its translation is that of another
    # text.
    expect(translation.locator(".sign").first).to_have_attribute("data-sign", "80%")
    doubt = translation.get_by_role("img", name="Please check this line")
    expect(doubt).to_have_attribute(
        "title", f"Please check this line: it translates a similar text, “{ENTRY}”."
    )
    assert doubt.get_attribute("data-sign") == "?"
    text.fill("so tu")
    expect(page.get_by_role("list", name="Translation memory")).to_be_hidden()


@pytest.mark.slow
def test_notes_stay_above_the_buttons_and_similar_texts_are_shown_whole(
    open_page: Callable[..., Any],
):
    playwright = pytest.importorskip("playwright.sync_api")
    expect = playwright.expect
    page = open_page(viewport={"width": 1000, "height": 500})
    page.route("**/translate", lambda route: route.fulfill(json=LONG))
    page.get_by_role("textbox", name="Text to translate").fill("\n".join(["so tu"] * 30))
    notes = page.get_by_role("list", name="Translation memory")
    expect(notes).to_contain_text("From the translation memory (lines 2, 3).")
    # The translation is higher than the window, and the page was not scrolled.
    expect(notes).to_be_in_viewport(ratio=1)
    copy = page.get_by_role("button", name="Copy").bounding_box()
    box = notes.bounding_box()
    assert box["y"] + box["height"] <= copy["y"]
    page.get_by_role("group", name="Translation").locator(".sign").first.click()
    similar = page.get_by_role("option").locator("small")
    assert similar.evaluate("small => small.scrollWidth <= small.clientWidth")
    expect(similar.locator("em").last).to_have_text("mika")
    expect(similar.locator("em").last).to_be_in_viewport(ratio=1)


@pytest.mark.slow
def test_each_line_from_the_memory_has_a_mark(open_page: Callable[..., Any]):
    playwright = pytest.importorskip("playwright.sync_api")
    expect = playwright.expect
    page = open_page(viewport={"width": 1200, "height": 800})
    text = page.get_by_role("textbox", name="Text to translate")
    text.fill("\n".join([EXACT] * 6 + [SIMILAR, "so tu", f"{EXACT} so tu."]))
    notes = page.get_by_role("list", name="Translation memory").get_by_role("listitem")
    expect(notes.first).to_have_text("From the translation memory (6 lines).")
    translation = page.get_by_role("group", name="Translation")
    exact = translation.get_by_role("img", name="From the translation memory.")
    expect(exact).to_have_count(6)
    assert exact.first.get_attribute("title") == "From the translation memory."
    part = translation.get_by_role("img", name="Partly from the translation memory")
    expect(part).to_have_attribute("title", f"Partly from the translation memory: “{EXACT}”")
    # Marks are no text.
    lines = translation.text_content().split("\n")
    assert lines[:6] == [TARGET] * 6
    similar = translation.get_by_role("img", name="The translation memory has a text that is 80%")
    expect(similar).to_have_count(1)
    assert ENTRY in similar.get_attribute("title")
    # With the keyboard: the mark follows the last word of its line.
    box = similar.bounding_box()
    words = translation.locator("span").all()
    place = next(n for n, word in enumerate(words) if word.bounding_box() == box)
    words[place - 1].click()
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")  # Hebrew is written to the left
    expect(words[place]).to_be_focused()
    assert words[place].get_attribute("role") == "button"
    page.keyboard.press("Enter")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options).to_have_count(1)
    expect(options).to_be_focused()
    expect(options).to_contain_text(f"80% similar: {ENTRY}")
    # The word that the line does not have.
    expect(options.locator("em")).to_have_text("ka.")
    page.keyboard.press("Enter")
    expect(translation).to_contain_text(HEBREW)
