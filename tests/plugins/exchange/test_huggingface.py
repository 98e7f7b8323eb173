"""Exported models: the logits, token ids and translations of transformers are ours."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import save_model
from options import translator_options
from torch.nn.functional import cross_entropy

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig, NMTError, TokenizerConfig
from nmt.model import Transformer
from nmt.plugins.exchange.huggingface import write
from nmt.search import pad_source
from nmt.text import Tokenizer, clean, train_tokenizer
from nmt.translation import load_translator

transformers = pytest.importorskip("transformers")

CPU = torch.device("cpu")
WORDS = [
    "ba",
    "demki",
    "lo",
    "nuschi",
    "ße",
    "tra",
    "vorzug",
    "the",
    "cat's",
    "1984",
    "(so)",
    "größer,",
]
SHAPES = {
    "untied": {"tied_embeddings": False},
    "one head": {"heads": 1, "d_model": 10},
    "biases": {"attention_bias": True, "output_bias": True, "activation": "swish"},
    "gelu, uneven": {
        "activation": "gelu",
        "encoder_layers": 3,
        "decoder_layers": 1,
        "d_model": 24,
        "d_ff": 7,
    },
    "quick gelu": {"activation": "quick_gelu", "attention_bias": True},
}


def random_lines(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


def make(tokenizer: Tokenizer, **settings) -> Transformer:
    base = {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "d_model": 32,
        "d_ff": 48,
        "heads": 2,
        "dropout": 0.0,
    }
    torch.manual_seed(2)
    return Transformer(
        ModelConfig(name="tiny", **{**base, **settings}), tokenizer.vocabulary_size
    ).eval()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(random_lines(200), TokenizerConfig(kind="bpe", vocabulary_size=330))


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory) -> tuple[Path, Path]:
    """A model directory and its export; the model writes each word up to two times, so that a search must decide."""
    model, draw = make(tokenizer), random.Random(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(100):
        lines = [draw.choices(WORDS, k=draw.randint(1, 6)) for _ in range(32)]
        stutters = [
            [word for word in line for _ in range(draw.choice((0, 1, 1, 1, 2)))] for line in lines
        ]
        sources, targets = (
            tokenizer.encode([" ".join(line) for line in side]) for side in (lines, stutters)
        )
        target_BT = pad_source([[BOS, *ids] for ids in targets], CPU)
        logits = model(pad_source(sources, CPU), target_BT[:, :-1])
        optimizer.zero_grad()
        cross_entropy(logits.flatten(0, 1), target_BT[:, 1:].flatten(), ignore_index=PAD).backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("huggingface")
    write(save_model(folder / "model", model, tokenizer), folder / "export")
    return folder / "model", folder / "export"


def loaded(output: Path):
    kinds = transformers.AutoModelForSeq2SeqLM, transformers.AutoTokenizer
    model, tokenizer = (kind.from_pretrained(str(output), local_files_only=True) for kind in kinds)
    return model.eval(), tokenizer


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_logits_are_ours(tokenizer, tmp_path, shape):
    """Every weight matters, those of norms and biases too, and there are more positions than the usual ones."""
    model = make(tokenizer, **SHAPES[shape])
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.3)
    write(save_model(tmp_path / "model", model, tokenizer), tmp_path / "export")
    marian, draw = loaded(tmp_path / "export")[0], random.Random(3)
    assert type(marian).__name__ == "MarianMTModel"
    for lengths in ([7, 3, 1], [1], [marian.config.max_position_embeddings - 1, 5, 2]):
        source, target = (
            pad_source([draw.choices(range(UNK + 1, model.vocabulary_size), k=n) for n in ns], CPU)
            for ns in (lengths, [min(n, 20) for n in lengths[::-1]])
        )
        target = torch.cat((torch.full_like(target[:, :1], BOS), target), dim=1)
        results = marian(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target
        ).logits
        real = target != PAD
        torch.testing.assert_close(results[real], model(source, target)[real], atol=2e-4, rtol=1e-4)


HOSTILE = [
    *(
        "",
        " ",
        "   a",
        "a  b   c ",
        "a\tb",
        "\x1ca\x1d",
        "a\x85b\u2028c",
        "a\u3000b\xa0c",
        "a\0b",
        "##a &quot; x@@ y",
    ),
    *(
        "\u2581",
        "\u2581a \u2581 \u2581\u2581b\u2581",
        "\ue000",
        "\ue0000\ue0001\ue000\u2581",
        "\u25b8a \u25b8",
    ),
    *(
        "<s>",
        "a<s>b</s> <pad><unk>",
        "<0x41>",
        "a <0xE2><0x96><0x81> b",
        "\u0120a\u010a",
        "\ufffd",
        "\ufeffab\ufeff",
    ),
    *(
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f4\U000e0067",
        "漢字かな交じり文",
        "ไทยภาษา",
        "አማርኛ",
        "𓀀𓀁",
    ),
    *(
        "e\u0301\u0327 \ufb01 \u2126 \u3300 \uff21",
        "\ufdd0\uffff\U0010ffff",
        "x" * 600,
        "日本" * 100,
    ),
]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_token_ids_and_texts_are_ours(kind, tmp_path):
    tokenizer = train_tokenizer(random_lines(200), TokenizerConfig(kind=kind, vocabulary_size=600))
    write(save_model(tmp_path / "model", make(tokenizer), tokenizer), tmp_path / "export")
    theirs, lines = loaded(tmp_path / "export")[1], [*random_lines(200, seed=4), *HOSTILE]
    expected, results = tokenizer.encode([clean(line) for line in lines]), theirs(lines)
    assert set(results) == {"input_ids", "attention_mask"}
    for line, ids, our_ids in zip(lines, results["input_ids"], expected, strict=True):
        assert ids == [*our_ids, EOS], ascii(line)
        assert theirs.decode([BOS, *ids, PAD], skip_special_tokens=True) == clean(line)
    assert len(theirs) == tokenizer.vocabulary_size


@pytest.mark.parametrize(("beam_size", "least"), [(1, 12), (4, 8)])
def test_translations_are_ours(trained, beam_size, least):
    """By the search that is exported; of a beam most are, as the length penalties differ."""
    folder, output = trained
    model, tokenizer = loaded(output)
    lines = [*random_lines(11, seed=5), "☃ 漢字 <s>"]
    options = translator_options(
        str(folder),
        device="cpu",
        decode=DecodeConfig(beam_size=beam_size, max_extra_length=20),
        protect="none",
    )
    ours = [row[0].text for row in load_translator(options, print).translate(lines)]
    theirs = []
    for line in lines:
        ids = tokenizer(line, return_tensors="pt")["input_ids"]
        beam = (
            {"num_beams": 1, "length_penalty": None, "early_stopping": None}
            if beam_size == 1
            else {}
        )
        tokens = model.generate(ids, max_length=ids.shape[1] + 21, **beam)
        theirs.append(" ".join(tokenizer.decode(tokens[0], skip_special_tokens=True).split()))
    assert sum(a == b for a, b in zip(ours, theirs, strict=True)) >= least


LOOP = """
import json
import sys

