"""Exported models, against transformers: its logits, token ids and translations are ours."""

import random
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from options import translator_options
from torch.nn.functional import cross_entropy

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig, TokenizerConfig
from nmt.errors import NMTError
from nmt.files import ModelDescription, sha256
from nmt.model import Transformer, load_model, write_model_directory
from nmt.plugins.exchange.huggingface import check, write
from nmt.plugins.exchange.transformers_program import exported
from nmt.search import pad_source
from nmt.text import Tokenizer, clean, train_tokenizer
from nmt.translation import load_translator

transformers = pytest.importorskip("transformers")

WORDS = ["ba", "demki", "lo", "nuschi", "ße", "tra", "vorzug", "the", "cat's", "1984", "(so)", "größer,"]
SHAPES = {
    "tied": {},
    "untied": {"tied_embeddings": False},
    "one head": {"heads": 1, "d_model": 10},
    "biases": {"attention_bias": True, "output_bias": True, "activation": "swish"},
    "gelu": {"activation": "gelu"},
    "quick gelu": {"activation": "quick_gelu", "attention_bias": True},
    "uneven stacks": {"encoder_layers": 3, "decoder_layers": 1, "d_model": 24, "d_ff": 7, "heads": 4},
}


def random_lines(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


def config(**settings) -> ModelConfig:
    base = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 48, "heads": 2, "dropout": 0.0}
    return ModelConfig(name="tiny", **{**base, **settings})


def describe(model: ModelConfig, vocabulary_size: int = 300, tokenizer: str = "") -> ModelDescription:
    return ModelDescription(asdict(model), vocabulary_size, "en", "de", tokenizer, {})


def save(folder: Path, model: Transformer, tokenizer: Tokenizer) -> Path:
    """Write a model directory."""
    file = folder / "tokenizer"
    tokenizer.save(file)
    description = describe(model.config, model.vocabulary_size, sha256(file))
    write_model_directory(folder / "model", model, file, description, "")
    return folder / "model"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(random_lines(200), TokenizerConfig(kind="bpe", vocabulary_size=330))


def random_model(tokenizer: Tokenizer, **settings) -> Transformer:
    """One in which every weight matters, those of norms and biases too."""
    torch.manual_seed(2)
    model = Transformer(config(**settings), tokenizer.vocabulary_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory) -> tuple[Path, Path]:
    """A model directory whose model writes words none, one or two times, and its export.

    It never knows how long a translation is to be, so that a search has something to decide.
    """
    torch.manual_seed(1)
    model, draw = Transformer(config(), tokenizer.vocabulary_size), random.Random(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(100):
        lines = [draw.choices(WORDS, k=draw.randint(1, 6)) for _ in range(32)]
        stutters = [[word for word in line for _ in range(draw.choice((0, 1, 1, 1, 2)))] for line in lines]
        sources, targets = (tokenizer.encode([" ".join(line) for line in side]) for side in (lines, stutters))
        target_BT = pad_source([[BOS, *ids] for ids in targets], torch.device("cpu"))
        logits = model(pad_source(sources, torch.device("cpu")), target_BT[:, :-1])
        optimizer.zero_grad()
        cross_entropy(logits.flatten(0, 1), target_BT[:, 1:].flatten(), ignore_index=PAD).backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("huggingface")
    model_folder = save(folder, model.eval(), tokenizer)
    write(model_folder, folder / "export")
    return model_folder, folder / "export"


def ours(folder: Path, lines: list[str], decode: DecodeConfig) -> list[str]:
    translator = load_translator(translator_options(str(folder), device="cpu", decode=decode, protect="none"), print)
    return [translations[0].text for translations in translator.translate(lines)]


def loaded(output: Path):
    return transformers.AutoModelForSeq2SeqLM.from_pretrained(str(output), local_files_only=True).eval()


def loaded_tokenizer(output: Path):
    return transformers.AutoTokenizer.from_pretrained(str(output), local_files_only=True)


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_logits_are_ours(tokenizer, tmp_path, shape):
    folder = save(tmp_path, random_model(tokenizer, **SHAPES[shape]), tokenizer)
    write(folder, tmp_path / "export")
    model, marian = load_model(folder), loaded(tmp_path / "export")
    assert type(marian).__name__ == "MarianMTModel"
    draw = random.Random(3)
    for lengths in ([7, 3, 1], [1], [20, 50, 5, 2]):
        source, target = (
            pad_source([draw.choices(range(UNK + 1, model.vocabulary_size), k=n) for n in ns], torch.device("cpu"))
            for ns in (lengths, lengths[::-1])
        )
        target = torch.cat((torch.full_like(target[:, :1], BOS), target), dim=1)
        results = marian(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target).logits
        real = target != PAD
        torch.testing.assert_close(results[real], model(source, target)[real], atol=1e-4, rtol=1e-4)


def test_logits_are_ours_at_the_last_position(trained):
    folder, output = trained
    marian, model = loaded(output), load_model(folder)
    source = torch.randint(UNK + 1, model.vocabulary_size, (1, marian.config.max_position_embeddings))
    with torch.no_grad():
        results = marian(input_ids=source, decoder_input_ids=source[:, :3]).logits
        torch.testing.assert_close(results, model(source, source[:, :3]), atol=1e-4, rtol=1e-4)


HOSTILE = [
    *("", " ", "   a", "a  b   c ", "a\tb", "\x1ca\x1d", "a\x85b\u2028c", "a\u3000b\xa0c", "a\0b", "##a &quot; x@@ y"),
    *("\u2581", "\u2581a \u2581 \u2581\u2581b\u2581", "\ue000", "\ue0000\ue0001\ue000\u2581", "\u25b8a \u25b8"),
    *("<s>", "a<s>b</s> <pad><unk>", "<0x41>", "a <0xE2><0x96><0x81> b", "\u0120a\u010a", "\ufffd", "\ufeffab\ufeff"),
    *("\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f4\U000e0067", "漢字かな交じり文", "ไทยภาษา", "አማርኛ", "𓀀𓀁"),
    *("e\u0301\u0327 \ufb01 \u2126 \u3300 \uff21", "\ufdd0\uffff\U0010ffff", "x" * 600, "日本" * 100),
]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_token_ids_and_texts_are_ours(kind, tmp_path):
    tokenizer = train_tokenizer(random_lines(200), TokenizerConfig(kind=kind, vocabulary_size=600))
    write(save(tmp_path, random_model(tokenizer), tokenizer), tmp_path / "export")
    theirs = loaded_tokenizer(tmp_path / "export")
    lines = [*random_lines(200, seed=4), *HOSTILE]
    expected = tokenizer.encode([clean(line) for line in lines])
    results = theirs(lines)
    assert set(results) == {"input_ids", "attention_mask"}
    for line, ids, our_ids in zip(lines, results["input_ids"], expected, strict=True):
        assert ids == [*our_ids, EOS], ascii(line)
        assert theirs.decode([BOS, *ids, PAD], skip_special_tokens=True) == clean(line)
    assert len(theirs) == tokenizer.vocabulary_size


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_extra_length": 0}, {"max_length": 4}, {"min_length": 12}, {"no_repeat_ngram_size": 2}],
    ids=str,
)
def test_greedy_translations_are_ours(trained, settings):
    folder, output = trained
    lines = [*random_lines(30, seed=5), "", "  ", "☃ 漢字 <s>"]
    decode = DecodeConfig(beam_size=1, **{"max_extra_length": 20, **settings})
    assert exported(folder, output, decode).translate(lines) == ours(folder, lines, decode)


