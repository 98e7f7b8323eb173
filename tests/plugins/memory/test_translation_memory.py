"""Lines that are in a translation memory, and lines that are similar to its entries."""

import gzip
import json
from pathlib import Path

import pytest

import nmt
from nmt.commands import COMMANDS, compose
from nmt.config import NMTError
from nmt.plugins.memory.pairing import details_of_line, paired
from nmt.translation import Direction, load_translator, what_affects_output

LINES = ["va so tu pe mika.", "mika nu nu pe.", "", "va we ka"]
UNIT = '<tu {date}><tuv xml:lang="{one}"><seg>{source}</seg></tuv><tuv xml:lang="{other}"><seg>{target}</seg></tuv></tu>'


def run(model: Path, folder: Path, lines: list[str], *words: str) -> bytes:
    """The output of `nmt translate`."""
    source = folder / "in.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    output = folder / "out"
    options = [f"run={model}", f"input={source}", f"output={output}", "overwrite=true", *words]
    COMMANDS["translate"].run(compose("translate", options))
    return output.read_bytes()


def memory_file(folder: Path, *pairs: tuple[str, str], name: str = "memory.tsv") -> Path:
    path = folder / name
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return path


def tmx(folder: Path, *rows: tuple[str, str, str, str, str]) -> Path:
    """A file whose units have these languages, texts, and attributes with dates."""
    units = ""
    for one, source, other, target, date in rows:
        units += UNIT.format(one=one, source=source, other=other, target=target, date=date)
    path = folder / "memory.tmx"
    path.write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>')
    return path


@pytest.mark.slow
@pytest.mark.parametrize("format", ["text", "tsv", "jsonl"])
def test_a_memory_without_matches_changes_no_byte(word_model, tmp_path, format):
    memory = memory_file(tmp_path, ("something else", "etwas anderes"))
    usual = run(word_model, tmp_path, LINES, f"format={format}", "engine=torch")
    words = (f"format={format}", "engine=torch", f"memory={memory}")
    assert run(word_model, tmp_path, LINES, *words) == usual


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_an_exact_line_gets_the_target_of_the_memory(word_model, tmp_path, capsys, engine):
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    memory = memory_file(tmp_path, (" mika  nu nu pe.", "Aus dem  Speicher!"), ("va we ka", "x"))
    usual = run(word_model, tmp_path, LINES, f"engine={engine}").decode().splitlines()
    words = (f"engine={engine}", f"memory={memory}", "decode.n_best=2", "format=jsonl")
    output = run(word_model, tmp_path, LINES, *words)
    first, second, blank, last = map(json.loads, output.splitlines())
    assert first["translations"][0]["text"] == usual[0]
    assert "memory" not in first
    assert "memory" not in blank
    # No second translation: the memory has one target.
    assert [row["text"] for row in second["translations"]] == ["Aus dem Speicher!"]
    assert second["translations"][0]["log_probability"] == 0.0
    entry = {"source": "mika nu nu pe.", "target": "Aus dem Speicher!", "score": 1.0}
    assert second["memory"] == {"match": "exact", "entries": [entry]}
    assert last["memory"]["match"] == "exact"
    assert "nmt: 2 lines: translated from the translation memory" in capsys.readouterr().err


def test_similar_entries_are_listed_but_not_used(word_model, tmp_path, capsys):
    pairs = [("va so tu pe MIKA", "one"), ("va so tu pe ka", "two"), ("so tu", "three")]
    memory = memory_file(tmp_path, *pairs)
    usual = run(word_model, tmp_path, LINES[:1], "format=jsonl", "engine=torch")
    output = run(
        word_model, tmp_path, LINES[:1], f"memory={memory}", "format=jsonl", "engine=torch"
    )
    record = json.loads(output)
    match = record.pop("memory")
    assert record == json.loads(usual)
    assert match["match"] == "fuzzy"
    scores = [(entry["target"], entry["score"]) for entry in match["entries"]]
    assert scores == [("one", 0.99), ("two", 0.8)]
    message = "line 1: the translation memory has a similar entry: 'va so tu pe MIKA' (99%)"
    assert message in capsys.readouterr().err
    words = (f"memory={memory}", "memory_minimum=1", "format=jsonl", "engine=torch")
    assert run(word_model, tmp_path, LINES[:1], *words) == usual


