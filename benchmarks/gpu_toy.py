"""A toy corpus for the GPU benchmark, prepared in two seconds."""

import random
from pathlib import Path

from nmt.commands import compose
from nmt.preparation import preprocess

SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]


def prepare_toy(folder: Path) -> list[str]:
    """Prepare a corpus in the folder; return the options that train a model with dropout."""
    text = folder / "text"
    text.mkdir(parents=True)
    generator = random.Random(1)
    for split, size in (("train", 2_000), ("valid", 40), ("test", 20)):
        lines = [generator.choices(SYLLABLES, k=generator.randint(2, 9)) for _ in range(size)]
        sources = "".join(" ".join(line) + "\n" for line in lines)
        # The translation is the sentence backwards.
        targets = "".join(" ".join(line[::-1]) + "\n" for line in lines)
        (text / f"{split}.en").write_text(sources)
        (text / f"{split}.de").write_text(targets)
    options = [
        "data=files",
        "data.name=toy",
        "tokenizer.kind=bpe",
        "tokenizer.vocabulary_size=300",
        "workers=1",
        f"prepared={folder / 'prepared'}",
        *(f"data.{split}={text / split}" for split in ("train", "valid", "test")),
        "model=tiny",
        "model.d_model=64",
        "model.d_ff=128",
        "model.heads=2",
        "model.encoder_layers=2",
        "model.decoder_layers=2",
        "optim.warmup=20",
        "batching.tokens_per_update=1600",
        "batching.micro_batches=8",
        "decode=greedy",
        "decode.max_extra_length=5",
        "validation.every_steps=1000000",
        "checkpoints.average=all",
        "trainer.devices=1",
    ]
    preprocess(compose("preprocess", options), lambda words: None)
    return options
