"""DocBook and DITA: which elements are translated, and entities that stay."""

import random
import re
from collections import Counter

import pytest
from lxml import etree

from nmt.errors import NMTError
from nmt.plugins.prose.dita import DITA
from nmt.plugins.prose.docbook import DOCBOOK
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo

DOCTYPE = """<?xml version="1.0"?>
<!-- <!DOCTYPE no> -->
<!DOCTYPE article PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "https://a.org/b.dtd" [
<!ENTITY product "Foo > 'Writer'">
<!ENTITY chapter SYSTEM "chapter.xml">
<!-- ' a comment -->
<!ENTITY % more "<!ENTITY x 'y'>"> %more;
]>
"""


def reversed_words(lines: list[str]) -> list[Translated]:
    """A translation into capitals in reverse order."""
    translations = []
    for line in lines:
        words = line.upper().split()[::-1]
        alignment = [(n, len(words) - 1 - n) for n in range(len(words))]
        translations.append(Translated(" ".join(words), alignment))
    return translations


def article(content: str) -> str:
    return f"<article>{content}</article>"


@pytest.mark.parametrize(
    ("content", "translated"),
    [
        (
            "<para>One <emphasis>two</emphasis>.</para>",
            "<para>ONE <emphasis>TWO</emphasis>.</para>",
        ),
        (
            "<para>Run <command>ls</command> now.</para>",
            "<para>RUN <command>ls</command> NOW.</para>",
        ),
        # Blocks divide a paragraph, and notes have sentences of their own.
        (
            "<para>One:<screen>no</screen>two<footnote><para>Three.</para></footnote> four</para>",
            "<para>ONE:<screen>no</screen>TWO<footnote><para>THREE.</para></footnote> FOUR</para>",
        ),
        (
            "<para>One<indexterm><primary>Two</primary></indexterm> three</para>",
            "<para>ONE<indexterm><primary>TWO</primary></indexterm> THREE</para>",
        ),
        # Names of commands stay, and titles are translated.
        (
            "<refnamediv><refname>ls</refname><refpurpose>list files</refpurpose></refnamediv>",
            "<refnamediv><refname>ls</refname><refpurpose>LIST FILES</refpurpose></refnamediv>",
        ),
        ("<refname>Two words</refname>", "<refname>TWO WORDS</refname>"),
        # An unknown element is a block, or a part of the text beside it.
        ("<new>One <para>two</para></new>", "<new>ONE <para>TWO</para></new>"),
        ("<new><newer>One</newer></new>", "<new><newer>ONE</newer></new>"),
        ("<para>A <new>bold</new> word</para>", "<para>A <new>BOLD</new> WORD</para>"),
        # A link with a list in it cannot be part of a sentence.
        (
            "<para>One <link>two<itemizedlist><listitem><para>three</para></listitem>"
            "</itemizedlist></link></para>",
            "<para>ONE <link>TWO<itemizedlist><listitem><para>THREE</para></listitem>"
            "</itemizedlist></link></para>",
        ),
        ("<para><!-- no -->One <?no?>two</para>", "<para><!-- no -->ONE <?no?>TWO</para>"),
        ('<para translate="no">no</para>', '<para translate="no">no</para>'),
    ],
)
def test_elements_of_docbook(content, translated):
    _, result, notice = pseudo("docbook", article(content))
    assert (result, notice) == (article(translated), "")


def test_items_of_menus_are_separate_words():
    menu = "<menuchoice><guimenu>File</guimenu><guimenuitem>Open</guimenuitem></menuchoice>"
    lines, result, _ = pseudo("docbook", article(f"<para>Choose {menu}.</para>"))
    assert lines == ["Choose File Open."]
    assert result == article(f"<para>Choose {menu}.</para>".replace("File", "FILE")).replace(
        "Open", "OPEN"
    ).replace("Choose", "CHOOSE")