def test_sentences_of_a_line_are_found_unless_lines_are_not_split(word_model, tmp_path):
    line = "Va so tu pe mika. Mika nu nu pe. Va we ka."
    memory = memory_file(tmp_path, ("Mika nu nu pe.", "Aus dem Speicher."))
    alone = [
        run(word_model, tmp_path, [text]).decode() for text in ("Va so tu pe mika.", "Va we ka.")
    ]
    output = run(word_model, tmp_path, [line], f"memory={memory}", "format=jsonl")
    record = json.loads(output)
    [best] = record["translations"]
    assert best["text"] == f"{alone[0].strip()} Aus dem Speicher. {alone[1].strip()}"
    assert record["memory"]["match"] == "sentences"
    # The details still count the words of the whole line.
    assert len(best["word_log_probabilities"]) == len(best["text"].split())
    assert max(source for source, _ in best["alignment"]) >= 9
    ends = best["tokens"].count("</s>") + 1
    assert len(best["token_log_probabilities"]) == len(best["tokens"]) + ends - best[
        "tokens"
    ].count("</s>")
    never = run(word_model, tmp_path, [line], f"memory={memory}", "split=never")
    assert never == run(word_model, tmp_path, [line], "split=never")


def test_only_sentences_that_the_model_translated_count_in_the_probability(word_model, tmp_path):
    memory = memory_file(tmp_path, ("Mika nu nu pe.", "Aus dem Speicher."), ("Va ka.", "Das."))
    model = nmt.load(word_model, memory=str(memory), engine="torch", threads=1)
    [[alone], [mixed], [remembered]] = model.explain(
        ["Va so tu pe mika.", "Va so tu pe mika. Mika nu nu pe.", "Va ka. Mika nu nu pe."]
    )
    assert mixed.tokens == alone.tokens > 1
    assert mixed.log_probability == pytest.approx(alone.log_probability, abs=1e-4)
    assert not mixed.is_from_memory
    # No sentence is left for the model.
    assert remembered.text == "Das. Aus dem Speicher."
    assert remembered.is_from_memory


def test_an_entry_that_lacks_a_placeholder_is_not_used(word_model, tmp_path, capsys):
    memory = memory_file(
        tmp_path, ("va %s so", "eins"), ("tu %s", "%s zwei"), ("Va %d ka.", "Zwei %s."), ("so", "x")
    )
    lines = ["va %s so", "tu %s", "Mika nu nu pe. Va %d ka.", "so"]
    usual = run(word_model, tmp_path, lines).decode().splitlines()
    with_memory = run(word_model, tmp_path, lines, f"memory={memory}").decode().splitlines()
    assert with_memory == [usual[0], "%s zwei", usual[2], "x"]
    assert "has other placeholders or protected items and was not used" in capsys.readouterr().err
    catalog = tmp_path / "a.po"
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    catalog.write_text(f'{header}#, c-format\nmsgid "va %s so"\nmsgstr ""\n')
    output = tmp_path / "b.po"
    words = [f"run={word_model}", f"input={catalog}", f"output={output}", f"memory={memory}"]
    COMMANDS["translate"].run(compose("translate", words))
    assert 'msgstr ""' not in output.read_text().split("c-format")[1]


