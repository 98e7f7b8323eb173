"""Firefox's models: import, export, and comparison with Marian and with Firefox's engine."""

import io
import random
import re
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import yaml

from nmt.commands import compose
from nmt.config import DecodeConfig, NMTError, TokenizerConfig
from nmt.data import open_corpus
from nmt.files import foreign_files
from nmt.model import load_model
from nmt.plugins.bergamot import container
from nmt.plugins.bergamot.calibration import scales
from nmt.plugins.bergamot.shortlist import SHORTLIST, sample_pairs, shortlist
from nmt.plugins.bergamot.usage import SPELLED
from nmt.plugins.bergamot.vocabulary import Vocabulary, vocabularies
from nmt.plugins.bergamot.weights import marian_settings, marian_weights
from nmt.plugins.exchange.usage import run_code
from nmt.text import read_tokenizer, train_tokenizer
from nmt.translation import load_translator, score_pairs
from tests.helpers.options import translator_options

SSRU = Path(__file__).parents[2] / "fixtures" / "marian" / "ssru"
SOURCES, TARGETS = ((SSRU / f"test.{side}").read_text().splitlines() for side in ("src", "trg"))
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture
def imported(nmt, tmp_path) -> Path:
    assert nmt("import", str(SSRU), "output=imported", "source=en", "target=de").code == 0
    return tmp_path / "imported"


@pytest.fixture
def prepared(nmt, imported, tmp_path) -> Path:
    """A corpus with the vocabulary of the imported model."""
    for side, lines in (("en", SOURCES), ("de", TARGETS)):
        (tmp_path / f"train.{side}").write_text("\n".join(lines * 4) + "\n")
        (tmp_path / f"valid.{side}").write_text("\n".join(lines) + "\n")
    splits = ("data.valid=valid", "data.test=valid", "data.name=text")
    done = nmt("preprocess", "train.en", "train.de", "init=imported", *splits)
    assert done.code == 0, done.err
    return tmp_path / "data" / "text"


def greedy(model: Path, lines: list[str]) -> list[str]:
    """nmt's greedy translations of whole lines."""
    decode = DecodeConfig(beam_size=1)
    options = translator_options(str(model), device="cpu", decode=decode, split="never")
    return [row[0].text for row in load_translator(options, print).translate(lines)]


@pytest.mark.usefixtures("imported")
def test_recurrent_decoder_scores_as_in_marian():
    """Sentences with unknown symbols, of 40 words, and text that sentencepiece normalizes."""
    translator = load_translator(translator_options("imported", device="cpu"), print)
    scores = score_pairs(translator, list(zip(SOURCES, TARGETS, strict=True)))
    lines = (SSRU / "scores.txt").read_text().splitlines()
    for score, line in zip(scores, lines, strict=True):
        expected = [float(word) for word in line.split(" ||| WordScores= ")[1].split()]
        # Marian prints five decimals.
        assert score.token_log_probabilities == pytest.approx(expected, rel=0, abs=2e-5)


@pytest.mark.usefixtures("imported")
def test_recurrent_decoder_translates_as_in_marian(nmt):
    words = ["imported", "decode.max_extra_length=60", "device=cpu"]
    done = nmt("translate", *words, f"input={SSRU / 'test.src'}")
    expected = (SSRU / "translations.txt").read_text().splitlines()
    # The last translation does not end.
    assert done.out.splitlines()[:-1] == expected[:-1]


@pytest.mark.usefixtures("imported")
def test_ctranslate2_refuses_recurrent_decoder(nmt):
    assert "model.decoder=ssru" in nmt("export", "imported", "output=other").err


@pytest.mark.usefixtures("imported")
def test_recurrent_decoder_has_no_self_attention_to_show(nmt):
    assert nmt("attention", "kalo petu.", "imported", "output=attention.html").code == 0
    assert "Decoder self-attention" not in Path("attention.html").read_text()


def written(model: Path) -> tuple[bytes, list[Vocabulary], dict[str, np.ndarray]]:
    """A model as a container, its vocabularies, and the weights in it."""
    loaded = load_model(model)
    tokenizer = read_tokenizer(model)
    theirs = vocabularies(tokenizer)
    weights = marian_weights(loaded, theirs)
    weights |= scales(loaded, tokenizer.encode(SOURCES), is_shared=True)
    settings = yaml.safe_dump(marian_settings(loaded.config, theirs))
    return container.container(weights, settings), theirs, weights


