"""What bilingual files say about units whose translation is doubtful, or that have none."""

import re
from collections.abc import Callable

import polib
import pytest

from nmt.translation import MARKED, OMITTED, TRUSTED, Translated, read_document
from nmt.translation.document_lines import warn_without_marks

REVIEW = "needs-review-translation"
ICU = "{n, plural, one {One cat} other {%s cats}}"
BAD = {
    "lost": Translated("Gut!", trust=TRUSTED),
    "empty": Translated("", trust=TRUSTED),
    "omitted": Translated("I like %s.", trust=OMITTED),
}
"""Translations of "I like %s." after which it stays untranslated."""
GOOD = Translated("Ich mag %s.", trust=TRUSTED)


def xliff(unit: str, namespace: str = "") -> str:
    return (
        f'<xliff version="1.2" {namespace}><file source-language="en" target-language="de" '
        f'original="a" datatype="plaintext"><body>{unit}</body></file></xliff>'
    )


def xliff2(segment: str) -> str:
    return (
        '<xliff version="2.0" srcLang="en" trgLang="de" '
        'xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="u">'
        f"{segment}</unit></file></xliff>"
    )


def catalog(message: str) -> str:
    return f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n{message}\n'


def joined(format: str, content: str, *translations: Translated) -> str:
    document = read_document(format, content.encode(), "de", "en")
    assert len(document.lines) == len(translations)
    result = document.join(translations)
    # A document can be written again with the same result.
    assert document.join(translations) == result
    return result.decode()


def seg(mid: int, text: str) -> str:
    return f'<mrk mtype="seg" mid="{mid}">{text}</mrk>'


PLAIN = xliff('<trans-unit id="1"><source>I like %s.</source></trans-unit>')
SEGMENTED = xliff(
    '<trans-unit id="1"><source>Yes. I like %s.</source>'
    f"<seg-source>{seg(1, 'Yes.')} {seg(2, 'I like %s.')}</seg-source></trans-unit>"
)
YES = Translated("Ja.", trust=TRUSTED)


def filled(state: str) -> str:
    """A unit with two segments; a person has translated one of them."""
    return xliff(
        '<trans-unit id="1"><source>Yes. I like %s.</source>'
        f"<seg-source>{seg(1, 'Yes.')} {seg(2, 'I like %s.')}</seg-source>"
        f"<target{state}>{seg(1, 'Ja.')} {seg(2, '')}</target></trans-unit>"
    )


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize(
    ("content", "before"),
    [(PLAIN, ()), (SEGMENTED, (YES,)), (filled(""), ()), (filled(' state="translated"'), ())],
    ids=["plain", "segmented", "filled", "filled, translated"],
)
def test_untranslated_units_of_xliff_need_a_review(content, before, bad):
    result = joined("xliff", content, *before, bad)
    assert re.findall(r'<target state="([^"]*)"', result) == [REVIEW]
    assert re.search("<target.*I like %s.*</target>", result)
    trusted = joined("xliff", content, *before, GOOD)
    assert REVIEW not in trusted
    assert re.search("<target.*Ich mag %s.*</target>", trusted)


def test_a_target_that_is_partly_untranslated_needs_a_review():
    between = SEGMENTED.replace("</mrk> <mrk", "</mrk> and <mrk", 1)
    assert f'<target state="{REVIEW}">' in joined("xliff", between, YES, GOOD)
    unreadable = SEGMENTED.replace("Yes.", "{n, plural, {}")
    assert f'<target state="{REVIEW}">' in joined("xliff", unreadable, GOOD)
    assert '<target state="translated">' in joined("xliff", SEGMENTED, YES, GOOD)


@pytest.mark.parametrize(
    "bad", [Translated("Katzen", trust=TRUSTED), Translated("", trust=TRUSTED)]
)
def test_an_icu_message_that_is_partly_untranslated_needs_a_review(bad):
    unit = f'<trans-unit id="1"><source>{ICU}</source></trans-unit>'
    one = Translated("Eine Katze", trust=TRUSTED)
    assert f'<target state="{REVIEW}">' in joined("xliff", xliff(unit), one, bad)
    good = Translated("%s Katzen", trust=TRUSTED)
    assert '<target state="translated">' in joined("xliff", xliff(unit), one, good)


