"""What a Transformer must learn in no time: to reverse digits."""

import random
from pathlib import Path

import pytest

SIZES = {"train": 9000, "valid": 100, "test": 200}
OPTIONS = [
    "data=files",
    "data.name=digits",
    "data.train=train",
    "data.valid=valid",
    "data.test=test",
    "data.filters.drop_identical=false",
    "tokenizer.kind=bpe",
    "tokenizer.vocabulary_size=300",
    "model=tiny",
    "model.d_model=64",
    "model.d_ff=256",
    "model.dropout=0",
    "model.norm=pre",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "batching.tokens_per_update=700",
    "batching.micro_batches=1",
    "optim.schedule=linear",
    "optim.learning_rate=0.004",
    "optim.factor=1",
    "optim.warmup=30",
    "optim.label_smoothing=0",
    "validation.bleu_sentences=0",
    "checkpoints.every_steps=20",
    "trainer.max_steps=180",
    "trainer.accelerator=cpu",
    "trainer.devices=1",
    "run=run",
    "trainer.precision=32-true",
]


def write_digits() -> None:
    """Three or four digits, and the same backwards; no line occurs twice."""
    generator = random.Random(1)
    lines: dict[str, None] = {}
    while len(lines) < sum(SIZES.values()):
        lines[" ".join(generator.choices("0123456789", k=generator.randint(3, 4)))] = None
    rest = iter(lines)
    for split, size in SIZES.items():
        source = [next(rest) for _ in range(size)]
        Path(f"{split}.en").write_text("".join(f"{line}\n" for line in source))
        Path(f"{split}.de").write_text("".join(f"{line[::-1]}\n" for line in source))


@pytest.mark.slow
def test_reversing_digits_is_learned(nmt):
    write_digits()
    for words in (
        ("preprocess", *OPTIONS),
        ("train", *OPTIONS),
        ("translate", "run", "input=test.en", "output=out"),
    ):
        ended = nmt(*words)
        assert ended.code == 0, ended.err
    hypotheses, references = (Path(name).read_text().splitlines() for name in ("out", "test.de"))
    exact = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    assert exact > 0.95 * len(references)
