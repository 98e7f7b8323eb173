"""Plain text with hard line breaks: paragraphs are joined, translated and wrapped again."""

import textwrap

import pytest

from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo, same

LONG = (
    "This is a paragraph of running text that is wrapped at about sixty columns, and whose words "
    "flow from one line to the next, so that the model has to read its lines together."
)


def lengthened(lines):
    """Each line with more words, which need more lines."""
    return [Translated(f"{line} {line.upper()}") for line in lines]


@pytest.mark.parametrize("width", [40, 60, 72])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("", ""),
        ("  ", "  "),
        ("> ", "> "),
        ("> > ", "> > "),
        ("- ", "  "),
        ("    ", ""),
        ("12. ", ""),
    ],
)
def test_paragraphs_are_wrapped_to_their_width_again(width, end, first, rest):
    lines = textwrap.wrap(LONG, width, initial_indent=first, subsequent_indent=rest)
    source = end.join(lines) + end
    read, result, notice = pseudo("wrapped", source, lengthened)
    assert (read, notice) == ([LONG], "")
    longest = max(map(len, lines))
    # An independent implementation.
    expected = textwrap.wrap(
        f"{LONG} {LONG.upper()}",
        longest,
        initial_indent=first,
        subsequent_indent=rest,
    )
    assert result == end.join(expected) + end


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        # Verses, and an address.
        ("Roses are red\nViolets are blue\nSugar is sweet\n", None),
        (f"{textwrap.fill(LONG, 60)}\n\nMr. Bob Miller\n12 Old Street\n", None),
        # Headers of e-mails; mail programs write `Re:`.
        ("From: Bob <a@b.c>\nSubject: Re: [dev] The plan\nX-Tag: some text\n", ["The plan"]),
        # Tables, drawings, code and signatures.
        ("Name      Value\nOne       two\n", []),
        ("+-----+-----+\n| one | two |\n+-----+-----+\n", []),
        ("    $ make install\n    int main() {\n", []),
        ("Chapter one ............. 12\n", []),
        ("Hello all,\n\n-- \nBob Miller\nSome company\n", ["Hello all,"]),
        ("Title\n=====\n", ["Title"]),
        # Lists.
        ("- one two\n- three\n  four five\n", ["one two", "three four five"]),
        ("1. one\n2. two\n\n(a) three\n", ["one", "two", "three"]),
        # Quotations of another level are other paragraphs.
        ("> One two\n> > three\nfour\n", ["One two", "three", "four"]),
    ],
)
def test_other_lines(source, lines):
    if lines is None:
        text, _, verses = source.rpartition("\n\n")
        lines = [" ".join(text.split())] if text else []
        lines += verses.splitlines()
    read, result, _ = pseudo("wrapped", source)
    assert read == lines
    assert len(result.splitlines()) == len(source.splitlines())


def test_lines_that_stay_are_counted():
    source = "From: a\nDate: b\n\n    $ make it\n\nText\n\n--\nBob\n"
    assert pseudo("wrapped", source)[2] == (
        "lines of tables, code, headers and signatures left unchanged: 4 (line 1, 2, 4, 9)"
    )


@pytest.mark.parametrize(
    "mark", ["(2.1)", "2.1", "2.1.", "2.1.3", "(1.1.2)", "[1]", "[12]", "12.", "iv)", "•"]
)
def test_marks_of_items_and_sections_stay(mark):
    lines, result, _ = pseudo("wrapped", f"{mark} One two\n")
    assert (lines, result) == (["One two"], f"{mark} ONE TWO\n")


def test_a_quantity_is_no_mark():
    assert pseudo("wrapped", "2.1 million people live there\n")[0] == [
        "2.1 million people live there"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "  He saw the woman in the red shirt behind the house;\n  a child slept.",
        "  1. the picture of a woman who rides a horse;",
        "  The man is asleep;\n  In number, as leaves of trees;\n  AND SO IT IS;",
        "  the man(s) and the woman are asleep;",
        "  Choose File -> Open;",
        "  We set the variable to\n  dir=/usr/share (which we would use by default) here.",
        "  if you want to see the man in the house:",
        "  for example, in this case:",
        "  see the word(s)",
        "  import duties",
        "  return to the house;",
    ],
)
def test_indented_text_is_no_code(text):
    lines, _, notice = pseudo("wrapped", f"{text}\n")
    words = " ".join(lines).split()
    assert words == text.removeprefix("  1.").split()
    assert notice == ""


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return x + 1",
        "if x == 3:\n    break\nelse:\n    pass",
        "for name in names:\n    show(name)",
        "#include <stdio.h>\nint main(void)\n{\n    int i;\n    return 0;\n}",
        'printf("the man is in the house\\n");',
        "const x = await foo();",
        "std::cout << x << std::endl;",
        "SELECT name FROM people WHERE id = 3;",
        "for (i = 0; i < n; i++)\n    show(i);",
        "x = 1\nimport os",
    ],
)
def test_indented_code_stays(code):
    source = "    " + code.replace("\n", "\n    ") + "\n"
    lines, result, notice = pseudo("wrapped", source)
    assert (lines, result) == ([], source)
    assert notice.startswith("lines of tables, code, headers and signatures left unchanged: ")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        # The text has the word without the hyphen, or with it.
        ("an alphabet and the alpha-\nbet", "an alphabet and the alphabet"),
        ("a well-known and well-\nknown text", "a well-known and well-known text"),
        ("Anglo-\nSaxon", "Anglo-Saxon"),
        ("the pre- \nand postwar years", "the pre- and postwar years"),
        ("a hy-\nphenated word", "a hyphenated word"),
        ("one -\ntwo", "one - two"),
        ("漢字漢字\n漢字", "漢字漢字漢字"),
    ],
)
def test_hyphens_at_the_ends_of_lines(source, line):
    filler = "Some words that fill the line up to its end, before"
    content = f"{filler} {source}\n".encode()
    assert read_document("wrapped", content).lines == [f"{filler} {line}"]


def test_emphasis_moves_with_its_words():
    source = "The _old house_ is here\n"
    document = read_document("wrapped", source.encode())
    assert document.lines == ["The old house is here"]
    alignment = [(0, 3), (1, 0), (2, 1), (3, 2), (4, 2)]
    result = document.join([Translated("altes Haus da das", alignment)])
    assert result == b"_altes Haus_ da das\n"
    assert document.join(same(document.lines)).decode() == source


def test_no_line_begins_like_an_item_or_a_quotation():
    words = " ".join(["word", "-", "word", "2.", "word", "> x", "word", "--"] * 20)
    source = textwrap.fill(LONG, 60) + "\n"
    _, result, _ = pseudo("wrapped", source, lambda lines: [Translated(words)])
    assert result.split() == words.split()
    begins = [line.split()[0] for line in result.splitlines()]
    assert set(begins) <= {"word", "x"}
