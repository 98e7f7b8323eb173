"""Corrections in files of several formats."""

from collections import Counter
from pathlib import Path

import polib
import pytest

from nmt.errors import NMTError
from nmt.plugins.learn.reading import Languages, Rejected, read_corrections

ENGLISH_GERMAN = Languages("en", "de")
PO = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: de\\n"

msgid "Good morning"
msgstr "Guten Morgen"

#, fuzzy
msgid "Good evening"
msgstr "Guten Morgen"

msgid "Good night"
msgstr ""

#~ msgid "Bye"
#~ msgstr "Adieu"

msgid "a file"
msgid_plural "%d files"
msgstr[0] "eine Datei"
msgstr[1] "%d Dateien"
"""
XLIFF_1 = """\
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="en" target-language="de-DE" datatype="plaintext"><body>
<trans-unit id="1" approved="yes"><source>One</source><target>Eins</target></trans-unit>
<trans-unit id="2"><source>Two</source><target state="signed-off">Zwei</target></trans-unit>
<trans-unit id="3"><source>Three</source><target state="final">Dr<g id="1">ei</g></target>
</trans-unit>
<trans-unit id="4"><source>Four</source><target state="translated">Vier</target></trans-unit>
<trans-unit id="5"><source>Five</source><target state="needs-review-translation">F</target>
</trans-unit>
<trans-unit id="6" approved="no"><source>Six</source><target state="translated">S</target>
</trans-unit>
<trans-unit id="7"><source>Seven</source><target>Sieben</target></trans-unit>
<trans-unit id="8" approved="yes"><source>Eight</source><target/></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """\
<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="u">
<segment state="reviewed"><source>One</source><target>Eins</target></segment>
<segment state="final"><source>Two<ph id="1"/></source><target>Zwei<ph id="1"/></target></segment>
<segment state="translated"><source>Three</source><target>Drei</target></segment>
<segment><source>Four</source><target>Vier</target></segment>
</unit></file></xliff>
"""
TMX = """\
<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="en"><seg>One</seg></tuv><tuv xml:lang="de"><seg>Eins</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Two</seg></tuv></tu>
</body></tmx>
"""
FRENCH_TMX = """\
<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="fr"><seg>Un</seg></tuv><tuv xml:lang="it"><seg>Uno</seg></tuv></tu>
</body></tmx>
"""
ENTITY_TMX = """\
<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>
<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="en"><seg>&c;</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu>
</body></tmx>
"""
SUGGESTIONS = """\
One\tEins\ten\tde\t2026-11-29T10:00:00Z
Uno\tEins\tes\tde\t2026-11-29T10:00:01Z
Two\tZwei\ten\tde\t2026-11-29T10:00:02Z
"""


@pytest.mark.parametrize(
    ("name", "content", "pairs", "skipped"),
    [
        ("a.tsv", "One\tEins\n\nTwo\tZwei\n", {"One": "Eins", "Two": "Zwei"}, {}),
        (
            "a.tsv",
            SUGGESTIONS,
            {"One": "Eins", "Two": "Zwei"},
            {"in another direction": 1},
        ),
        (
            "a.po",
            PO,
            {"Good morning": "Guten Morgen"},
            {"not reviewed": 2, "without a translation": 1, "with plural forms": 1},
        ),
        (
            "a.xlf",
            XLIFF_1,
            {"One": "Eins", "Two": "Zwei", "Three": "Drei", "Four": "Vier"},
            {"not reviewed": 3, "without a translation": 1},
        ),
        ("a.xliff", XLIFF_2, {"One": "Eins", "Two": "Zwei"}, {"not reviewed": 2}),
        (
            "a.tmx",
            TMX,
            {"One": "Eins"},
            {"without a pair in the model's languages, first a.tmx, line 3: no de, only en": 1},
        ),
    ],
    ids=["table", "suggestions", "catalog", "xliff 1.2", "xliff 2", "memory"],
)
def test_only_reviewed_translations_in_the_direction_are_read(
    here: Path, name, content, pairs, skipped
):
    Path(name).write_text(content, encoding="utf-8")
    counts = Counter[str]()
    corrections = [*read_corrections([name], ENGLISH_GERMAN, counts, [])]
    assert {item.source: item.target for item in corrections} == pairs
    assert counts == skipped


def test_a_correction_knows_its_line_and_time(here: Path):
    Path("a.tsv").write_text(SUGGESTIONS, encoding="utf-8")
    *_, last = read_corrections(["a.tsv"], ENGLISH_GERMAN, Counter(), [])
    assert (last.file, last.place, last.time) == ("a.tsv", "line 3", "2026-11-29T10:00:02Z")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", 'One,Eins\n"Two,Zwei\n', "a.csv, line 2: not valid CSV .*; fix it$"),
        ("a.jsonl", '{"en":"One"\n', "a.jsonl, line 1: not an object with strings .*; fix it$"),
        ("a.tmx", FRENCH_TMX, "a.tmx, line 2: no en, only fr, it: no unit .* from en to de$"),
        ("a.tmx", ENTITY_TMX, "a.tmx, line 3: replace the entity &c; with its text: no unit"),
        ("a.po", PO + '\nmsgid "open\nmsgstr "offen"\n', "a.po, line 24: not a line of"),
        ("a.po", "<html>", "a.po, line 1: not a line of a message catalog"),
        ("a.xlf", "<xliff version='1.2'>", "a.xlf, line 1: not well-formed"),
        ("a.xlf", "<html/>", "a.xlf: not XLIFF"),
        ("a.doc", "", "a.doc: unknown format"),
    ],
)
def test_a_malformed_file_is_an_error(here: Path, name, content, message):
    Path(name).write_text(content, encoding="utf-8")
    with pytest.raises(NMTError, match=message):
        list(read_corrections([name], ENGLISH_GERMAN, Counter(), []))


def test_a_malformed_row_is_rejected_with_its_line(here: Path):
    rows = [
        "One\tEins",
        "Two",
        "Three\tDrei\tTrois",
        "Four\tVier\ten\tde\tyesterday",
        "Five\tFünf\ten\tde\t2026-11-29T10:00:00Z",
    ]
    Path("a.tsv").write_text("\n".join(rows), encoding="utf-8")
    rejected: Rejected = []
    usable = [*read_corrections(["a.tsv"], ENGLISH_GERMAN, Counter(), rejected)]
    assert [item.target for item in usable] == ["Eins", "Fünf"]
    assert [(item.place, item.source, reason) for item, reason in rejected] == [
        ("line 2", "Two", "malformed: 1 column instead of source and correction"),
        ("line 3", "Three", "malformed: 3 columns instead of source and correction"),
        ("line 4", "Four", "malformed: the time 'yesterday' of a suggestion"),
    ]


# polib itself, as an oracle that writes catalogs.
def test_lines_of_catalogs_that_other_programs_write(here: Path):
    catalog = polib.POFile(wrapwidth=20)
    catalog.metadata = {"Language": "de"}
    texts = ['a "quoted" word and \\ more \n lines', "x" * 50, "plain"]
    for text in texts:
        entry = polib.POEntry(msgid=text, msgstr=text.upper(), msgctxt="c", comment="note")
        catalog.append(entry)
    catalog.save("a.po")
    read = [*read_corrections(["a.po"], ENGLISH_GERMAN, Counter(), [])]
    assert [item.source for item in read] == [" ".join(text.split()) for text in texts]
