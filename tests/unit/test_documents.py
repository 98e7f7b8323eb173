"""Documents: what is translated of a file, and what the file is like with the translations in it."""

import html
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.documents import Translated, read_document


def same(lines: list[str]) -> list[Translated]:
    return [Translated(line) for line in lines]


def upper(lines: list[str]) -> list[Translated]:
    """A translation into capitals, word for word."""
    return [Translated(line.upper(), [(n, n) for n in range(len(line.split()))]) for line in lines]


def turned(lines: list[str]) -> list[Translated]:
    """A translation into capitals, in which the order of the words is turned round."""
    found = []
    for line in lines:
        words = line.upper().split()
        aligned = [(n, len(words) - 1 - n) for n in range(len(words))]
        found.append(Translated(" ".join(reversed(words)), aligned))
    return found


def translated(format: str, content: str, by=upper) -> str:
    document = read_document(format, content.encode())
    return document.join(by(document.lines)).decode()


def aligned(translation: str, pairs: str):
    """A translator that says this, aligned as "0-1 1-0" says."""
    alignment = [tuple(map(int, pair.split("-"))) for pair in pairs.split()]
    return lambda lines: [Translated(translation, alignment), *same(lines[1:])]


@pytest.mark.parametrize(
    ("source", "translation", "pairs", "expected"),
    [
        ("The <b>old</b> house.", "Das alte Haus.", "0-0 1-1 2-2", "Das <b>alte</b> Haus."),
        ("The <b>old house</b>.", "Das alte Haus.", "0-0 1-1 2-2", "Das <b>alte Haus</b>."),
        # The order changes.
        (
            "I <i>have</i> <b>seen</b> it.",
            "Ich habe es gesehen.",
            "0-0 1-1 2-3 3-2",
            "Ich <i>habe</i> es <b>gesehen</b>.",
        ),
        # Words of an element are far apart: it covers what lies between, unless that is longer than they are.
        ("I <b>give up</b> this.", "Ich gebe das auf.", "0-0 1-1 2-3 3-2", "Ich <b>gebe das auf</b>."),
        (
            "I <b>give up</b> this now.",
            "Ich gebe das jetzt auf.",
            "0-0 1-1 2-4 3-2 4-3",
            "Ich <b>gebe</b> das jetzt auf.",
        ),
        # Nested, and next to each other.
        (
            "See <a href='x'>the <i>new</i> page</a>.",
            "Siehe die neue Seite.",
            "0-0 1-1 2-2 3-3",
            "Siehe <a href='x'>die <i>neue</i> Seite</a>.",
        ),
        # Part of a word, and punctuation at its ends.
        ("A <b>walk</b>ing man", "Ein gehender Mann", "0-0 1-1 2-2", "Ein <b>gehender</b> Mann"),
        ('He ("<b>he</b>") left', "Er (»er«) ging", "0-0 1-1 2-2", "Er (»<b>er</b>«) ging"),
        ("A word<sup>1</sup> here", "Hier ein Wort1", "0-1 1-2 2-0", "Hier ein Wort<sup>1</sup>"),
        # Nothing aligns to it: a free word beside it, else nothing.
        ("Open <b>up</b> now", "Jetzt öffnen", "0-1 2-0", "Jetzt <b>öffnen</b>"),
        ("<i>Open</i> <b>up</b>", "Öffnen", "0-0", "<i>Öffnen</i> <b></b>"),
        # Tags between words.
        ("Yes,<br>I do.", "Ja, das tue ich.", "0-0 1-3 2-2", "Ja,<br>das tue ich."),
        ("One <img src='x'> two", "Eins zwei", "0-0 1-1", "Eins <img src='x'> zwei"),
        ("One<wbr>two three", "Einszwei drei", "0-0 1-1", "Einszwei<wbr> drei"),
        # What is copied.
        (
            "Run <code>make all</code> first",
            "Zuerst make all ausführen",
            "0-3 1-1 2-2 3-0",
            "Zuerst <code>make all</code> ausführen",
        ),
        ("Run <code>make</code> now", "Jetzt machen ausführen", "0-2 1-1 2-0", "Jetzt <code>make</code> ausführen"),
        ("A <code>a</code> is a", "Ein a ist ein a", "0-0 1-1 2-2 3-3 3-4", "Ein <code>a</code> ist ein a"),
        ("Run <code>x</code>", "Los", "0-0", "Los <code>x</code>"),
        # Around everything, and broken.
        ("<b><i>All of it</i></b> ", "Alles", "0-0", "<b><i>Alles</i></b> "),
        ("A <b>bold <i>and</b> more", "Ein fetter und mehr", "0-0 1-1 2-2 3-3", "Ein <b>fetter <i>und</b> mehr"),
        ("No <b>end", "Kein Ende", "0-0 1-1", "Kein <b>Ende"),
        ("Tom &amp; I &lt; <b>you</b>", "Tom & ich < du", "0-0 1-1 2-2 3-3 4-4", "Tom &amp; ich &lt; <b>du</b>"),
    ],
)
def test_markup_goes_around_the_words_that_align(source, translation, pairs, expected):
    assert translated("html", source, aligned(translation, pairs)) == expected


