"""Brackets and quotation marks around elements: an element has both signs of a pair, or neither."""

import re

import pytest
from hypothesis import assume, given, settings, strategies as st

from nmt.plugins.documents.brackets import find_brackets
from nmt.text import word_spans
from nmt.translation import Translated, read_document


def words_of(text: str, part: str) -> list[int]:
    """The numbers of the words of a text that overlap the first occurrence of a part of it."""
    first = text.index(part)
    last = first + len(part)
    numbers = list[int]()
    for number, (begin, end) in enumerate(word_spans(text)):
        if begin < last and end > first:
            numbers.append(number)
    return numbers


def pairs_between(source: str, target: str, phrases: str) -> list[tuple[int, int]]:
    """The alignment of phrases such as `new=新 file=文件`, each word with its share of the other."""
    pairs = list[tuple[int, int]]()
    for phrase in phrases.split():
        source_part, target_part = phrase.split("=")
        source_words = words_of(source, source_part)
        target_words = words_of(target, target_part)
        longest = max(len(source_words), len(target_words))
        for n in range(longest):
            source_word = source_words[n * len(source_words) // longest]
            target_word = target_words[n * len(target_words) // longest]
            pairs.append((source_word, target_word))
    return pairs


def rendered(format: str, text: str, target: str, phrases: str) -> str:
    """A file with one line, translated to `target`, whose phrases are aligned."""
    document = read_document(format, text.encode())
    [line] = document.lines
    translation = Translated(target, pairs_between(line, target, phrases))
    return document.join([translation]).decode()


@pytest.mark.parametrize(
    ("source", "target", "phrases", "expected"),
    [
        ("The <b>(new)</b> file", "（新）文件", "new=新 file=文件", "<b>（新）</b>文件"),
        ("The <b>(new)</b> file", "（新）文件", "(new)=新） file=文件", "<b>（新）</b>文件"),
        ("The (<b>new</b>) file", "（新）文件", "(new)=（新） file=文件", "（<b>新</b>）文件"),
        ("<b>（新）</b>文件", "the (new) file", "新=(new)", "the <b>(new)</b> file"),
        ("See <i>“Red”</i>.", "看《红》。", "See=看 “Red”.=红》。", "看<i>《红》</i>。"),
        ("See <i>Red</i>.", "看《红》。", "See=看 Red.=《红》。", "看《<i>红</i>》。"),
        (
            "<b>“Wait!”</b> he said",
            "「待って！」と言った",
            "“Wait!”=待って！」",
            "<b>「待って！」</b>と言った",
        ),
        (
            "<b>「待って！」</b>と言った",
            "“Wait!” he said",
            "待って！」=“Wait!”",
            "<b>“Wait!”</b> he said",
        ),
        ("<b>«Ждите»</b> там", "„Wartet“ dort", "«Ждите»=„Wartet“", "<b>„Wartet“</b> dort"),
        ("<b>“Wait”</b> there", "« Attendez » là", "“Wait”=Attendez", "<b>« Attendez »</b> là"),
        ('<b>"Wait"</b> there', "»Warte« dort", '"Wait"=»Warte«', "<b>»Warte«</b> dort"),
        ("<b>“انتظر”</b> هناك", '"חכה" שם', "انتظر=חכה", '<b>"חכה"</b> שם'),
        ('(<b>"he"</b>) left', "（彼）は去る", '("he")=（彼）', "（<b>彼</b>）は去る"),
        ('(<b>"he"</b>) left', "（「彼」）は去る", '("he")=（「彼」）', "（<b>「彼」</b>）は去る"),
        (
            "<b>(a) or (b)</b> now",
            "（甲）或（乙）现在",
            "(a)=甲 or=或 (b)=乙",
            "<b>（甲）或（乙）</b>现在",
        ),
        (
            "<b>(A)</b> <i>(B)</i>",
            "（甲）（乙）",
            "(A)=（甲 (B)=）（乙）",
            "<b>（甲）</b><i>（乙）</i>",
        ),
        # The final mark, even if another one is aligned with it.
        ("<b>Wait.</b> Go.", "Warte. Geh.", "Wait=Warte Go.=Geh.", "<b>Warte.</b> Geh."),
        ("<b>Wait!</b> Go.", "Warte. Geh.", "Wait=Warte Go.=Geh.", "<b>Warte.</b> Geh."),
        # The larger part, if the other sign is too far away.
        ("<b>Wait!</b> (ok all of you)", "待って（皆）", "Wait!=待って（", "<b>待って</b>（皆）"),
        # One sign alone in the source.
        ("<b>(new</b> file)", "（新文件）", "(new=（新 file)=文件）", "<b>（新</b>文件）"),
        (
            "The <b>rock ’n’ roll</b>",
            "Der Rock ’n’ Roll",
            "rock=Rock ’n’=’n’ roll=Roll",
            "Der <b>Rock ’n’ Roll</b>",
        ),
        ("<b>(a)b</b> c", "x (a)b", "(a)b=(a)b c=x", "x <b>(a)b</b>"),
        ("<b>don’t</b> (go)", "geht’s (los)", "don’t=geht’s", "<b>geht’s</b> (los)"),
        # The sign of repetition belongs to the word before it.
        ("Walk <b>slowly</b> now", "เดินช้า ๆ นะ", "slowly=ช้า now=นะ", "เดิน<b>ช้า ๆ</b> นะ"),
        ("Walk <b>slowly</b> now", "เดินช้าๆ นะ", "slowly=ช้า now=นะ", "เดิน<b>ช้าๆ</b> นะ"),
        ("Go <b>slowly</b> now", "ຍ່າງຊ້າ ໆ ເດີ", "slowly=ຊ້າ now=ເດີ", "ຍ່າງ<b>ຊ້າ ໆ</b> ເດີ"),
        ("เดิน<b>ช้า</b> ๆ", "Walk slowly", "เดิน=Walk ช้า=slowly", "Walk <b>slowly</b>"),
        # A number and a letter of two elements are no measurement.
        ("a <i>555</i> <b>b</b>", "A 555 B", "a=A 555=555 b=B", "A <i>555</i> <b>B</b>"),
        (
            "a <i>55</i> <b>b</b> 1.5 GB",
            "A 55 B 1,5 GB",
            "a=A 55=55 b=B",
            "A <i>55</i> <b>B</b> 1,5 GB",
        ),
    ],
)
def test_an_element_takes_the_brackets_that_it_has_in_the_source(source, target, phrases, expected):
    assert rendered("html", source, target, phrases) == expected


@pytest.mark.parametrize(
    ("source", "target", "phrases", "expected"),
    [
        (
            "（甲）待て\n（乙）行け",
            "（丙）等我（丁）走",
            "甲=丙 待て=等我 乙=丁 行け=走",
            "（丙）等我\n（丁）走",
        ),
        ("彼は\n「待て」と", "他说“等等”", "彼=他 待て=等等", "他说\n“等等”"),
        (
            "<i>待て</i>\n<i>行け</i>",
            "等等我走吧",
            "待て=等等我 行け=走吧",
            "<i>等等我</i>\n<i>走吧</i>",
        ),
        ("待て\n～行け", "等等♪走吧♪", "待て=等等 行け=走吧", "等等\n♪走吧♪"),
        ("Wait\n(now)", "Warte (jetzt)", "Wait=Warte (now)=(jetzt)", "Warte\n(jetzt)"),
        ("Wait\n“now”", "Ici « maintenant »", "Wait=Ici “now”=maintenant", "Ici\n« maintenant »"),
        ("Wait\nnow!", "Attends là !", "Wait=Attends now!=!", "Attends\nlà !"),
        # A repeated mark is a pause.
        ("待て\n——行け", "等等——走吧", "待て=等等 行け=走吧", "等等——\n走吧"),
        ("待て\n・・・行け", "等等…走吧", "待て=等等 行け=走吧", "等等…\n走吧"),
    ],
)
def test_a_line_breaks_before_an_opening_sign_and_after_a_closing_one(
    source, target, phrases, expected
):
    times = "1\n00:00:01,000 --> 00:00:03,000\n"
    assert rendered("srt", times + source, target, phrases) == times + expected


@pytest.mark.parametrize("mark", ["－", "・", "‐", "—", "―", "－ ", "—　", "- ", "– ", "• "])
@pytest.mark.parametrize(
    "header", ["1\n00:00:01,000 --> 00:00:03,000\n", "WEBVTT\n\n00:01.000 --> 00:03.000\n"]
)
def test_a_dialog_has_a_sentence_in_each_line(mark, header):
    source = f"{header}{mark}待って\n{mark}行かないで\n"
    document = read_document("srt", source.encode())
    assert document.lines == ["待って", "行かないで"]
    result = document.join([Translated("等等"), Translated("不要走")]).decode()
    assert result == f"{header}{mark}等等\n{mark}不要走\n"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("♪歌う\n♪踊る", 2),
        ("<i>- 歌う</i>\n<i>- 踊る</i>", 2),
        ("{\\an8}- 歌う\n- 踊る", 2),
        # A minus sign is no mark of a dialog.
        ("今\n－5度", 1),
    ],
)
def test_songs_and_dialogs_in_elements_have_a_sentence_in_each_line(text, sentences):
    subtitle = "1\n00:00:01,000 --> 00:00:03,000\n" + text
    assert len(read_document("srt", subtitle.encode()).lines) == sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don’t (a “b” c)", ["(a “b” c)", "“b”"]),
        ("„x“ und »y« oder «z»", ["„x“", "»y«", "«z»"]),
        ("„a “b” c”", ["„a “b” c”", "“b”"]),
        ("\"a\" 'b' it's", ['"a"', "'b'"]),
        ('他说"好"了', ['"好"']),
        ('צה"ל (א)', ["(א)"]),
        ("« Attends « a » ! »", ["« Attends « a » ! »", "« a »"]),
        ("”hej” 〝あ〟", ["”hej”", "〝あ〟"]),
        ("a) b) (c)", ["(c)"]),
        ("((a) b) ［［c］］", ["((a) b)", "(a)", "［［c］］", "［c］"]),
        ("5' x 6\" 〔a〕【b】{c}", ["〔a〕", "【b】", "{c}"]),
        ("(a “b) c”", ["(a “b)"]),
        ('""a" b".', ['""a" b"', '"a"']),
        ('"a ("b") c"', ['"a ("b") c"', '("b")', '"b"']),
        ('"" a', ['""']),
        ("", []),
    ],
)
def test_pairs_of_brackets(text, expected):
    pairs = find_brackets(text)
    assert [text[pair.opening : pair.closing + 1] for pair in pairs] == expected


