"""Links to headings of Markdown lead to the translated headings."""

import pytest

from nmt.plugins.documents.anchors import Slugs
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo

# What github-slugger 2.0.0 returns for the headings of one page.
ANCHORS = [
    ("Install the program", "install-the-program"),
    ("Install the program", "install-the-program-1"),
    ("Install the program 1", "install-the-program-1-1"),
    ("What's new? (2.0)", "whats-new-20"),
    ("a_b & c", "a_b--c"),
    ("  Führung: Öl – Café", "--führung-öl--café"),
    ("C++ / C#", "c--c"),
    ("🚀 Quick start", "-quick-start"),
    ("日本語 の", "日本語-の"),
    ("install-the-program", "install-the-program-2"),
    ("½ x² ١", "-x-١"),
    ("A.B.C", "abc"),
]


def longer(lines: list[str]) -> list[Translated]:
    """A translation with an "ü" behind each word."""
    translations = []
    for line in lines:
        words = [f"{word}ü" for word in line.split()]
        alignment = [(number, number) for number in range(len(words))]
        translations.append(Translated(" ".join(words), alignment))
    return translations


def test_anchors_are_those_of_github():
    slugs = Slugs()
    for text, anchor in ANCHORS:
        assert slugs.add(text) == anchor


FOLLOWED = r"""
[a](#b-c)\n\n# B c => [aü](#bü-cü)\n\n# Bü cü
# B\n\n# B\n\n[a](#b) [c](#b-1) => # Bü\n\n# Bü\n\n[aü](#bü) [cü](#bü-1)
[a](<#b> "c") [d][] [e]\n\n[d]: #b\n[e]: <#b>\n\nB\n= => [aü](<#bü> "c") [dü][d] [eü][e]\n\n[d]: #bü\n[e]: <#bü>\n\nBü\n=
## B *c* `d e`, [f](g) {.h}\n\n[a](#b-c-d-e-f) => ## Bü *cü* `d e`,ü [fü](g) {.h}\n\n[aü](#bü-cü-d-eü-fü)
[![a](b)](#c)\n\n## C => [![aü](b)](#cü)\n\n## Cü
| a |\n|---|\n| [b](#d) | \n\n> - [c](#d)\n\n## D => | aü |\n|---|\n| [bü](#dü) | \n\n> - [cü](#dü)\n\n## Dü
<p><a href="#b">a</a></p>\n\n## B => <p><a href="#bü">aü</a></p>\n\n## Bü
a <a href='#c'>b</a>\n\n## C => aü <a href='#cü'>bü</a>\n\n## Cü
[a](#%C3%BC)\n\n## Ü => [aü](#%C3%BC%C3%BC)\n\n## Üü
[a](#B)\n\n## B => [aü](#bü)\n\n## Bü
---\ntitle: C\n---\n\n[a](#b)\n\n## B => ---\ntitle: Cü\n---\n\n[aü](#bü)\n\n## Bü
# Explicit anchors, and what is not a link.
[a](#b)\n\n## C {#b} => [aü](#b)\n\n## Cü {#b}
[a](#b)\n\n## C {/* #b */}\n\n## B {#d} => [aü](#b)\n\n## Cü {/* #b */}\n\n## Bü {#d}
[a](#b) <a id="b"></a>\n\n## B => [aü](#b) <a id="b"></a>\n\n## Bü
[a](#b)\n\n(b)=\n## B => [aü](#b)\n\n(b)=\n## Bü
`[a](#b)` \[a](#b)\n\n```\n[a](#b)\n\n# B\n```\n\n    [a](#b)\n\n## B => `[a](#b)`ü [a\](#b)ü\n\n```\n[a](#b)\n\n# B\n```\n\n    [a](#b)\n\n## Bü
[a](#top) [b](c#L10) [d](https://e.f/#g) [h](#) => [aü](#top) [bü](c#L10) [dü](https://e.f/#g) [hü](#)
"""
ROWS = [row.split(" => ") for row in FOLLOWED.strip().split("\n") if not row.startswith("# E")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("source", "expected"), ROWS)
def test_links_follow_their_headings(source, expected, end):
    _, result, notice = pseudo("markdown", source.replace(r"\n", end), longer)
    assert result == expected.replace(r"\n", end)
    assert "headings" not in notice


def test_components_link_to_headings():
    source = '<Card title="A"\n  href="#b" />\n\nc <Link to="#b">d</Link>\n\n## B\n'
    result = pseudo("mdx", source, longer)[1]
    assert result == source.replace("#b", "#bü").replace("c <", "cü <").replace(
        ">d", ">dü"
    ).replace("## B", "## Bü").replace('"A"', '"Aü"')


@pytest.mark.parametrize(
    "text",
    [
        "[a](b.md#c)",
        "[a](/b/#c)",
        "[a][]\n\n[a]: ../b#c",
        '<p><a href="b#c">a</a></p>',
        '[a]({{< relref "#c" >}})',
        "[[Page#Heading|a]]",
        "[a](#heading-of-an-included-file)",
    ],
)
def test_links_to_headings_of_other_files_are_counted(text):
    notice = "links to headings of other files, whose anchors may change: 1"
    assert pseudo("markdown", f"{text}\n\n# D\n", longer)[2] == notice


def test_an_encoding_with_a_mark_stays():
    source = "# B\n\n[a](#b)\n"
    document = read_document("markdown", source.encode("utf-16"))
    result = document.join(longer(document.lines))
    assert result.decode("utf-16") == "# Bü\n\n[aü](#bü)\n"
    assert result[:2] == source.encode("utf-16")[:2]


@pytest.mark.parametrize(
    "piece", ["](#b ", "[a](#b)\n# B\n", '<a href="#b ', "[[#", "{#", "`[a](#b) "]
)
def test_many_links_take_linear_time(piece):
    page = piece * (6_000 // len(piece))
    document = read_document("markdown", page.encode())
    assert document.join([Translated(line) for line in document.lines]) == page.encode()
