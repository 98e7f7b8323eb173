"""Imported models beside the programs that they come from: Marian's own scores, and transformers.

tests/fixtures/marian holds models of Marian, with what Marian made of them; make_fixtures.py there made both.
"""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch

from nmt.config import BOS, PAD, UNK, DecodeConfig
from nmt.plugins.exchange.foreign import word_scores
from nmt.plugins.exchange.marian import read_hub, read_marian
from nmt.search import TorchEngine
from nmt.text import SOURCE, TARGET, load_tokenizer
from nmt.translation import Translator, score_pairs

FIXTURES = Path(__file__).parents[2] / "fixtures" / "marian"
NAMES = ("tied", "separate", "tagged")
SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def translator_of(folder: Path, **settings) -> Translator:
    foreign = read_marian(folder)
    decode = DecodeConfig(length_penalty=foreign.length_penalty, length_penalty_kind="marian", **settings)
    return Translator(TorchEngine([foreign.model()], decode), foreign.tokenizer)


@pytest.mark.parametrize("name", NAMES)
def test_log_probabilities_are_those_of_marian(name):
    """Of sentences with unknown symbols, of 40 words, and of those that its sentencepiece models normalise."""
    folder = FIXTURES / name
    pairs = list(zip(lines_of(folder / "test.src"), lines_of(folder / "test.trg"), strict=True))
    results = score_pairs(translator_of(folder), pairs)
    expected = word_scores((folder / "scores.txt").read_text(), "")
    assert len(expected) == 24
    for ours, marians in zip(results, expected, strict=True):
        assert ours.token_log_probabilities == pytest.approx(marians, abs=2e-5)  # Marian prints five decimals


@pytest.mark.parametrize("name", ["tied", "separate"])
def test_translations_are_those_of_marian(name):
    """All but one, which does not end. With pre-norm layers, Marian's search and its scores do not agree."""
    folder = FIXTURES / name
    results = translator_of(folder, max_extra_length=60).translate(lines_of(folder / "test.src"))
    expected = lines_of(folder / "translations.txt")
    assert [row[0].text for row in results][:-1] == [" ".join(line.split()) for line in expected][:-1]


# A folder as on the hub.


def train_pieces(path: Path, seed: int) -> None:
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(40)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(draw.choices(words, k=8)) + "." for _ in range(300)]),
        model_prefix=str(path),
        vocab_size=70,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    Path(f"{path}.model").rename(path)
    Path(f"{path}.vocab").unlink()


@pytest.fixture(scope="module")
def pieces(tmp_path_factory) -> Path:
    """source.spm, target.spm and the vocab.json of both."""
    folder = tmp_path_factory.mktemp("pieces")
    table = ["</s>", "<unk>", "<s>", ">>deu<<", ">>fra<<"]
    for name, seed in (("source.spm", 1), ("target.spm", 2)):
        train_pieces(folder / name, seed)
        model = sentencepiece.SentencePieceProcessor(str(folder / name))
        table += [piece for piece in map(model.id_to_piece, range(3, len(model))) if piece not in table]
    table.remove("\u2581tu")  # so that sentencepiece knows a piece that the vocabulary lacks
    table.append("<pad>")
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(table)}))
    return folder


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def test_token_ids_are_those_of_transformers(transformers, pieces):
    theirs = transformers.MarianTokenizer(*(str(pieces / name) for name in ("source.spm", "target.spm", "vocab.json")))
    table = json.loads((pieces / "vocab.json").read_text())
    (pieces / "tokenizer.model").write_bytes(ours_of(pieces).content)
    ours = load_tokenizer(pieces / "tokenizer.model")
    names = {number: piece for piece, number in table.items()}
    draw = random.Random(3)
    lines = [" ".join("".join(draw.choices(SYLLABLES, k=2)) for _ in range(draw.randint(0, 9))) for _ in range(200)]
    lines += [
        ">>fra<< kalo mi.",
        ">>deu<<kalo",
        ">>xyz<< kalo",
        "kalo >>fra<< mi",
        ">> kalo <<",
        "tu  \u2167 \uff21\ufb01 \u2603",
        "",
    ]
    lines += ["\u2581ka", "ka\u00a0lo\tmi", "KALO \u200b lo", "\uff5e ka"]
    assert len(set(ours.vocabulary())) == ours.vocabulary_size == len(table) + 1
    for side, options in ((SOURCE, "text"), (TARGET, "text_target")):
        results = ours.encode([ours.clean(line) for line in lines], side)
        for line, ids in zip(lines, results, strict=True):
            *expected, end = theirs(**{options: line})["input_ids"]
            assert end == 0
            pieces_of_ours = ["<unk>" if number == UNK else ours.symbol(number, side) for number in ids]
            assert pieces_of_ours == [names[number] for number in expected], line
    for ids in ours.encode([line for line in lines if "\u2603" not in line], TARGET):
        text = theirs.decode(
            [table[ours.symbol(number)] for number in ids if number != UNK], use_source_tokenizer=False
        )
        assert ours.decode(ids).split() == text.split()


