"""Translation memories: their pairs are those that an independent reader finds."""

import gzip
import tracemalloc
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmt.commands import compose
from nmt.config import DataConfig, NMTError
from nmt.plugins.tmx.tmx import MOST_BYTES
from nmt.text import read_files

HEAD = (
    "<?xml version='1.0' encoding='{}'?>\n"
    "<!DOCTYPE tmx SYSTEM 'tmx14.dtd'>\n"
    "<tmx version='1.4'><header/><body>\n"
)
HEAD_WITH_ENTITY = "<!DOCTYPE tmx [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><tmx><body>"
CODES = {"bpt", "ept", "it", "ph", "ut"}
CODED = "a<ph>{0}<sub>note</sub></ph> b<!-- no --> &amp; c<it pos='begin'>x</it>"
UNITS = [
    (
        "Press <bpt i='1'>&lt;b&gt;</bpt>Start<ept i='1'>&lt;/b&gt;</ept>.",
        "<hi>Start</hi> drücken.",
    ),
    (CODED, "日本 <hi>A<ut>y</ut>B<hi>C</hi></hi>D"),
    ("", "leer"),
]


def memory(
    *units: tuple[str, ...],
    codes: tuple[str, ...] = ("en-US", "de-DE"),
    encoding: str = "utf-8",
) -> bytes:
    """A file with these units; each has one segment per language code."""
    content = HEAD.format(encoding)
    for segments in units:
        variants = ""
        for code, segment in zip(codes, segments, strict=True):
            variants += f"<tuv xml:lang='{code}'><seg>{segment}</seg></tuv>"
        content += f"<tu><prop type='x'>y</prop>{variants}</tu>\n"
    return f"{content}</body></tmx>".encode(encoding)


def config_of(path: Path, **settings: str) -> DataConfig:
    settings = {"source": "en", "target": "de", **settings}
    return DataConfig(name="x", kind="files", train=[str(path)], **settings)


def read(path: Path, **settings: str) -> list[tuple[str, str]]:
    config = config_of(path, **settings)
    return list(read_files(config.train, config, Counter()))


def text_of(element: ElementTree.Element) -> str:
    """The text of a segment without codes."""
    text = element.text or ""
    for part in element:
        if part.tag not in CODES:
            text += text_of(part)
        text += part.tail or ""
    return text


@pytest.mark.parametrize(("encoding", "suffix"), [("utf-8", ""), ("utf-16", ".gz")])
def test_pairs_equal_those_of_elementtree(tmp_path, encoding, suffix):
    content = memory(*UNITS * 300, encoding=encoding)
    path = tmp_path / f"m.tmx{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    expected = []
    for unit in ElementTree.fromstring(content).iter("tu"):
        expected.append(tuple(text_of(segment) for segment in unit.iter("seg")))
    assert read(path) == expected
    assert read(path)[0] == ("Press Start.", "Start drücken.")


def test_default_languages_are_those_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.tmx").write_bytes(memory(("a", "b"), codes=("IT_it", "fr")))
    data = compose("preprocess", ["m.tmx"]).data
    assert data.name == "m"
    assert data.train == ["m.tmx"]
    assert (data.source, data.target) == ("it", "fr")


def test_default_languages_are_those_of_the_first_file(tmp_path, monkeypatch):
    """Their regions matter, because they are the same language otherwise."""
    monkeypatch.chdir(tmp_path)
    Path("m.tmx").write_bytes(memory(("a", "b"), codes=("IT_it", "fr")))
    Path("n.tmx.gz").write_bytes(gzip.compress(memory(("a", "b"), codes=("pt-PT", "pt-BR"))))
    data = compose("preprocess", ["n.tmx.gz", "m.tmx"]).data
    assert data.name == tmp_path.name
    assert data.train == ["n.tmx.gz", "m.tmx"]
    assert (data.source, data.target) == ("pt-pt", "pt-br")


def write_three_languages(path: Path) -> None:
    """Two units in British and American English and in German; the second lacks American English."""
    content = memory(("a", "b", "c"), ("d", "e", "f"), codes=("en-GB", "en-US", "de"))
    american = b"<tuv xml:lang='en-US'><seg>e"
    path.write_bytes(content.replace(american, american.replace(b"en-US", b"ja")))