def test_an_entry_with_other_placeholders_or_protected_items_is_not_used(word_model, tmp_path):
    pairs = [
        ("so %s tu", "%s eins %s"),
        ("so ACME-12 tu", "zwei ACME"),
        ("so http://a.org/x tu", "drei"),
        ("so `x` tu", "vier"),
        ("so tu", "fünf {name}"),
        ("so $10 tu", "Zehn Dollar"),
        ("so 12:30 tu", "halb eins"),
        ("so 2024-05-01 tu", "am 1. Mai 2024"),
        ("va ACME-12", "ACME-12 ja"),
        ("va 5 kg", "5 kg ja"),
        ("Va 12:30.", "Halb eins."),
    ]
    memory = memory_file(tmp_path, *pairs)
    protect = ["usual", "ACME-[0-9]+"]
    model = nmt.load(word_model, memory=str(memory), protect=protect, engine="torch", threads=1)
    rows = [best for [best] in model.explain([source for source, _ in pairs])]
    matches = [best.memory.match for best in rows]
    assert matches == ["fuzzy"] * 5 + ["exact"] * 6
    # The entries that are not used are listed.
    assert rows[0].memory.entries[0].target == "%s eins %s"
    flagged = ["protected" in best.flags for best in rows[5:]]
    assert flagged == [True, True, True, False, False, True]
    # Without the pattern, the name is a word.
    [best] = model.explain("so ACME-12 tu", protect=["usual"])
    assert best.text == "zwei ACME"
    # A flag for a sentence is one for its line.
    [best] = model.explain("Mika nu nu pe. Va 12:30.")
    assert best.memory.match == "sentences"
    assert "protected" in best.flags


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["po", "json", "xlf"])
def test_no_message_is_left_out_because_of_the_memory(word_model, tmp_path, kind):
    contents = {
        "po": '#, c-format\nmsgid "so %s tu"\nmsgstr ""\n',
        "json": '{"a": "so %s tu"}',
        "xlf": '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file '
        'original="a" source-language="en" target-language="de" datatype="plaintext"><body>'
        '<trans-unit id="1"><source>so %s tu</source></trans-unit></body></file></xliff>',
    }
    memory = memory_file(tmp_path, ("so %s tu", "%s eins %s"))
    document = tmp_path / f"a.{kind}"
    document.write_text(contents[kind])
    usual = tmp_path / f"usual.{kind}"
    output = tmp_path / f"out.{kind}"
    words = [f"run={word_model}", f"input={document}", "engine=torch"]
    COMMANDS["translate"].run(compose("translate", [*words, f"output={usual}"]))
    COMMANDS["translate"].run(
        compose("translate", [*words, f"output={output}", f"memory={memory}"])
    )
    assert output.read_bytes() == usual.read_bytes() != document.read_bytes()


XLIFF_OF_NUMBERS = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" '
    'source-language="en" target-language="de" datatype="plaintext"><body>'
    '<trans-unit id="1"><source>so 5 kg tu</source></trans-unit>'
    '<trans-unit id="2"><source>va we ka</source></trans-unit></body></file></xliff>'
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"a": "so 5 kg tu", "b": "va we ka"}'),
        ("a.xlf", XLIFF_OF_NUMBERS),
        ("a.properties", "a=so 5 kg tu\nb=va we ka\n"),
        (
            "a.xcstrings",
            '{"sourceLanguage":"en","version":"1.0","strings":{"so 5 kg tu":{},"va we ka":{}}}',
        ),
    ],
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_notices_count_only_what_a_document_has(
    word_model, tmp_path, capsys, name, content, is_folder
):
    memory = memory_file(
        tmp_path, ("so 5 kg tu", "drei und vier"), ("va we ka", "Aus dem Speicher")
    )
    folder = tmp_path / "documents"
    folder.mkdir()
    document = folder / name
    document.write_text(content)
    source = folder if is_folder else document
    output = tmp_path / "translated" if is_folder else tmp_path / f"translated-{name}"
    words = [f"run={word_model}", f"input={source}", f"output={output}", f"memory={memory}"]
    COMMANDS["translate"].run(compose("translate", [*words, "source=en", "target=de"]))
    errors = capsys.readouterr().err
    written = (output / name if is_folder else output).read_text()
    assert "Aus dem Speicher" in written
    assert "drei" not in written
    assert "'va we ka': translated from the translation memory" in errors
    assert "'so 5 kg tu': translated" not in errors
    assert "lines: translated from" not in errors
    assert "check the translation" not in errors
    assert "'so 5 kg tu': left untranslated, because the translation memory has other num" in errors
    assert "correct the entry: 'drei und vier'" in errors
    assert "the model lost" not in errors


