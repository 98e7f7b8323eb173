"""The page in other scripts: what a word is, on which side a text begins, and names of languages.

The models of the tests write made-up words in Latin letters. Only their answers are replaced.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.plugins.serve import browsers
from tests.plugins.serve.serving import serving

playwright = pytest.importorskip("playwright.sync_api")
browser = browsers.browser
open_page = browsers.open_page
PAIRS = (("en", "ja"), ("en", "ar"), ("ja", "zh_CN"))
SOURCE = "\U0001f600 Open the new file."
SOURCE_WORDS = [[0, 1], [2, 6], [7, 10], [11, 14], [15, 20]]
# A character beyond 16 bits precedes the words, as in the source.
JAPANESE = "\U0001f600 新しいファイルを開きます。"
JAPANESE_WORDS = [[0, 1], *([at, at + 1] for at in range(2, 14)), [14, 16]]
# New, file, open: 新しい, ファイル, 開きます。
ALIGNMENT = [
    [0, 0],
    [3, 1],
    [3, 2],
    [3, 3],
    [4, 4],
    [4, 5],
    [4, 6],
    [4, 7],
    [1, 9],
    [1, 10],
    [1, 11],
    [1, 13],
]
ARABIC = "افتح الملف في Linux."
ARABIC_WORDS = [[0, 4], [5, 10], [11, 13], [14, 20]]


@pytest.fixture(scope="module")
def address(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of one model under other names."""
    models = list[Path]()
    for source, target in PAIRS:
        model = shutil.copytree(word_model, tmp_path_factory.mktemp(f"{source}-{target}") / "model")
        description = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(
            json.dumps(description | {"source": source, "target": target})
        )
        models.append(model)
    with serving(*models) as server:
        yield f"{server.url}/"


@pytest.fixture
def page(open_page):
    return open_page(viewport={"width": 1200, "height": 800})


def answer(
    page: Any, translation: str, details: dict[str, Any], alternatives: tuple[str, ...] = ()
) -> None:
    """Let the server's answers to texts be these."""
    content = {
        "translatedText": translation,
        "details": [{"flags": [], **details}],
        "alternatives": [*alternatives],
    }
    page.route("**/translate", lambda route: route.fulfill(json=content))


def show(page: Any, target: str, text: str = SOURCE) -> Any:
    """Translate a text into a language; returns the translation's words."""
    page.get_by_role("combobox", name="To").select_option(target)
    page.get_by_role("textbox", name="Text to translate").fill(text)
    words = page.locator("#translation span")
    playwright.expect(words).not_to_have_count(0)
    return words


def marked(page: Any) -> list[str]:
    """The words of the source that are marked."""
    return page.locator("#mirror mark").all_inner_texts()


def into_japanese(page: Any) -> Any:
    details = {"alignment": ALIGNMENT, "source_words": SOURCE_WORDS, "target_words": JAPANESE_WORDS}
    answer(page, JAPANESE, details, ("\U0001f600 新しいフォルダーを開きます。",))
    return show(page, "ja")


@pytest.mark.slow
def test_words_of_a_script_without_blanks_are_words(page):
    words = into_japanese(page)
    texts = words.all_inner_texts()
    assert "".join(texts) == JAPANESE.replace(" ", "")
    assert "新しい" in texts
    assert "ファイル" in texts
    assert max(map(len, texts)) < 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "source"),
    [("新しい", "new"), ("ファイル", "file."), ("を", ""), ("\U0001f600", "\U0001f600")],
)
def test_a_word_shows_all_that_its_characters_translate(page, word, source):
    into_japanese(page).get_by_text(word, exact=True).hover()
    assert "".join(marked(page)) == source


@pytest.mark.slow
def test_spans_count_from_the_beginning_of_a_line(page):
    shifted = [
        [[begin + 2, end + 2] for begin, end in words] for words in (SOURCE_WORDS, JAPANESE_WORDS)
    ]
    details = dict(zip(("source_words", "target_words"), shifted, strict=True), alignment=ALIGNMENT)
    answer(page, f"  {JAPANESE}", details)
    show(page, "ja", f"  {SOURCE}").get_by_text("新しい", exact=True).hover()
    assert marked(page) == ["new"]


@pytest.mark.slow
def test_the_cursor_in_the_source_shows_whole_words(page):
    into_japanese(page)
    at = len((SOURCE[:12]).encode("utf-16-le")) // 2
    page.locator("#text").evaluate(f"box => {{ box.focus(); box.setSelectionRange({at}, {at}); }}")
    playwright.expect(page.locator("#translation .lit")).to_have_text(["新しい"])


@pytest.mark.slow
def test_alternatives_of_a_word_without_blanks_around_it(page):
    into_japanese(page).get_by_text("ファイル", exact=True).click()
    option = page.get_by_role("listbox").get_by_role("option")
    playwright.expect(option).to_have_count(1)
    assert option.evaluate("element => element.firstChild.data") == "フォルダー"
    assert [option.get_attribute("lang"), option.get_attribute("dir")] == ["ja", "ltr"]
    playwright.expect(page.locator("#word")).to_have_text("ファイル from “file.”")
    option.click()
    playwright.expect(page.locator("#translation")).to_have_text(
        "\U0001f600 新しいフォルダーを開きます。"
    )