WORDS = st.text("abcdefgäß", min_size=1, max_size=4)
BLANKS = st.sampled_from([" ", "\n  ", " <!-- ein Wort --> "])


def element(inside, tags):
    return st.tuples(st.sampled_from(tags), inside).map(lambda both: f"<{both[0]} id='x>y'>{both[1]}</{both[0]}>")


def several(of, between):
    return st.lists(st.tuples(of, between), min_size=1, max_size=4).map(
        lambda parts: "".join(a + b for a, b in parts[:-1]) + parts[-1][0]
    )


TEXT = several(WORDS | st.sampled_from(["a&amp;b", "&lt;", "(x)", "c."]), st.sampled_from([" "]))
PHRASE = st.recursive(
    TEXT, lambda inside: several(element(inside, ["b", "a", "em"]) | TEXT, st.just(" ")), max_leaves=6
)
BLOCK = st.one_of(
    element(PHRASE, ["p", "div", "li", "td"]),
    st.sampled_from(
        ["<script>if (a<b) c('<p>')</script>", "<pre>a  b</pre>", "<hr>", "<!-- c -->", "\r\n", "<style>b > a</style>"]
    ),
)
PAGE = st.lists(BLOCK, max_size=5).map(lambda blocks: "<!DOCTYPE html>\n" + "\n".join(blocks))


class Seen(HTMLParser):
    """What the standard library's parser sees: tags, comments, and texts in capitals."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[object] = []
        self.raw = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.raw += tag in ("script", "style", "pre")
        self.seen.append((tag, attrs))

    def handle_endtag(self, tag):
        self.raw -= tag in ("script", "style", "pre")
        self.seen.append(tag)

    def handle_comment(self, data):
        self.seen.append(("comment", data))

    def handle_data(self, data):
        self.seen.append(("raw", data) if self.raw else ("text", data.upper().split()))

    def skeleton(self) -> list[object]:
        return sorted(str(each) for each in self.seen if each[0] != "text")


@given(PAGE)
def test_a_translation_word_for_word_leaves_all_markup_where_it_was(page):
    assert Seen(translated("html", page)).seen == Seen(page).seen


@given(PAGE)
def test_turned_sentences_have_the_same_elements_around_the_same_words(page):
    found = Seen(translated("html", page, turned))
    assert found.skeleton() == Seen(page).skeleton()
    words = [word for each in Seen(page).seen if each[0] == "text" for word in each[1]]
    assert sorted(word for each in found.seen if each[0] == "text" for word in each[1]) == sorted(words)


DAMAGED = """< > </ <b <b> </b> <p> <!-- --> <script> </script <a_title=' " ' = & &#0; &amp word \0 <code> </code> <title>
 <img_alt=x_y> _translate=no /> <br> \ufeff _ \r\n"""
PIECES = st.sampled_from(DAMAGED.split(" ")).map(lambda piece: piece.replace("_", " "))


@given(st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join), st.sampled_from([upper, turned]))
def test_damaged_html_is_kept_to_the_byte_where_it_is_not_translated(text, by):
    text = text.encode(errors="replace").decode()
    assert translated("html", text, same) == text
    found = translated("html", text, by)
    assert html.unescape(found).upper().count("<") >= text.count("<!--")


@pytest.mark.parametrize(
    "piece",
    ["<b>", "<b><i></b>", "<code>", "<!--", "<a '", "<a title=", "x <b>y</b> `z` ", "</b>", "<", "<code>x</code> "],
)
def test_time_is_linear(piece):
    text = piece * (200_000 // len(piece))
    assert translated("html", text, same) == text
    translated("html", text)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('<img alt="A cat" src="A dog">', ["A cat"]),
        ("<p title='a &quot;b'>c<br>d</p>", ['a "b', "c d"]),
        ("<p translate=no>a</p><p class='x notranslate'>b</p><p class=nottranslate>c</p>", ["c"]),
        ("<p>a <span translate='no'>b</span> c</p>", ["a b c"]),
        ("<title>a <b> c</title><textarea>d</textarea>", ["a <b> c"]),
        ("<input placeholder=Name value=x><button aria-label='Do it'>10 %</button>", ["Name", "Do it"]),
        ("<p>12:30</p>&nbsp;—", []),
    ],
)
def test_what_is_translated(source, lines):
    assert read_document("html", source.encode()).lines == lines


def test_attributes_in_a_sentence_are_translated_with_it():
    source = "<p>See <a title='the page' href='the page'>the page</a> &amp; <img alt=it>.</p>"
    expected = "<p>SEE <a title='THE PAGE' href='the page'>THE PAGE</a> &amp; <img alt=\"IT\">.</p>"
    assert translated("html", source) == expected