def test_targets_have_no_control_characters(word_model, tmp_path):
    memory = memory_file(tmp_path, ("so tu", "e\0in\x1b[31m\x07s\uffff\u200d!"))
    assert run(word_model, tmp_path, ["so tu"], f"memory={memory}") == "ein[31ms\u200d!\n".encode()


def test_entries_with_entities_are_named_as_such(word_model, tmp_path, capsys):
    path = tmx(tmp_path, ("en", "so tu", "de", "alt", ""), ("en", "so tu", "de", "neu &co;", ""))
    declared = f'<!DOCTYPE tmx [<!ENTITY co "ACME">]>{path.read_text()}'
    path.write_text(declared)
    assert run(word_model, tmp_path, ["so tu"], f"memory={path}") == b"alt\n"
    errors = capsys.readouterr().err
    assert "ignoring 1 entry with XML entities" in errors
    assert "without a pair" not in errors


def test_the_newest_target_counts_and_languages_select_the_pairs(word_model, tmp_path, capsys):
    path = tmx(
        tmp_path,
        ("de-DE", "neu", "en-US", "so tu", 'changedate="20240131T120000Z"'),
        ("en", "so tu", "de", "alt", 'creationdate="20230131T120000Z"'),
        ("en", "so tu", "de", "ohne Datum", ""),
        ("en", "so tu", "fr", "français", 'changedate="20250131T120000Z"'),
    )
    assert run(word_model, tmp_path, ["so tu"], f"memory={path}") == b"neu\n"
    assert "1 entry without a pair of English (en) and German (de)" in capsys.readouterr().err
    # A later file replaces the entries of those before it.
    later = memory_file(tmp_path, ("so tu", "eins"), ("so tu", "zwei"))
    words = f"memory=[{path},{later}]"
    assert run(word_model, tmp_path, ["so tu"], words) == b"zwei\n"
    assert run(word_model, tmp_path, ["so tu"], f"memory=[{later},{path}]") == b"neu\n"


def test_two_files_and_compressed_files_are_memories(word_model, tmp_path):
    (tmp_path / "m.en").write_text("so tu\n")
    (tmp_path / "m.de").write_text("eins\n")
    with gzip.open(tmp_path / "n.jsonl.gz", "wt") as file:
        file.write(json.dumps({"en": "so tu", "de": "zwei"}) + "\n")
    for entry, target in (("m", "eins"), ("m.en:{0}/m.de", "eins"), ("n.jsonl.gz", "zwei")):
        words = f"memory={tmp_path}/{entry.format(tmp_path)}"
        assert run(word_model, tmp_path, ["so tu"], words).decode().strip() == target


def test_an_edited_memory_is_another_identity(word_model, tmp_path):
    memory = memory_file(tmp_path, ("so tu", "eins"))
    config = compose("translate", [f"run={word_model}", f"memory={memory}"])
    before = what_affects_output(config)
    assert (
        before["memory"]
        != what_affects_output(compose("translate", [f"run={word_model}"]))["memory"]
    )
    memory.write_text("so tu\tzwei\n")
    after = what_affects_output(config)
    changed = [key for key in after if after[key] != before[key]]
    assert changed == ["memory"]


def test_tables_with_a_header_and_with_more_columns(word_model, tmp_path, capsys):
    (tmp_path / "m.csv").write_text("source,target\nso tu,eins\n")
    rows = [
        f"{source}\ten\tde\t2026-11-29T21:58:30Z\n" for source in ("va we ka\tzwei", "va\tdrei")
    ]
    (tmp_path / "n.tsv").write_text("".join(rows))
    words = f"memory=[{tmp_path}/m.csv,{tmp_path}/n.tsv]"
    assert run(word_model, tmp_path, ["so tu", "va we ka"], words) == b"eins\nzwei\n"
    messages = capsys.readouterr().err
    assert "without a pair" not in messages
    # `nmt translate` has no such option.
    assert "data.columns" not in messages