def test_filled_segments_keep_the_state_of_a_target_unless_they_are_doubtful():
    done = filled(' state="final"')
    assert '<target state="final">' in joined("xliff", done, GOOD)
    assert '<target state="final">' in joined("xliff", done, GOOD._replace(trust=""))
    doubtful = joined("xliff", done, GOOD._replace(trust=MARKED))
    assert f'<target state="{REVIEW}">' in doubtful


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("state", ["", ' state="initial"'])
def test_untranslated_segments_of_xliff_2_stay_initial(state, bad):
    content = xliff2(f"<segment{state}><source>I like %s.</source></segment>")
    expected = '<segment state="initial" subState="nmt:needs-review">'
    result = joined("xliff", content, bad)
    assert expected in result
    # The next command tries them again.
    assert joined("xliff", result, bad) == result
    assert '<segment state="translated">' in joined("xliff", content, GOOD)
    marked = joined("xliff", content, GOOD._replace(trust=MARKED))
    assert '<segment state="translated" subState="nmt:needs-review">' in marked
    assert '<segment state="translated">' in joined("xliff", content, GOOD._replace(trust=""))


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_untranslated_messages_of_a_catalog_are_empty_or_fuzzy(bad):
    content = catalog('#, c-format\nmsgid "I like %s."\nmsgstr ""')
    [entry] = polib.pofile(joined("po", content, bad))
    assert entry.fuzzy or not entry.msgstr
    [entry] = polib.pofile(joined("po", content, GOOD))
    assert (entry.msgstr, entry.fuzzy) == ("Ich mag %s.", False)


def test_a_plural_whose_singular_was_refused_is_fuzzy():
    header = '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
    message = '#, c-format\nmsgid "%s cat"\nmsgid_plural "%s cats"\nmsgstr[0] ""\nmsgstr[1] ""'
    content = catalog(message).replace("\n\n", f"\n{header}", 1)
    cats = Translated("%s Katzen", trust=TRUSTED)
    [entry] = polib.pofile(joined("po", content, Translated("Katze", trust=TRUSTED), cats))
    assert entry.fuzzy
    [entry] = polib.pofile(joined("po", content, Translated("%s Katze", trust=TRUSTED), cats))
    assert not entry.fuzzy


MEMOQ = xliff(
    '<trans-unit id="1" mq:status="NotStarted"><source>I like %s.</source><target/></trans-unit>',
    'xmlns:mq="MQXliff"',
)
PHRASE = xliff(
    '<trans-unit id="1" m:trans-origin="null" m:confirmed="0"><source>I like %s.</source>'
    "<target/></trans-unit>",
    'xmlns:m="http://www.memsource.com/mxlf/2.0"',
)
TRADOS = xliff(
    '<trans-unit id="1"><source>I like %s.</source>'
    f"<seg-source>{seg(1, 'I like %s.')}</seg-source><target>{seg(1, '')}</target>"
    '<sdl:seg-defs><sdl:seg id="1" origin="source"/></sdl:seg-defs></trans-unit>',
    'xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0"',
)
TOOLS = {
    "memoQ": (MEMOQ, 'mq:status="NotStarted"', 'mq:status="MachineTranslated"'),
    "Phrase": (PHRASE, 'm:trans-origin="null"', 'm:trans-origin="mt"'),
    "Trados": (TRADOS, 'id="1" origin="source"/>', 'id="1" origin="mt" conf="Draft"/>'),
}


@pytest.mark.parametrize(("content", "before", "after"), TOOLS.values(), ids=TOOLS)
def test_untranslated_units_of_tools_keep_their_state(content, before, after):
    for bad in BAD.values():
        result = joined("xliff", content, bad)
        assert before in result
        assert after not in result
    for trust in ("", TRUSTED, MARKED):
        assert after in joined("xliff", content, GOOD._replace(trust=trust))


@pytest.fixture
def notice(capsys) -> Callable[[str, str, int], str]:
    """What is printed about a document whose lines should all be marked."""

    def of(format: str, content: str, count: int = 1) -> str:
        document = read_document(format, content.encode(), "de", "en")
        translations = [GOOD._replace(trust=MARKED)] * count
        document.join(translations)
        warn_without_marks("a", document, translations)
        return capsys.readouterr().err

    return of


def test_marked_lines_are_reported_if_the_file_has_no_mark_for_them(notice):
    no_marks = "nmt: a: this format has no marks, so 1 line is not marked: segment "
    for content, _, _ in TOOLS.values():
        assert notice("xliff", content).startswith(no_marks)
    plain = '<trans-unit id="2"><source>I like %s.</source></trans-unit></body>'
    assert notice("xliff", MEMOQ.replace("</body>", plain), 2).startswith(no_marks)
    assert notice("xliff", PLAIN) == ""
    assert notice("xliff", SEGMENTED, 2) == ""
    assert notice("xliff", filled("")) == ""
    assert notice("xliff", xliff2("<segment><source>One</source></segment>")) == ""
    assert notice("po", catalog('msgid "One"\nmsgstr ""')) == ""
    assert "1 line is not marked" in notice("text", "One\n")
