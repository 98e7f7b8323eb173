"""The page of `nmt serve` in a real browser: a Chromium that is installed, driven by Playwright."""

import io
import json
import shutil
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.plugins.serve.requests import add_key
from nmt.plugins.serve.worker import formats_of_documents
from tests.plugins.serve.serving import serving

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
LINE = "va so tu pe mika."
SECONDS = 30_000
"""A shared machine is slow at times."""
playwright.expect.set_options(timeout=SECONDS)


@pytest.fixture(scope="module")
def address(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server from English to German and back: the way back is the same model under another name."""
    back = shutil.copytree(word_model, tmp_path_factory.mktemp("back") / "model")
    description = json.loads((back / "config.json").read_text())
    (back / "config.json").write_text(json.dumps(description | {"source": "de", "target": "en"}))
    with serving(word_model, back) as server:
        yield f"{server.url}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as library:
        browser = library.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page in a context of its own; asks, after the test, that nothing left the server or was forbidden."""
    contexts, requests, problems = [], list[str](), list[str]()

    def open_page(at: str = address, **options: Any) -> Any:
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        contexts.append((context, at))
        context.set_default_timeout(SECONDS)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(at)
        playwright.expect(page.get_by_role("combobox", name="To").get_by_role("option")).not_to_have_count(0)
        return page

    yield open_page
    for context, _ in contexts:
        context.close()
    assert requests
    assert {url for url in requests if not url.startswith(tuple(at for _, at in contexts))} == set()
    # Chromium itself tells of requests that fail, which the page tells, too.
    assert [text for text in problems if "Failed to load resource:" not in text] == []


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page(viewport={"width": 1200, "height": 800})


def post(address: str, path: str, **body: Any) -> Any:
    """The server's own answer, asked without the page."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def details(address: str) -> dict[str, Any]:
    """What the server says of LINE."""
    return post(address, "translate", q=LINE, source="en", target="de", details=True)["details"][0]


def text_of(page: Any) -> Any:
    return page.get_by_role("textbox", name="Text to translate")


def translation_of(page: Any) -> Any:
    return page.get_by_role("group", name="Words of the translation")


def translate(page: Any, text: str = LINE) -> Any:
    """Type a text, wait until its translation is complete, and return the words of that."""
    text_of(page).fill(text)
    playwright.expect(page.locator(".old")).to_have_count(0)
    playwright.expect(page.get_by_role("progressbar")).to_be_hidden()
    playwright.expect(translation_of(page).get_by_role("button")).not_to_have_count(0)
    return translation_of(page).get_by_role("button")


def marked(page: Any, side: str) -> list[int]:
    """Numbers of the words that are marked in the mirror of the source, or in the translation."""
    words = page.locator(f"#{side} .word").evaluate_all("all => all.map(one => one.classList.contains('aligned'))")
    return [number for number, is_marked in enumerate(words) if is_marked]


def test_text_is_translated_while_it_is_typed(page, details):
    text_of(page).press_sequentially(LINE, delay=10)
    playwright.expect(translation_of(page)).to_have_text(details["translation"])
    playwright.expect(page.get_by_role("status")).to_have_text(details["translation"])
    assert page.locator("#count").inner_text() == "17 of 20,000 characters"
    assert [text_of(page).get_attribute("lang"), translation_of(page).get_attribute("lang")] == ["en", "de"]


def test_lines_stay_lines_and_are_copied_so(page, address):
    text = f"{LINE}\n\nso tu\n  va we ka\n"
    translate(page, text)
    expected = post(address, "translate", q=text, source="en", target="de")["translatedText"]
    assert [row.split() for row in page.locator("#translation > div").all_inner_texts()] == [
        row.split() for row in expected.split("\n")
    ]
    page.get_by_role("button", name="Copy").click()
    playwright.expect(page.get_by_role("button", name="Copied")).to_be_visible()
    playwright.expect(page.get_by_role("status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == expected
    page.get_by_role("button", name="Clear").click()
    assert text_of(page).input_value() == ""
    playwright.expect(page.locator("#translation")).to_be_empty()
    playwright.expect(text_of(page)).to_be_focused()


DROP = """([name, content]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(content)], name, { type: "text/plain" }));
    for (const kind of ["dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def drop(page: Any, name: str, content: bytes) -> None:
    page.evaluate(DROP, [name, list(content)])


def archive(text: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        file.writestr("word/document.xml", text)
    return written.getvalue()


DOCUMENT = '<w:d xmlns:w="w"><w:body><w:p><w:r><w:t xml:space="preserve">{}</w:t></w:r></w:p></w:body></w:d>'


def test_a_dropped_document_comes_back_with_its_markup(page, address, tmp_path):
    expected = post(address, "translate", q="va so", source="en", target="de")["translatedText"]
    drop(page, "a.docx", archive(DOCUMENT.format("va so")))
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download a_de.docx").click()
    waiting.value.save_as(tmp_path / "a")
    written = zipfile.ZipFile(tmp_path / "a").read("word/document.xml").decode()
    assert f">{expected}</w:t>" in written


def test_a_dropped_file_comes_back_as_a_download(page, address, tmp_path):
    drop(page, "talk.txt", f"{LINE}\n\nso tu\n".encode())
    link = page.get_by_role("link", name="Download talk_de.txt")
    playwright.expect(link).to_be_visible()
    with page.expect_download() as waiting:
        link.click()
    assert waiting.value.suggested_filename == "talk_de.txt"
    waiting.value.save_as(tmp_path / "talk")
    expected = post(address, "translate", q=f"{LINE}\n\nso tu\n", source="en", target="de")["translatedText"]
    assert (tmp_path / "talk").read_text() == expected
    drop(page, "talk.pdf", b"no text")
    playwright.expect(page.get_by_role("alert")).to_have_text(
        f"talk.pdf: this server translates {', '.join(formats_of_documents())} files"
    )


def test_a_word_is_replaced_by_mouse(page, address, details):
    word = translate(page).nth(1)
    word.click()
    menu = page.get_by_role("menu", name="Alternatives")
    before = details["translation"].split(" ")[0]
    found = post(address, "alternatives", q=LINE, source="en", target="de", before=before, count=6)["alternatives"]
    playwright.expect(menu.get_by_role("menuitemradio")).to_have_count(len(found))
    other = next(each for each in found if each["translation"] != details["translation"])
    menu.get_by_role("menuitemradio", name=other["word"]).first.click()
    playwright.expect(menu).to_be_hidden()
    playwright.expect(translation_of(page)).to_have_text(other["translation"])
    # It stays while other lines are written, and goes with the languages.
    translate(page, f"{LINE}\n{LINE} tu")
    playwright.expect(page.locator("#translation > div").first).to_have_text(other["translation"])
    page.get_by_role("combobox", name="From").select_option("auto")
    playwright.expect(page.locator("#translation > div").first).to_have_text(details["translation"])


def test_a_word_is_replaced_by_keyboard_alone(page, details):
    translate(page)
    text_of(page).focus()
    names = []
    while not names or names[-1] != details["words"][0]:
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent.trim()"))
    assert names == ["Choose a file", "Clear", details["words"][0]]
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == details["words"][1]
    page.keyboard.press("Enter")
    items = page.get_by_role("menuitemradio")
    playwright.expect(items.first).to_be_focused()
    page.keyboard.press("Escape")
    playwright.expect(page.get_by_role("menu")).to_be_hidden()
    playwright.expect(translation_of(page).get_by_role("button").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    playwright.expect(items.first).to_be_focused()
    current = [item.get_attribute("aria-checked") for item in items.all()].index("true")
    page.keyboard.press("End" if current == 0 else "Home")
    chosen = page.evaluate("document.activeElement.querySelector('bdi').textContent")
    page.keyboard.press("Enter")
    playwright.expect(translation_of(page).get_by_role("button").nth(1)).to_be_focused()
    assert page.evaluate("document.activeElement.textContent") == chosen
    page.keyboard.press("Tab")
    playwright.expect(page.get_by_role("button", name="Copy")).to_be_focused()


def test_words_are_marked_with_those_that_they_are_aligned_with(page, details):
    words = translate(page)
    words.nth(1).hover()
    assert marked(page, "translation") == [1]
    assert marked(page, "mirror") == sorted({source for source, target in details["alignment"] if target == 1})
    source = details["alignment"][0][0]
    expected = sorted({target for own, target in details["alignment"] if own == source})
    page.locator("#mirror .word").nth(source).hover(force=True)
    assert (marked(page, "mirror"), marked(page, "translation")) == ([source], expected)
    page.mouse.move(5, 5)
    assert marked(page, "translation") == []
    text_of(page).press("Home")
    for _ in range(source * 3 + 1):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('#mirror .aligned')")
    assert (marked(page, "mirror"), marked(page, "translation")) == ([source], expected)


def test_words_that_the_model_doubts_are_told(page, address):
    line = "464 mi."  # a number that the model never saw, and a word that it knows
    details = post(address, "translate", q=line, source="en", target="de", details=True)["details"][0]
    assert {confidence < 0.5 for confidence in details["confidence"]} == {True, False}
    for word, confidence in zip(translate(page, line).all(), details["confidence"], strict=True):
        assert word.get_attribute("title") == f"Probability {int(100 * confidence + 0.5)} %"
        assert ("unsure" in str(word.get_attribute("class"))) == (confidence < 0.5)
    assert page.locator("#legend").is_visible()


def test_what_stays_as_it_is_and_terms_are_marked_and_what_did_not_arrive_is_told(open_page, word_model, tmp_path):
    (tmp_path / "terms.tsv").write_text("so\tut\n")
    with serving(word_model, "engine=torch", "protect=[usual,akim]", f"glossary={tmp_path / 'terms.tsv'}") as server:
        page = open_page(f"{server.url}/")
        translate(page, "va {x} so")
        assert [word.strip(".") for word in page.locator("#translation .protected").all_inner_texts()] == ["{x}"]
        assert [word.strip(".") for word in page.locator("#translation .terms").all_inner_texts()] == ["ut"]
        assert page.locator("#translation .lost").count() == 0
        translate(page, "va\nakim mika mika")  # the words after the first give it once more
        assert page.locator("#translation > div.lost").all_inner_texts() == ["akim akim."]
        assert page.locator("#legends p:visible").count() >= 2
        asked = {"q": "va\nakim mika mika", "source": "en", "target": "de"}
        found = post(f"{server.url}/", "translate", **asked)
        assert found["flags"] == [{"line": 1, "flags": ["protected"]}]
        several = post(f"{server.url}/", "translate", **asked | {"q": ["va", "akim mika mika"]})
        assert several["flags"] == [[], [{"line": 0, "flags": ["protected"]}]]
        assert "flags" not in post(f"{server.url}/", "translate", **asked | {"q": "va {x}"})
        client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(server.url)
        assert client.translate("va\nakim mika mika", "en", "de") == found["translatedText"]


@pytest.mark.parametrize(
    "text",
    [
        "<img/src=x/onerror=document.title='run'> lo",
        "<img src=x onerror=document.title='run'> ka <script>document.title='run'</script> lo",
        "ka \u202elo mi\u202c </div>nu",
    ],
)
def test_a_hostile_source_runs_nothing(page, text):
    translate(page, text)
    page.locator("#translation .word").last.click()
    playwright.expect(page.get_by_role("menuitemradio")).not_to_have_count(0)
    assert page.title() == "Translate"
    assert page.locator("img, main script").count() == 0
    assert text_of(page).input_value() == text


def test_languages_are_detected_swapped_and_remembered(page, address):
    source = page.get_by_role("combobox", name="From")
    source.select_option("auto")
    translate(page)
    status = post(address, "translate", q=LINE, source="auto", target="de")["detectedLanguage"]
    told = "detected" if status["confidence"] >= 50 else "guessed"
    playwright.expect(source.get_by_role("option").first).to_have_text(f"English ({told})")
    translate(page, "This is a small house in the middle of the town, and we like it.")
    playwright.expect(source.get_by_role("option").first).to_have_text("English (detected)")
    assert text_of(page).get_attribute("lang") == "en"
    page.reload()
    playwright.expect(source).to_have_value("auto")
    translated = " ".join(translate(page).all_inner_texts())
    page.get_by_role("button", name="Swap languages").click()
    playwright.expect(text_of(page)).to_have_value(translated)
    target = page.get_by_role("combobox", name="To")
    assert [source.input_value(), target.input_value()] == ["de", "en"]
    playwright.expect(translation_of(page)).to_have_attribute("lang", "en")
    playwright.expect(page.locator(".old")).to_have_count(0)
    assert target.get_by_role("option").all_inner_texts() == ["English"]


def test_a_telephone_has_one_column_and_room_for_fingers(open_page):
    page = open_page(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    translate(page, f"{LINE} " * 12)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    source, target = (page.get_by_role("region", name=name).bounding_box() for name in ("Source", "Translation"))
    assert source["y"] + source["height"] <= target["y"]
    controls = page.locator("button:visible, select:visible").all()
    assert min(control.bounding_box()["height"] for control in controls) >= 44
    page.locator("#translation .word").last.tap()
    playwright.expect(page.get_by_role("menuitemradio")).not_to_have_count(0)
    box = page.get_by_role("menu").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 400


@pytest.mark.slow
def test_a_key_is_asked_for_where_one_is_needed(open_page, word_model, details, tmp_path):
    key = add_key(tmp_path / "keys", "colleague")
    with serving(word_model, f"keys={tmp_path / 'keys'}") as server:
        page = open_page(f"{server.url}/")
        text_of(page).fill(LINE)
        playwright.expect(page.get_by_role("alert")).to_have_text("this server needs an API key")
        page.get_by_label("API key").fill(key)
        page.keyboard.press("Enter")
        playwright.expect(translation_of(page)).to_have_text(details["translation"])
        playwright.expect(page.get_by_role("alert")).to_have_count(0)
        page.reload()
        translate(page)
        assert page.evaluate("localStorage.length + document.cookie.length") == 2  # the languages


def test_a_server_that_has_ended_is_told_and_asked_again(open_page, word_model, details):
    with serving(word_model) as server:
        page = open_page(f"{server.url}/")
    text_of(page).fill(LINE)
    playwright.expect(page.get_by_role("alert")).to_have_text("The server does not answer, or its answer was cut off.")
    with serving(word_model, f"port={server.port}"):
        playwright.expect(translation_of(page)).to_have_text(details["translation"])
        playwright.expect(page.get_by_role("alert")).to_have_count(0)