def test_a_memory_that_cannot_be_used_is_refused(word_model, tmp_path):
    (tmp_path / "lonely.en").write_text("so tu\n")
    (tmp_path / "a.docx").write_text("so tu")
    for words, message in (
        (f"memory={tmp_path}/lonely.en", "lonely.de, the other one of two parallel files, is"),
        (f"memory={tmp_path}/lonely", "lonely.de, the other one of two parallel files, is"),
        (f"memory={tmp_path}", "is a folder; name a file of pairs"),
        (f"memory={tmp_path}/a.docx", r".docx is not a format of memories; name a file of pairs"),
        (f"memory={tmp_path}/no.tmx", "no such file; name a file of pairs"),
        (f"memory={tmx(tmp_path, ('en', 'a', 'fr', 'b', ''))}", "contains no pair of the model's"),
    ):
        with pytest.raises(NMTError, match=message):
            run(word_model, tmp_path, ["so tu"], words)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.tsv", b"a\tb\nso tu\tZw\xe9i.\n", "m.tsv, line 2: invalid UTF-8 at byte 9"),
        ("m.jsonl", b'{"en": "a", "de": "b"}\n\n{"en": "x", \n', "m.jsonl, line 3: not JSON"),
        ("m.jsonl", b'{"en": "a", "de": "b"}\n[1]\n', "m.jsonl, line 2: not a JSON object"),
    ],
)
def test_a_damaged_line_is_an_error(word_model, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NMTError, match=message):
        run(word_model, tmp_path, ["so tu"], f"memory={tmp_path}/{name}")


def test_entries_without_a_pair_are_counted(word_model, tmp_path, capsys):
    lines = ['{"en": "so tu", "de": "eins"}', '{"en": "a"}', '{"fr": "b", "de": "c"}', ""]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    assert run(word_model, tmp_path, ["so tu"], f"memory={tmp_path}/m.jsonl") == b"eins\n"
    assert "2 entries without a pair of English (en) and German (de)" in capsys.readouterr().err


def test_rows_with_too_many_columns_are_counted(word_model, tmp_path, capsys):
    path = tmp_path / "m.tsv"
    path.write_text("so tu\teins\nva we\tzwei\nka\tdrei\tvier\n")
    assert run(word_model, tmp_path, ["so tu"], f"memory={path}") == b"eins\n"
    messages = capsys.readouterr().err
    assert "ignoring 1 row with another number of columns than most rows" in messages
    assert "without a pair" not in messages


def test_lines_with_a_tag_have_the_memory_of_their_direction(tagged_model, tmp_path):
    path = tmx(
        tmp_path, ("en", "so tu", "de", "deutsch", ""), ("en", "so tu", "fr", "français", "")
    )
    config = compose("translate", [f"run={tagged_model}", f"memory={path}"])
    translator = load_translator(config.translator, lambda notice: None)
    rows = translator.translate([">>fra<< so tu", ">>deu<< so tu"])
    assert [row[0].text for row in rows] == ["français", "deutsch"]
    table = memory_file(tmp_path, ("so tu", "eins"))
    with pytest.raises(NMTError, match="does not name its languages"):
        run(tagged_model, tmp_path, ["so tu"], f"memory={table}", "target=deu")


def test_a_prefix_is_kept(word_model, tmp_path):
    memory = memory_file(tmp_path, ("so tu", "eins"), ("va we ka", "551 zwei"))
    words = (f"memory={memory}", "target_prefix=551")
    first, second = run(word_model, tmp_path, ["so tu", "va we ka"], *words).decode().splitlines()
    assert first.startswith("551")
    assert first != "eins"
    assert second == "551 zwei"