@pytest.mark.parametrize(
    ("alpha", "max_extra_length", "least"), [(0.0, 20, 27), (0.6, 20, 23), (1.0, 20, 15), (0.6, 0, 15)]
)
def test_most_translations_of_a_beam_are_ours(trained, alpha, max_extra_length, least):
    """The larger alpha is, the more the length penalties differ."""
    folder, output = trained
    lines = random_lines(30, seed=6)
    decode = DecodeConfig(beam_size=4, length_penalty=alpha, max_extra_length=max_extra_length)
    expected = ours(folder, lines, decode)
    results = exported(folder, output, decode).translate(lines)
    assert sum(a == b for a, b in zip(results, expected, strict=True)) >= least
    assert expected != ours(
        folder, lines, DecodeConfig(beam_size=4, length_penalty=alpha + 2, max_extra_length=max_extra_length)
    )


def test_the_card_says_how_to_translate(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained[1])
    _, code, _ = Path("README.md").read_text(encoding="utf-8").split("```")
    exec(code, {})
    [text] = eval(capsys.readouterr().out)
    assert set(text.split()) <= set(WORDS)
    assert text


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"norm": "pre"}, r"model\.norm=pre"),
        ({"d_v": 8}, r"model\.d_v=8"),
        ({"positions": "tensor2tensor"}, r"model\.positions=tensor2tensor"),
        ({"source_vocabulary_size": 7}, r"model\.source_vocabulary_size=7"),
    ],
    ids=str,
)
def test_what_marian_cannot_express_is_refused(tokenizer, tmp_path, settings, named):
    with pytest.raises(NMTError, match=named):
        check(describe(config(**settings)))
    folder = save(tmp_path, random_model(tokenizer, **settings), tokenizer)
    with pytest.raises(NMTError, match=named):
        write(folder, tmp_path / "export")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "tokenizer"]


def test_a_zero_start_is_refused_without_a_vocabulary_of_marian(tokenizer, tmp_path):
    folder = save(tmp_path, random_model(tokenizer, zero_start=True), tokenizer)
    with pytest.raises(NMTError, match=r"model\.zero_start=True"):
        write(folder, tmp_path / "export")


@pytest.mark.parametrize("kind", ["file", "folder", "another model"])
def test_only_an_earlier_export_is_replaced(trained, tmp_path, kind):
    path = tmp_path / "there"
    file = path if kind == "file" else path / ("config.json" if kind == "another model" else "notes")
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"model_type": "marian"}')
    with pytest.raises(NMTError, match="there: exists and is no earlier export"):
        write(trained[0], path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [file]


def test_what_cannot_be_translated_is_named(trained):
    with pytest.raises(NMTError, match=r"line 2: 2002 tokens.* positions end at 1024"):
        exported(*trained, DecodeConfig()).translate(["ba", "x" * 2000])