assert not [name for name in sys.modules if name.partition(".")[0] == "nmt"]
json.dump([translate(line) for line in json.load(sys.stdin)], sys.stdout)
"""


def by_readme(export: Path, lines: list[str]) -> list[str]:
    """Translations by the code in the README, in a process without nmt."""
    [code] = re.findall(r"```python\n(.*?)```", (export / "README.md").read_text(), flags=re.S)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + LOOP],
        cwd=export,
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    # The first line is the translation of the code's example.
    example, results = done.stdout.split("\n")
    assert set(example.split()) <= set(WORDS)
    return json.loads(results)


def test_the_code_of_the_readme_translates_as_it_says(trained, nmt, tmp_path):
    folder, export = trained
    lines = [
        *random_lines(30, seed=6),
        "",
        " \u00ad ",
        "  the\u00a0 cat's\t(so) ",
        " ".join(WORDS[:6]),
    ]
    (tmp_path / "sample").write_text("".join(f"{line}\n" for line in lines))
    words = ("split=never", "protect=none", "engine=torch", "device=cpu")
    done = nmt("translate", f"run={folder}", *words, "input=sample")
    assert done.code == 0, done.err
    expected = done.out.split("\n")[:-1]
    results = by_readme(export, lines)
    assert sum(map(str.__eq__, results, expected)) >= 30, [*zip(results, expected, strict=True)]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"norm": "pre"}, r"model\.norm=pre"),
        ({"d_v": 8}, r"model\.d_v=8"),
        ({"positions": "tensor2tensor"}, r"model\.positions=tensor2tensor"),
        ({"zero_start": True}, r"model\.zero_start=true"),
    ],
    ids=str,
)
def test_what_marian_cannot_express_is_refused(tokenizer, tmp_path, settings, named):
    with pytest.raises(NMTError, match=named):
        write(
            save_model(tmp_path / "model", make(tokenizer, **settings), tokenizer),
            tmp_path / "export",
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.spm"]