@pytest.mark.slow
def test_a_container_holds_what_was_written(imported, tmp_path):
    content, _, weights = written(imported)
    (tmp_path / "model.bin").write_bytes(content)
    arrays = container.read_container(tmp_path / "model.bin")
    assert b"dec-cell: ssru" in arrays.pop("special:model.yml").tobytes()
    assert arrays.keys() == weights.keys()
    rounded = {name for name in weights if container.is_rounded(name)}
    # The embedding, its scale, and the matrices of each encoder and decoder layer.
    assert len(rounded) == 1 + 1 + 1 * 6 + 2 * 8
    for name, array in arrays.items():
        step = np.abs(weights[name]).max() / 127 if name in rounded else 0
        assert np.abs(array - weights[name]).max() <= step * 0.5001, name
    version, count, length, kind, dimensions, size = struct.unpack_from("<6Q", content)
    assert (version, count, kind, dimensions) == (1, len(weights) + 1, container.INT8, 2)
    assert (length, size % 256) == (len("Wemb") + 1, 0)


def damaged(content: bytes) -> list[bytes]:
    """Truncated containers, and containers with a wrong number of items or wrong headers."""
    draw = random.Random(5)
    ends = [0, 7, 8, 15, 16, 40, 1000, len(content) - 1]
    ends += [draw.randrange(len(content)) for _ in range(20)]
    results = [content[:end] for end in ends]
    for field in range(2, 2 + 4 * 3):  # the count and the first headers
        begin = 8 * field - 8
        for value in (0, 2**31, 2**63, 2**64 - 1):
            if value or field % 4 == 1:
                number = struct.pack("<Q", value)
                results.append(content[:begin] + number + content[begin + 8 :])
    return results


@pytest.mark.slow
def test_damaged_container_is_refused_on_one_line(imported, tmp_path):
    content, _, _ = written(imported)
    file = tmp_path / "model.bin"
    for number, bad in enumerate(damaged(content)):
        file.write_bytes(bad)
        with pytest.raises(NMTError, match=r"model\.bin: not a readable Firefox model") as error:
            container.read_container(file)
        assert "\n" not in str(error.value), number