def test_references_to_entities_stay():
    text = f"{DOCTYPE}<article><para>The &product; is&nbsp;here.</para>&chapter;</article>"
    lines, result, notice = pseudo("docbook", text)
    assert len(lines) == 1
    assert "&product;" not in lines[0]
    assert "&nbsp;" not in lines[0]
    # A character that has a name is text, and the model may write a blank in another way.
    assert result == text.replace("The", "THE").replace(" is&nbsp;here", " IS HERE")
    assert notice == ""


def test_entities_are_never_expanded():
    # Each entity has the text of the one before it ten times.
    levels = [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)]
    doctype = f'<!DOCTYPE article [<!ENTITY a0 "ha">{"".join(levels)}]>'
    text = f'{doctype}<article role="&a11;"><para>Say &a11; twice.</para></article>'
    lines, result, _ = pseudo("docbook", text)
    assert len(lines[0]) < 100
    assert result == text.replace("Say", "SAY").replace("twice", "TWICE")


def test_texts_of_entities_are_counted():
    doctype = '<!DOCTYPE article [<!ENTITY a "This is a text."><!ENTITY b "Foo Bar">]>'
    _, _, notice = pseudo("docbook", f"{doctype}<article><para>One &a; &b;</para></article>")
    assert notice == "texts of entities left untranslated: 1"


def test_what_stays_is_counted():
    content = (
        "<remark>One</remark><literallayout>Two</literallayout><literallayout>3</literallayout>"
        '<para>A <link xreflabel="Three"/> b</para>'
    )
    _, _, notice = pseudo("docbook", article(content))
    assert notice == (
        "remarks left untranslated: 1; texts with fixed line breaks left untranslated: 1; "
        "texts in attributes left untranslated: 1"
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("<article><para>x</para></article>", '<article lang="de"><para>X</para></article>'),
        (
            '<article xmlns="http://docbook.org/ns/docbook"><para>x</para></article>',
            '<article xml:lang="de" xmlns="http://docbook.org/ns/docbook"><para>X</para></article>',
        ),
        (
            '<article lang="fr"><para lang="en-US">x</para></article>',
            '<article lang="de"><para lang="de">X</para></article>',
        ),
        # A part of a book in DocBook 5.
        (
            '<sect1 xml:id="a"><para>x</para></sect1>',
            '<sect1 xml:lang="de" xml:id="a"><para>X</para></sect1>',
        ),
        ('<article lang="&language;"/>', '<article lang="&language;"/>'),
        (
            '<article lang="de"><!--x lang="en"--></article>',
            '<article lang="de"><!--x lang="en"--></article>',
        ),
    ],
)
def test_the_language_becomes_the_target_language(text, result):
    document = read_document("docbook", text.encode(), "de", "en")
    translations = [Translated(line.upper()) for line in document.lines]
    assert document.join(translations).decode() == result


def test_passages_in_other_languages_stay():
    text = (
        '<topic><body><p>One <ph xml:lang="fr">deux</ph> three</p><p xml:lang="fr">Quatre</p>'
        '<p xml:lang="de">Fünf</p></body></topic>'
    )
    document = read_document("dita", text.encode(), "de", "en")
    assert len(document.lines) == 1
    assert document.notice == "passages declared in other languages left untranslated: 2"
    result = document.join([Translated("Eins " + document.lines[0].split()[1] + " drei")]).decode()
    assert result == text.replace("<topic>", '<topic xml:lang="de">').replace(
        "One", "Eins"
    ).replace("three", "drei")


TASK = """<?xml version="1.0"?>
<!DOCTYPE task PUBLIC "-//OASIS//DTD DITA Task//EN" "task.dtd">
<task id="a"><title>Title</title><shortdesc>Some <keyword>key</keyword> words.</shortdesc>
<prolog><author>no</author><metadata><keywords><keyword>no</keyword>
<indexterm>Index<indexterm>entry</indexterm></indexterm></keywords></metadata></prolog>
<taskbody><steps><step><cmd>Choose <menucascade><uicontrol>File</uicontrol><uicontrol>Open</uicontrol>
</menucascade> or <codeph>no</codeph>.</cmd><stepresult>Result<fn>A note.</fn> here
<image href="no"><alt>Picture</alt></image></stepresult></step></steps>
<example><codeblock>no <i>no</i></codeblock><p conref="no"/><p>A <ph keyref="no"/> word</p>
<note translate="no">no</note><draft-comment>no</draft-comment></example></taskbody></task>
"""