@pytest.mark.slow
def test_browsers_without_a_dictionary_count_characters(open_page):
    page = open_page(viewport={"width": 1200, "height": 800})
    page.add_init_script("delete Intl.Segmenter")
    page.reload()
    texts = into_japanese(page).all_inner_texts()
    assert texts == ["\U0001f600", *"新しいファイルを開きま", "す。"]


@pytest.mark.slow
def test_a_source_without_blanks_marks_its_words(page):
    page.get_by_role("combobox", name="From").select_option("ja")
    source = "ファイルを開きます。"
    source_words = [[at, at + 1] for at in range(len(source) - 2)] + [[8, 10]]
    details = {
        "alignment": [[1, 1], [6, 0], [8, 0]],
        "source_words": source_words,
        "target_words": [[0, 1], [1, 3]],
    }
    answer(page, "打文件", details)
    words = show(page, "zh_CN", source)
    assert words.all_inner_texts() in (["打", "文件"], ["打文件"])
    words.last.hover()
    assert "ファイル" in "".join(marked(page))
    box = page.get_by_role("textbox", name="Text to translate")
    assert [box.get_attribute("lang"), page.locator("#translation").get_attribute("lang")] == [
        "ja",
        "zh-CN",
    ]


@pytest.mark.slow
def test_a_text_from_right_to_left_begins_at_the_right(page):
    alignment = [[1, 0], [4, 1], [3, 2], [4, 3]]
    details = {"alignment": alignment, "source_words": SOURCE_WORDS, "target_words": ARABIC_WORDS}
    answer(page, ARABIC, details, ("شغل الملف في Linux.",))
    words = show(page, "ar")
    translation = page.locator("#translation")
    assert [translation.get_attribute("lang"), translation.get_attribute("dir")] == ["ar", "rtl"]
    pane, first, last = (
        element.bounding_box() for element in (translation, words.first, words.last)
    )
    assert first["x"] + first["width"] > pane["x"] + pane["width"] - 40
    assert last["x"] < first["x"]
    # The final period is at the left end, as the sentence is read.
    period = words.last.evaluate("""word => {
        const range = document.createRange();
        range.setStart(word.firstChild, 5);
        range.setEnd(word.firstChild, 6);
        return range.getBoundingClientRect().left - word.getBoundingClientRect().left;
    }""")
    assert period < 2
    words.first.focus()
    page.keyboard.press("ArrowLeft")
    playwright.expect(words.nth(1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    playwright.expect(words.first).to_be_focused()
    page.keyboard.press("Enter")
    option = page.get_by_role("listbox").get_by_role("option")
    assert option.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert page.locator("#word b").get_attribute("dir") == "rtl"
    assert page.locator("html").evaluate("page => getComputedStyle(page).direction") == "ltr"


def test_languages_have_their_own_names(page):
    target = page.get_by_role("combobox", name="To")
    assert target.get_by_role("option").all_inner_texts() == [
        "日本語 – Japanese",
        "العربية – Arabic",
    ]
    target.select_option("ar")
    assert target.get_attribute("title") == "Arabic"
    assert [option.get_attribute("lang") for option in target.get_by_role("option").all()] == [
        "ja",
        "ar",
    ]


def test_flags_name_lines_of_the_text(page):
    details = [{"flags": []}, {"flags": ["number"]}]
    content = {"translatedText": "A\n\n \u3000\nB", "details": details}
    page.route("**/translate", lambda route: route.fulfill(json=content))
    page.get_by_role("textbox", name="Text to translate").fill("A\n\n \u3000\nB")
    playwright.expect(page.locator("#flags")).to_contain_text("(line 4)")


@pytest.mark.slow
def test_long_names_of_languages_do_not_run_under_the_arrow(open_page):
    page = open_page(viewport={"width": 390, "height": 800})
    page.get_by_role("combobox", name="From").select_option("ja")
    target = page.get_by_role("combobox", name="To")
    assert target.get_by_role("option").all_inner_texts() == ["简体中文 – Simplified Chinese"]
    assert target.get_attribute("title") == "Simplified Chinese (China)"
    page.locator("#source option:checked").evaluate(
        "option => { option.text = 'A long name '.repeat(9); }"
    )
    source = page.locator("#source")
    box = source.bounding_box()
    arrow = page.locator(".languages > svg, #swap").locator("visible=true").first.bounding_box()
    assert box["x"] + box["width"] <= arrow["x"]
    assert source.evaluate("box => getComputedStyle(box).textOverflow") == "ellipsis"


@pytest.mark.slow
def test_pages_of_clients_turn_to_the_right(address):
    page = '<html lang="en"><p>ka <code>-x</code></p></html>'
    expected = '<html dir="rtl" lang="ar">'
    for source in ("en", "auto"):
        fields = {"q": page, "source": source, "target": "ar", "format": "html"}
        translation = httpx.post(f"{address}translate", json=fields, timeout=60).json()[
            "translatedText"
        ]
        assert translation.startswith(expected)
        assert '<code dir="ltr">-x</code>' in translation
        upload = {"source": source, "target": "ar"}
        file = {"file": ("a.html", page.encode())}
        url = httpx.post(f"{address}translate_file", data=upload, files=file, timeout=60).json()[
            "translatedFileUrl"
        ]
        assert httpx.get(url).text.startswith(expected)