def check_readme(export: Path, model: Path) -> None:
    """The share of identical translations in the README is what its own code achieves."""
    text = (export / "README.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    translations = run_code(export, code, "translate(line)", SOURCES)
    same = sum(map(str.__eq__, translations, greedy(model, SOURCES)))
    assert f"{same} of {len(SOURCES)} greedy translations are identical" in text


@pytest.mark.slow
def test_export_can_be_imported(nmt, imported, prepared, tmp_path):
    done = nmt("export", "imported", "format=bergamot", "prepared=data/text")
    assert done.code == 0, done.err
    folder = imported / "bergamot"
    assert {"model.ende.intgemm.alphas.bin", "vocab.ende.spm", "lex.50.50.ende.s2t.bin"} <= {
        file.name for file in folder.iterdir()
    }
    settings = yaml.safe_load((folder / "config.intgemm8bitalpha.yml").read_text())
    assert settings["shortlist"] == ["lex.50.50.ende.s2t.bin", False]
    again = nmt("import", str(folder), "output=again")
    assert again.out == f"again: {folder}, trained by marian\n"
    ours, theirs = (load_model(path).state_dict() for path in (imported, tmp_path / "again"))
    for name, weight in ours.items():
        assert (weight - theirs[name]).abs().max() <= 0.5001 / 127 * weight.abs().max(), name
    # `nmt runs delete` deletes an export with its model.
    assert not [*foreign_files(imported, "run")]


@pytest.mark.slow
@pytest.mark.usefixtures("prepared")
def test_export_compares_firefox_s_engine_with_nmt(nmt, imported):
    pytest.importorskip("fxtranslate")
    done = nmt("export", "imported", "format=bergamot", "prepared=data/text")
    assert f"of {len(SOURCES)} greedy" in done.out
    assert "BLEU" in done.out
    # The engine also rounds activations, so not all translations are the same.
    assert int(done.out.split(" of ")[0].split()[-1]) > len(SOURCES) // 2
    check_readme(imported / "bergamot", imported)


@pytest.mark.slow
@pytest.mark.usefixtures("prepared")
def test_export_keeps_a_given_shortlist(nmt, imported):
    assert nmt("export", "imported", "format=bergamot", "prepared=data/text").code == 0
    shortlist_file = imported / "bergamot" / "lex.50.50.ende.s2t.bin"
    words = [f"shortlist={shortlist_file}", f"sample={SSRU / 'test.src'}", "output=kept"]
    done = nmt("export", "imported", "format=bergamot", *words)
    assert done.code == 0, done.err
    assert Path("kept/lex.50.50.ende.s2t.bin").read_bytes() == shortlist_file.read_bytes()


@pytest.mark.usefixtures("prepared")
def test_export_replaces_only_earlier_exports(nmt, imported):
    folder = imported / "bergamot"
    folder.mkdir()
    (folder / "mine.txt").touch()
    done = nmt("export", "imported", "format=bergamot", "prepared=data/text")
    assert "not an earlier export" in done.err


@pytest.mark.slow
def test_firefox_translates_an_unrounded_model_as_nmt(imported, monkeypatch):
    fxtranslate = pytest.importorskip("fxtranslate")
    monkeypatch.setattr(container, "is_rounded", lambda name: False)
    content, [vocabulary], _ = written(imported)
    pieces = vocabulary.model.SerializeToString()
    engine = fxtranslate.Translator(content, pieces, pieces, None)
    assert [engine.translate(line) for line in SOURCES[:-1]] == greedy(imported, SOURCES[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_vocabulary_of_nmt_becomes_one_of_marian(kind):
    tokenizer = train_tokenizer(SOURCES + TARGETS, TokenizerConfig(kind=kind, vocabulary_size=330))
    [vocabulary] = vocabularies(tokenizer)
    our_ids = vocabulary.our_ids
    content = vocabulary.model.SerializeToString()
    theirs = sentencepiece.SentencePieceProcessor(model_proto=content)
    assert (theirs.eos_id(), theirs.unk_id(), theirs.bos_id(), theirs.pad_id()) == (0, 1, -1, -1)
    assert theirs.vocab_size() % 8 == 0
    for line in (*SOURCES, "  va   \uff11 \ufb01 so\u00a0tu ", "\u4e2d pe\u0301"):
        ids = tokenizer.encode([tokenizer.clean(line)])[0]
        assert [our_ids[id] for id in theirs.encode(line)] == ids, line
        assert theirs.decode([our_ids.index(id) for id in ids]) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_vocabulary_with_tags_is_refused(kind):
    config = TokenizerConfig(kind=kind, vocabulary_size=330)
    tokenizer = train_tokenizer(SOURCES, config, tags=["<2de>"])
    with pytest.raises(NMTError, match="sources with <2de>"):
        vocabularies(tokenizer)


@pytest.mark.parametrize("most_shuffled", [0, 1 << 24])
def test_shortlist_is_counted_from_a_sample_of_all_pairs(toy, most_shuffled, monkeypatch):
    monkeypatch.setattr("nmt.plugins.bergamot.shortlist.MOST_SHUFFLED", most_shuffled)
    monkeypatch.setattr("nmt.plugins.bergamot.shortlist.PAIRS", 20)
    corpus = open_corpus(Path(toy[-1].removeprefix("prepared=")))
    table = corpus.split("train").table
    rows = zip(*(table.column(side).to_pylist() for side in ("source", "target")), strict=True)
    pairs = [*rows]
    places = [pairs.index(pair) for pair in sample_pairs(corpus)]
    assert len(places) == 20
    assert max(places) > len(pairs) / 2
    assert sample_pairs(corpus) == sample_pairs(corpus)


def test_shortlist_has_the_layout_of_firefox():
    content = shortlist([[7, 2], [], [5]], 4, 50)
    magic, checksum, first, best, ends, count = struct.unpack_from("<6Q", content)
    assert (magic, first, best, ends, count) == (SHORTLIST, 4, 50, 4, 3)
    assert struct.unpack_from("<4Q3I", content, 48) == (0, 2, 2, 3, 2, 7, 5)
    assert len(content) == 48 + 4 * 8 + 3 * 4
    expected = 0
    for start in range(16, len(content) - 7, 8):
        [word] = struct.unpack_from("<Q", content, start)
        mixed = word + 0x9E3779B9 + (expected << 6) + (expected >> 2)
        expected = (expected ^ mixed) & 0xFFFFFFFFFFFFFFFF
    assert checksum == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["page=nowhere.tgz", "format=bergamot", "prepared=data/text"],
            "nowhere.tgz: cannot be read",
        ),
        (
            ["page=other.tgz", "format=bergamot", "prepared=data/text"],
            "npm pack @browsermt/bergamot-translator",
        ),
        (["format=bergamot", "precision=int8"], "precision is for format=ctranslate2"),
        (["page=x.tgz"], "format=bergamot"),
        (["format=bergamot", "shortlist=other.tgz"], "not a Firefox shortlist"),
        (["format=bergamot", "shortlist=wide.bin"], "is for a vocabulary of 2 entries"),
        (["format=bergamot"], "prepared=FOLDER"),
        (["format=bergamot", "prepared=data/other"], "another vocabulary"),
    ],
)
def test_mistakes_are_reported_on_one_line(nmt, imported, prepared, options, said):
    with tarfile.open("other.tgz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("package/empty"), io.BytesIO())
    Path("wide.bin").write_bytes(shortlist([[1], []], 4, 50))
    words = (
        "train.en",
        "train.de",
        "data.valid=valid",
        "data.test=valid",
        "data.name=other",
        "tokenizer=bpe4k",
    )
    assert nmt("preprocess", *words).code == 0
    done = nmt("export", "imported", f"sample={SSRU / 'test.src'}", *options)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert said in done.err


def test_import_refuses_wrong_language_code(nmt):
    done = nmt("import", str(SSRU), "output=out", "source=../x", "target=de")
    assert "must be a language code" in done.err


def test_export_refuses_models_of_sentencepiece_with_a_table(word_model):
    tokenizer = read_tokenizer(word_model)
    assert len(tokenizer.models) == 2
    assert len(tokenizer.tables) == 1
    with pytest.raises(NMTError, match=r"vocab\.yml.*experiment=bergamot"):
        vocabularies(tokenizer)


def test_export_refuses_model_of_another_shape(nmt, word_model):
    done = nmt("export", str(word_model), "format=bergamot", "output=out")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "train with experiment=bergamot" in done.err


def test_training_in_minutes_keeps_the_model_of_firefox(prepared):
    config = compose("train", ["data/text", "experiment=bergamot", "minutes=30"])
    assert "model" not in config.minutes_settles
    assert "optim" in config.minutes_settles


def test_readme_code_decodes_bytes_that_fxtranslate_spells():
    names: dict[str, Any] = {"re": re}
    exec(SPELLED, names)
    assert names["spelled"]("a <0xE2><0x82><0xAC>, <0x5B>b") == "a \u20ac, [b"


@pytest.mark.slow
def test_page_translates_without_a_server(nmt, imported, prepared, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    npm = shutil.which("npm")
    if CHROMIUM is None or npm is None:
        pytest.skip("needs Chromium and npm")
    if subprocess.run(
        [npm, "pack", "@browsermt/bergamot-translator@0.4.9"], capture_output=True
    ).returncode:
        pytest.skip("npm cannot download the engine")
    page = f"page={next(tmp_path.glob('*.tgz'))}"
    options = (
        "format=bergamot",
        "prepared=data/text",
        f"sample={SSRU / 'test.src'}",
        "output=out",
        page,
    )
    done = nmt("export", "imported", *options)
    assert done.code == 0, done.err
    with playwright.sync_playwright() as library:
        browser = library.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page()
        requests = list[str]()
        view.on("request", lambda request: requests.append(request.url))
        view.goto((tmp_path / "out" / "translator.html").as_uri())
        playwright.expect(view.get_by_role("status")).to_have_text(
            "Your text stays on this device.", timeout=60_000
        )
        view.get_by_role("textbox", name="Text in English").fill("\n".join(SOURCES[4:7]))
        box = view.get_by_role("textbox", name="Translation into German")
        playwright.expect(box).to_have_value(
            "\n".join(greedy(imported, SOURCES[4:7])), timeout=30_000
        )
        browser.close()
    assert all(request.startswith(("file:", "blob:")) for request in requests)