def ours_of(folder: Path):
    from nmt.plugins.exchange.marian_weights import entries_by_number, tokenizer_of

    path = folder / "vocab.json"
    table = entries_by_number(path, json.loads(path.read_text()))
    return tokenizer_of([folder / "source.spm", folder / "target.spm"], [table], tags=True)


SHAPES = {
    "tied": {},
    "relu, untied": {
        "activation_function": "relu",
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
    },
    "source untied": {"activation_function": "gelu", "share_encoder_decoder_embeddings": False},
    "uneven": {
        "encoder_layers": 3,
        "decoder_layers": 1,
        "d_model": 24,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
    },
}


def marian_model(transformers, pieces: Path, folder: Path, **settings):
    """A MarianMTModel with random weights, none of them special, written as on the hub."""
    size = len(json.loads((pieces / "vocab.json").read_text()))
    base = {
        **{"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24},
        **{"encoder_attention_heads": 2, "decoder_attention_heads": 2, "activation_function": "swish"},
        **{"pad_token_id": size - 1, "decoder_start_token_id": size - 1, "scale_embedding": True},
        **{"max_position_embeddings": 128, "vocab_size": size, "decoder_vocab_size": size, "num_beams": 4},
    }
    torch.manual_seed(4)
    model = transformers.MarianMTModel(transformers.MarianConfig(**{**base, **settings})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    for name in ("source.spm", "target.spm", "vocab.json"):
        shutil.copy(pieces / name, folder)
    return model


def without_padding(model) -> None:
    """The row of <pad> as it is on the hub, where the weights were Marian's."""
    with torch.no_grad():
        for part in (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens, model.lm_head):
            part.weight[-1] = 0
        model.final_logits_bias[0, -1] = 0


def drawn(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    source, target = torch.randint(UNK + 1, size, (2, 30), generator=generator)
    return source[None], torch.cat((torch.tensor([BOS]), target))[None]


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_logits_are_those_of_transformers_that_trained_the_model(transformers, pieces, tmp_path, shape):
    theirs = marian_model(transformers, pieces, tmp_path, **SHAPES[shape])
    results = read_hub(tmp_path, None)
    assert results.origin == "trained by transformers"
    model = results.model()
    source, target = drawn(model.vocabulary_size)
    order = torch.tensor(rows(results))
    logits = theirs(input_ids=order[source], decoder_input_ids=order[target]).logits
    torch.testing.assert_close(model(source, target)[..., BOS:], logits[..., order[BOS:]], atol=1e-5, rtol=1e-5)
    assert model(source, target)[..., PAD].isneginf().all()


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_logits_are_those_of_marian_where_marian_trained_the_model(transformers, pieces, tmp_path, shape):
    """transformers computes them, with Marian's sinusoids and its epsilon."""
    theirs = marian_model(transformers, pieces, tmp_path, **SHAPES[shape])
    without_padding(theirs)
    theirs.save_pretrained(tmp_path)
    results = read_hub(tmp_path, None)
    assert results.origin == "trained by marian"
    model = results.model()
    source, target = drawn(model.vocabulary_size)
    order = torch.tensor(rows(results))
    width = model.config.d_model
    angles = np.arange(128)[:, None] * np.exp(-np.arange(width // 2) * np.log(10000) / (width / 2 - 1))
    table = torch.tensor(np.concatenate((np.sin(angles), np.cos(angles)), axis=1))
    for stack in (theirs.model.encoder, theirs.model.decoder):
        stack.embed_positions.weight.copy_(table)
    for module in theirs.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    logits = theirs(input_ids=order[source], decoder_input_ids=order[target]).logits
    torch.testing.assert_close(
        model(source, target)[..., BOS + 1 :], logits[..., order[BOS + 1 :]], atol=1e-5, rtol=1e-5
    )
    assert model(source, target)[..., : BOS + 1].isneginf().all()


def rows(results) -> list[int]:
    from nmt.plugins.exchange.marian_weights import rows_of

    return rows_of(results.tokenizer.tables[-1], has_padding=True)


@pytest.mark.parametrize("trained_by", ["marian", "transformers"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_unchanged_model_comes_back_as_it_was(transformers, pieces, nmt, tmp_path, shape, trained_by):
    theirs = marian_model(transformers, pieces, tmp_path / "hub", **SHAPES[shape])
    if trained_by == "marian":
        without_padding(theirs)
        theirs.save_pretrained(tmp_path / "hub")
    (tmp_path / "sample").write_text("kalo minu peri.\n>>fra<< sotu vawe\n")
    done = nmt("import", "hub", "output=opus", "sample=sample", "decode.max_extra_length=5")
    assert done.code == 0, done.err
    assert f"trained by {trained_by}" in done.out
    assert trained_by == "marian" or float(done.out.split("within ")[1].split()[0]) < 1e-5
    done = nmt("export", "opus", "format=huggingface", "output=back", "sample=sample", "decode.max_extra_length=5")
    assert done.code == 0, done.err
    back = transformers.MarianMTModel.from_pretrained(tmp_path / "back")
    expected, results = theirs.state_dict(), back.state_dict()
    assert expected.keys() == results.keys()
    for name, tensor in expected.items():
        # Only the length of their table of sinusoids may differ.
        assert "embed_positions" in name or torch.equal(results[name], tensor), name
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "hub" / name).read_bytes()
    assert json.loads((tmp_path / "back" / "vocab.json").read_text()) == json.loads((pieces / "vocab.json").read_text())
    assert (back.config.decoder_start_token_id, back.config.eos_token_id) == (theirs.config.pad_token_id, 0)


def test_the_certificate_is_printed_and_in_the_card(transformers, pieces, nmt, tmp_path):
    theirs = marian_model(transformers, pieces, tmp_path / "hub")
    without_padding(theirs)
    theirs.save_pretrained(tmp_path / "hub")
    done = nmt("import", "hub", "output=opus", "source=en", "target=de", "decode.max_extra_length=5")
    assert done.code == 0, done.err
    first, inexact, exact, same, *_ = done.out.splitlines()
    assert first == "opus: hub, trained by marian"
    assert "tokens is that of transformers, whose sinusoids, epsilon and <pad> are not those" in inexact
    assert float(inexact.split("within ")[1].split()[0]) > 1e-4 > 1e-5 > float(exact.split("within ")[1].split()[0])
    assert "of 50 lines" in same
    card = (tmp_path / "opus" / "README.md").read_text()
    for line in (inexact, exact, same):
        assert line in card
    assert "from en to de" in card


@pytest.mark.parametrize("name", NAMES)
def test_an_imported_model_translates_scores_and_is_exported(nmt, tmp_path, monkeypatch, name):
    folder = FIXTURES / name
    files = [f"{key}={folder / file}" for key, file in (("sample", "test.src"), ("reference", "test.trg"))]
    done = nmt("import", str(folder), "output=opus", *files, f"scores={folder / 'scores.txt'}")
    assert done.code == 0, done.err
    assert float(done.out.split("within ")[1].split()[0]) < 2e-5
    assert sorted(path.name for path in (tmp_path / "opus").iterdir()) == [
        *("README.md", "config.json", "model.safetensors", "tokenizer.model")
    ]
    again = nmt("import", str(folder), "output=again", *files, f"scores={folder / 'scores.txt'}")
    assert again.code == 0
    for file in ("README.md", "config.json", "model.safetensors", "tokenizer.model"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "opus" / file).read_bytes()
    short = ["decode.max_extra_length=60"]
    results = nmt("translate", "opus", *short, f"input={folder / 'test.src'}", "device=cpu").out.splitlines()
    if name != "tagged":
        assert results[:-1] == [" ".join(line.split()) for line in lines_of(folder / "translations.txt")][:-1]
    scored = nmt("score", "opus", f"source={folder / 'test.src'}", f"hypothesis={folder / 'test.trg'}", "format=tsv")
    totals = [float(line.split()[0]) for line in lines_of(folder / "scores.txt")]
    assert [float(line.split("\t")[1]) for line in scored.out.splitlines()] == pytest.approx(totals, abs=2e-4)
    pytest.importorskip("ctranslate2")
    done = nmt("export", "opus", "output=ct2", f"sample={folder / 'test.src'}", *short)
    assert done.code == 0, done.err
    assert float(done.out.split("within ")[1].split()[0]) < 1e-4
    assert "24 of 24 lines" in done.out
    out = nmt("translate", "ct2", "engine=ctranslate2", *short, f"input={folder / 'test.src'}").out
    assert out.splitlines() == results
    if name != "tagged":
        line = lines_of(folder / "test.src")[0]
        snippet = (
            (tmp_path / "ct2/README.md").read_text().split("```python")[1].split("```")[0].replace("A line.", line)
        )
        monkeypatch.chdir("ct2")
        alone = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True)
        assert alone.stdout.strip() == nmt("translate", ".", "engine=ctranslate2", f"text={line}").out.strip()
