"""Translation memories: the same pairs as an independent reader finds, in constant memory, and nothing executed."""

import gzip
import tracemalloc
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmt.commands import compose
from nmt.config import DataConfig, NMTError
from nmt.plugins.tmx.tmx import LONGEST
from nmt.text import read_files

HEAD = "<?xml version='1.0' encoding='{}'?>\n<!DOCTYPE tmx SYSTEM 'tmx14.dtd'>\n<tmx version='1.4'><header/><body>\n"
CODES = {"bpt", "ept", "it", "ph", "ut"}
CODED = "a<ph>{0}<sub>note</sub></ph> b<!-- no --> &amp; c<it pos='begin'>x</it>"
SEGMENTS = [
    (
        "Press <bpt i='1'>&lt;b&gt;</bpt>Start<ept i='1'>&lt;/b&gt;</ept>.",
        "<hi>Start</hi> drücken.",
    ),
    (CODED, "日本 <hi>A<ut>y</ut>B<hi>C</hi></hi>D"),
    ("", "leer"),
]


def memory(
    *segments: tuple[str, ...], codes: tuple[str, ...] = ("en-US", "de-DE"), encoding: str = "utf-8"
) -> bytes:
    content = HEAD.format(encoding)
    for unit in segments:
        texts = (
            f"<tuv xml:lang='{c}'><seg>{s}</seg></tuv>" for c, s in zip(codes, unit, strict=True)
        )
        content += f"<tu><prop type='x'>y</prop>{''.join(texts)}</tu>\n"
    return f"{content}</body></tmx>".encode(encoding)


def read(
    path: Path, errors: str = "strict", source: str = "en", target: str = "de"
) -> list[tuple[str, str]]:
    config = DataConfig(
        name="x", kind="files", source=source, target=target, train=[str(path)], errors=errors
    )
    read.counts = Counter()  # type: ignore[attr-defined]
    return list(read_files(config.train, config, read.counts))  # type: ignore[attr-defined]


def text_of(element: ElementTree.Element) -> str:
    inside = (("" if part.tag in CODES else text_of(part)) + (part.tail or "") for part in element)
    return (element.text or "") + "".join(inside)


@pytest.mark.parametrize(("encoding", "suffix"), [("utf-8", ""), ("utf-16", ".gz")])
def test_pairs_are_those_of_another_reader(tmp_path, encoding, suffix):
    content = memory(*SEGMENTS * 300, encoding=encoding)
    path = tmp_path / f"m.tmx{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    units = ElementTree.fromstring(content).iter("tu")
    assert read(path) == [tuple(text_of(seg) for seg in unit.iter("seg")) for unit in units]
    assert read(path)[0] == ("Press Start.", "Start drücken.")


def test_languages_are_those_of_the_file_or_chosen_and_a_unit_without_one_is_counted(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("m.tmx").write_bytes(memory(("a", "b"), codes=("IT_it", "fr")))
    Path("n.tmx.gz").write_bytes(gzip.compress(memory(("a", "b"), codes=("pt-PT", "pt-BR"))))
    two = (["n.tmx.gz", "m.tmx"], tmp_path.name, ("pt-pt", "pt-br"))
    for words, name, languages in ((["m.tmx"], "m", ("it", "fr")), two):
        data = compose("preprocess", words).data
        assert (data.name, data.train, (data.source, data.target)) == (name, words, languages)
    three = memory(("a", "b", "c"), ("d", "e", "f"), codes=("en-GB", "en-US", "de"))
    Path("t.tmx").write_bytes(
        three.replace(b"<tuv xml:lang='en-US'><seg>e", b"<tuv xml:lang='ja'><seg>e")
    )
    assert read(Path("t.tmx"), source="de-AT", target="en-GB") == [("c", "a"), ("f", "d")]
    with pytest.raises(
        NMTError, match=r"^t\.tmx, line 5: no en-US, only en-gb, ja, de: pass data\.source"
    ):
        read(Path("t.tmx"), source="en-US")
    assert read(Path("t.tmx"), "skip", source="en-US") == [("b", "c")]
    assert read.counts == {"malformed": 1}


ENTITIES = "<!DOCTYPE tmx [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><tmx><body>"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (memory(*SEGMENTS)[:190], "line 4: not well-formed XML ("),
        (memory(("a", "<b>c")), "line 4: not well-formed XML (Opening and ending tag mismatch"),
        (memory(("a&nbsp;b", "c")), "line 4: replace the entity &nbsp;"),
        (
            memory(("a&a;", "b")).replace(HEAD.format("utf-8").encode(), ENTITIES.encode()),
            "replace the entity &a;",
        ),
        (memory(("x" * 2**21, "b")), "a segment is longer than"),
        (memory(("a", "b")).replace(b"<tu>", b"<x/>" * LONGEST + b"<tu>"), "bytes without a unit"),
        (memory(("<hi>" * 300 + "</hi>" * 300, "b")), "Excessive depth"),
        (b"", "no element found"),
        (b"PK\3\4", "not well-formed"),
    ],
)
def test_a_damaged_or_hostile_file_is_one_line(tmp_path, content, said):
    (tmp_path / "m.tmx").write_bytes(content)
    with pytest.raises(NMTError) as error:
        read(tmp_path / "m.tmx")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_memory_does_not_grow_with_the_file(tmp_path):
    (tmp_path / "m.tmx").write_bytes(memory(*SEGMENTS * 20_000))
    config = DataConfig(name="x", kind="files", train=[str(tmp_path / "m.tmx")])
    tracemalloc.start()
    assert sum(1 for _ in read_files(config.train, config, Counter())) == 60_000
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_codes_that_break_a_line_separate_words_and_other_codes_do_not(tmp_path):
    codes = {
        "<ph>&lt;br/&gt;</ph>": "apart",
        "<ph type='lb'/>": "apart",
        "<ph>\\n</ph>": "apart",
        "<it pos='begin'>&lt;/p&gt;&lt;p&gt;</it>": "apart",
        "<bpt i='1'>&lt;LI class='x'&gt;</bpt>": "apart",
        "<ept i='1'>&lt;/td&gt;</ept>": "apart",
        "<ph x='1'>{\\line}</ph>": "apart",
        "<bpt i='1' type='bold'>&lt;b&gt;</bpt>": "together",
        "<ph>{0}</ph>": "together",
        "<hi>": "together",
    }
    units = [(f"One{code}two" + "</hi>" * (code == "<hi>"), "x") for code in codes]
    (tmp_path / "m.tmx").write_bytes(memory(*units))
    texts = [source for source, _ in read(tmp_path / "m.tmx")]
    assert texts == ["One two" if kind == "apart" else "Onetwo" for kind in codes.values()]