WORDS = {
    "en": ["red", "file", "open", "it", "name"],
    "zh": ["红", "文件", "打开", "它", "名字"],
    "ja": ["赤い", "ファイル", "開く", "それ", "名前"],
}
STYLES = {
    "en": ["()", "[]", "“”", "\ue000\ue001", "‘’"],
    "zh": ["（）", "【】", "“”", "《》", "『』"],
    "ja": ["（）", "［］", "「」", "『』", "〝〟"],
}
STRAIGHT = str.maketrans("\ue000\ue001", '""')
"""Straight quotation marks: in `STYLES`, the first and the last one are told apart."""
BETWEEN = {"en": " ", "zh": "", "ja": ""}
FINAL = {"en": ".", "zh": "。", "ja": "。"}
# Numbers of words, some in brackets of a style.
GROUPS = st.recursive(
    st.integers(0, 4),
    lambda inner: st.tuples(st.integers(0, 4), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=6,
)


def written(groups: list, language: str, is_reversed: bool) -> str:
    """The words of some groups in a language, in the same or the opposite order."""
    if is_reversed:
        groups = groups[::-1]
    pieces = list[str]()
    for group in groups:
        if isinstance(group, int):
            pieces.append(WORDS[language][group])
        else:
            style, inner_groups = group
            opening, closing = STYLES[language][style]
            pieces.append(opening + written(inner_groups, language, is_reversed) + closing)
    return BETWEEN[language].join(pieces)


@settings(max_examples=100)
@given(
    st.lists(GROUPS, min_size=1, max_size=4),
    st.sampled_from([*WORDS]),
    st.sampled_from([*WORDS]),
    st.booleans(),
    st.data(),
)
def test_no_element_has_one_sign_of_a_pair(
    groups, source_language, target_language, is_reversed, data
):
    # In these texts, the signs of a pair of straight quotation marks differ.
    source_signs = written(groups, source_language, False) + FINAL[source_language]
    target_signs = written(groups, target_language, is_reversed) + FINAL[target_language] + "X"
    source = source_signs.translate(STRAIGHT)
    target = target_signs.translate(STRAIGHT)
    begin = data.draw(st.integers(0, len(source) - 1))
    end = data.draw(st.integers(begin + 1, len(source)))
    inside = source[begin:end]
    document = read_document("html", f"{source[:begin]}<b>{inside}</b>{source[end:]}".encode())
    assume(inside.strip() and document.lines == [source])
    pairs = proportional_pairs(source, target[:-1], is_reversed)
    result = document.join([Translated(target, pairs)]).decode()
    assert re.sub("</?b>", "", result) == target
    if is_paired(source_signs[begin:end]):
        element = re.search("<b>(.*)</b>", result)
        assert element is not None
        first = element.start()
        assert is_paired(target_signs[first : first + len(element[1])]), result


def proportional_pairs(source: str, target: str, is_reversed: bool) -> list[tuple[int, int]]:
    """Pair the words of two texts in the same or the opposite order."""
    source_count = len(word_spans(source))
    target_count = len(word_spans(target))
    pairs = list[tuple[int, int]]()
    for number in range(target_count):
        partner = number * source_count // target_count
        if is_reversed:
            partner = source_count - 1 - partner
        pairs.append((partner, number))
    return pairs


def is_paired(text: str) -> bool:
    """Whether no bracket is alone, by removing pairs without brackets inside."""
    styles = set().union(*STYLES.values())
    signs = set("".join(styles))
    text = "".join(sign for sign in text if sign in signs)
    before = None
    while text != before:
        before = text
        for style in styles:
            text = text.replace(style, "")
    return not text