def test_regions_of_languages(tmp_path):
    path = tmp_path / "t.tmx"
    write_three_languages(path)
    assert read(path, source="de-AT", target="en-GB") == [("c", "a"), ("f", "d")]


def test_a_unit_without_the_language_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("t.tmx")
    write_three_languages(path)
    problem = r"^t\.tmx, line 5: no en-US, only en-gb, ja, de: pass data\.source"
    with pytest.raises(NMTError, match=problem):
        read(path, source="en-US")


def test_units_without_the_language_can_be_skipped(tmp_path):
    path = tmp_path / "t.tmx"
    write_three_languages(path)
    config = config_of(path, source="en-US", errors="skip")
    counts = Counter[str]()
    assert list(read_files(config.train, config, counts)) == [("b", "c")]
    assert counts == {"malformed": 1}


def test_units_with_entities_of_their_own_are_counted_separately(tmp_path):
    path = tmp_path / "m.tmx"
    content = memory(("a&nbsp;b", "c"), ("d", "e"), ("f", "&amp;"))
    path.write_bytes(content)
    config = config_of(path, errors="skip")
    counts = Counter[str]()
    assert list(read_files(config.train, config, counts)) == [("d", "e"), ("f", "&")]
    assert counts == {"with entities": 1}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (memory(*UNITS)[:190], "line 4: not well-formed XML ("),
        (memory(("a", "<b>c")), "line 4: not well-formed XML (Opening and ending tag mismatch"),
        (memory(("a&nbsp;b", "c")), "line 4: replace the entity &nbsp;"),
        (
            memory(("a&a;", "b")).replace(HEAD.format("utf-8").encode(), HEAD_WITH_ENTITY.encode()),
            "replace the entity &a;",
        ),
        (memory(("x" * 2**21, "b")), "a segment is longer than"),
        (
            memory(("a", "b")).replace(b"<tu>", b"<x/>" * MOST_BYTES + b"<tu>"),
            "bytes without a unit",
        ),
        (memory(("<hi>" * 300 + "</hi>" * 300, "b")), "Excessive depth"),
        (b"", "m.tmx: the file is empty"),
        (
            b"<tmx><body>\n<p/>\n<tu>&nbsp;</tu></body></tmx>",
            "m.tmx, line 3: not well-formed XML (Entity 'nbsp' not defined)",
        ),
        # Longer than what is parsed at a time.
        (
            b"<tmx><body>\n<p/>\n<tu>&nbsp;</tu>" + b"<p/>\n" * 9999 + b"</body></tmx>",
            "m.tmx, line 3: not well-formed XML (Entity 'nbsp' not defined)",
        ),
        (b"PK\3\4", "not well-formed"),
    ],
)
def test_a_damaged_or_hostile_file_is_an_error_of_one_line(tmp_path, content, problem):
    (tmp_path / "m.tmx").write_bytes(content)
    with pytest.raises(NMTError) as error:
        read(tmp_path / "m.tmx")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "m.tmx"
    path.write_bytes(memory(*UNITS * 20_000))
    config = DataConfig(name="x", kind="files", train=[str(path)])
    tracemalloc.start()
    pairs = sum(1 for _ in read_files(config.train, config, Counter()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pairs == 60_000
    assert peak < 2**22


@pytest.mark.parametrize(
    ("coded", "text"),
    [
        ("One<ph>&lt;br/&gt;</ph>two", "One two"),
        ("One<ph type='lb'/>two", "One two"),
        ("One<ph>\\n</ph>two", "One two"),
        ("One<it pos='begin'>&lt;/p&gt;&lt;p&gt;</it>two", "One two"),
        ("One<bpt i='1'>&lt;LI class='x'&gt;</bpt>two", "One two"),
        ("One<ept i='1'>&lt;/td&gt;</ept>two", "One two"),
        ("One<ph x='1'>{\\line}</ph>two", "One two"),
        ("One<bpt i='1' type='bold'>&lt;b&gt;</bpt>two", "Onetwo"),
        ("One<ph>{0}</ph>two", "Onetwo"),
        ("One<hi>two</hi>", "Onetwo"),
    ],
)
def test_only_codes_that_break_a_line_separate_words(tmp_path, coded, text):
    path = tmp_path / "m.tmx"
    path.write_bytes(memory((coded, "x")))
    assert read(path) == [(text, "x")]