def test_elements_of_dita():
    lines, result, notice = pseudo("dita", TASK)
    # Only what is called "no", code and keywords stay.
    root = etree.fromstring(result)
    assert set(re.findall("[a-z]+", " ".join(root.itertext()))) == {"no", "key"}
    assert Counter(re.findall("<[^>]*>", result)) == Counter(re.findall("<[^>]*>", TASK))
    assert any(line.startswith("Choose File Open or ") for line in lines)
    assert notice == "keywords left untranslated: 1; remarks left untranslated: 1"


def test_titles_in_attributes_of_maps():
    text = '<map><topicref href="a" navtitle="One &amp; two"/></map>'
    _, result, _ = pseudo("dita", text)
    assert result == '<map><topicref href="a" navtitle="ONE &amp; TWO"/></map>'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<html><p>x</p></html>", "line 1: <html> is not an element of DocBook"),
        (
            "<!DOCTYPE a [\n<!ENTITY b 'c'>\n]><article>\n<para></article>",
            "line 4: not well-formed",
        ),
        ("<!DOCTYPE article [", "line 1: not well-formed XML"),
        ("<article>&a</article>", "line 1: not well-formed XML"),
        ("", "no element found"),
    ],
)
def test_damaged_files_are_refused_in_one_line(text, problem):
    with pytest.raises(NMTError) as error:
        read_document("docbook", text.encode())
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("vocabulary", [DOCBOOK, DITA])
def test_each_element_is_in_one_category(vocabulary):
    categories = [
        vocabulary.blocks,
        vocabulary.inline,
        vocabulary.labels,
        vocabulary.notes,
        vocabulary.copied,
        vocabulary.kept,
        vocabulary.titles,
        vocabulary.counted,
    ]
    counts = Counter(name for category in categories for name in category)
    assert [name for name, count in counts.items() if count > 1] == []


def random_content(choices: random.Random, depth: int) -> str:
    """Text with elements of all categories, also in places where DocBook does not allow them."""
    pieces = list[str]()
    for _ in range(choices.randrange(1, 5)):
        kind = choices.choice(["text", "text", "entity", "element"])
        if kind == "text":
            pieces.append(choices.choice(["Some words ", "one", " two, ", "\n  ", "."]))
        elif kind == "entity":
            pieces.append(choices.choice(["&name;", "&amp;", "&nbsp;"]))
        elif depth:
            name = choices.choice(
                [
                    "para",
                    "emphasis",
                    "code",
                    "footnote",
                    "listitem",
                    "screen",
                    "link",
                    "new",
                    "xref",
                ]
            )
            pieces.append(f"<{name}>{random_content(choices, depth - 1)}</{name}>")
    return "".join(pieces)


@pytest.mark.parametrize("seed", range(20))
def test_no_element_or_word_is_lost(seed):
    text = article(random_content(random.Random(seed), 4))
    document = read_document("docbook", text.encode())
    same = [Translated(line) for line in document.lines]
    assert document.join(same).decode() == text
    result = document.join(reversed_words(document.lines)).decode()

    def summary(content: str) -> tuple[Counter[str], Counter[str]]:
        # lxml knows none of the entities.
        root = etree.fromstring(content.replace("&nbsp;", " ").replace("&name;", "[name]"))
        tags = Counter(element.tag for element in root.iter())
        letters = Counter("".join(root.itertext()).upper().replace(" ", ""))
        return tags, Counter({letter: letters[letter] for letter in letters if letter.isalpha()})

    assert summary(result) == summary(text)