def test_segments_of_a_document_come_from_the_memory(word_model, tmp_path, capsys):
    memory = memory_file(tmp_path, ("so tu", "eins"), ("va we ka", "zwei Wörter"))
    source = tmp_path / "page.html"
    source.write_text("<p>so tu</p><p>va <b>we</b> ka</p>")
    output = tmp_path / "page.de.html"
    words = [f"run={word_model}", f"input={source}", f"output={output}", f"memory={memory}"]
    COMMANDS["translate"].run(compose("translate", words))
    text = output.read_text()
    assert "<p>eins</p>" in text
    # Around a part of a sentence, markup encloses some of the words, and no word is lost.
    assert text.count("<b>") == 1
    assert "zwei Wörter" in text.replace("<b>", "").replace("</b>", "")
    summary = "2 lines: translated from the translation memory: segments 1 ('so tu') and 2 ("
    assert summary in capsys.readouterr().err


SENTENCES = [
    ("The house is old.", "Das Haus ist NEU."),
    ("The dog sleeps there.", "Dort drüben, genau dort, SCHLÄFT der Hund."),
    ("Open it.", "Machen Sie es jetzt bitte AUF."),
    ("Go in. Sit down.", "Jetzt gehen wir alle hinein. Setz dich."),
]
HOUSE, DOG, OPEN, _ = (target for _, target in SENTENCES)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("The house is old.<br>The dog sleeps there.", f"{HOUSE}<br>{DOG}"),
        ("<b>Open it.</b> The house is old.", f"<b>{OPEN}</b> {HOUSE}"),
        ('The dog sleeps there. <a href="x">Open it.</a>', f'{DOG} <a href="x">{OPEN}</a>'),
        (
            "<b>The dog sleeps there.</b><br><i>The house is old.</i>",
            f"<b>{DOG}</b><br><i>{HOUSE}</i>",
        ),
        (
            "<em>The house is old. Open it.</em> The dog sleeps there.",
            f"<em>{HOUSE} {OPEN}</em> {DOG}",
        ),
        # One entry for the whole line.
        ("Go in.<br><i>Sit down.</i>", "Jetzt gehen wir alle hinein.<br><i>Setz dich.</i>"),
    ],
)
def test_markup_encloses_the_translations_of_its_sentences(word_model, tmp_path, html, expected):
    memory = memory_file(tmp_path, *SENTENCES)
    source = tmp_path / "page.html"
    source.write_text(f"<p>{html}</p>")
    output = tmp_path / "page.de.html"
    words = [f"run={word_model}", f"input={source}", f"output={output}", f"memory={memory}"]
    COMMANDS["translate"].run(compose("translate", [*words, "engine=torch"]))
    assert output.read_text() == f"<p>{expected}</p>"


def test_words_of_the_memory_are_paired_by_their_places_in_each_sentence():
    # Each word of both sides has a partner, and the first and the last words are pairs.
    assert paired(range(2, 4), range(5, 8)) == [(2, 5), (2, 6), (3, 7)]
    assert paired(range(3), range(1)) == [(0, 0), (1, 0), (2, 0)]
    assert paired(range(0), range(3)) == []
    direction = Direction("en", "de")
    details = details_of_line("Go in. Sit.", "Los. Setz dich hin.", direction)
    assert details.alignment == [(0, 0), (1, 0), (2, 1), (2, 2), (2, 3)]
    # With other numbers of sentences, the line is paired as a whole.
    details = details_of_line("Go in. Sit.", "Los und hinein jetzt", direction)
    assert [target for _, target in details.alignment] == [0, 1, 2, 3]


def test_python_has_the_memory_and_its_matches(word_model, tmp_path):
    memory = memory_file(tmp_path, ("so tu", "eins"), ("va so tu pe ka", "zwei"))
    model = nmt.load(word_model, memory=str(memory))
    assert model.translate("so tu") == "eins"
    [best] = model.explain("so tu")
    assert best.memory
    assert best.memory.match == "exact"
    [similar] = model.explain("va so tu pe mika")
    assert similar.memory
    assert similar.memory.entries[0].target == "zwei"
    assert model.translate("so tu", memory=[]) != "eins"
    assert model.translate("so tu", memory=memory) == "eins"
