"""Train a small Pegasus with transformers' Seq2SeqTrainer for some processor time, or translate with it; for race.py.

    python benchmarks/race_transformers.py train FOLDER MODEL SEED SECONDS RATE
    python benchmarks/race_transformers.py translate MODEL IDS OUTPUT

FOLDER contains train.source and train.target, with one sentence of token ids per line, and marian/vocab.yml.
"""

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from peers_transformers import BOS, EOS, PAD, arguments, collate, padded, read, read_corpus, sizes
from torch.utils.data import DataLoader
from transformers import (
    PegasusConfig,
    PegasusForConditionalGeneration,
    Seq2SeqTrainer,
    TrainerCallback,
)

D_MODEL, D_FF, DROPOUT = 128, 512, 0.1
TOKENS = 700
"""Target tokens per update."""
WARM_UP = 1 / 12
"""The share of the time in which the learning rate rises."""
ROWS, BEAM = 32, 4


class Batches:
    """Batches of pairs of similar lengths, with at most TOKENS tokens of each side, padding included, shuffled."""

    def __init__(self, corpus: list[dict[str, list[int]]], seed: int) -> None:
        self.lengths = [(len(pair["labels"]), len(pair["input_ids"])) for pair in corpus]
        self.random = random.Random(seed)
        self.size = sum(1 for _ in self)

    def __len__(
        self,
    ) -> int:  # without it, the Trainer runs through 10 million empty steps after each pass
        return self.size

    def __iter__(self) -> Iterator[list[int]]:
        numbers = [*range(len(self.lengths))]
        self.random.shuffle(numbers)
        batches, longest = [[]], 0
        for number in sorted(numbers, key=self.lengths.__getitem__):
            longest = max(longest, *self.lengths[number])
            if batches[-1] and longest * (len(batches[-1]) + 1) > TOKENS:
                batches.append([])
                longest = max(self.lengths[number])
            batches[-1].append(number)
        self.random.shuffle(batches)
        return iter(batches)


class TokenTrainer(Seq2SeqTrainer):
    """The Trainer groups by the length of the source alone, which leaves 31 % padding in the target of Multi30k."""

    def get_train_dataloader(self) -> DataLoader:
        batches = Batches(self.train_dataset, self.args.seed)
        return DataLoader(self.train_dataset, batch_sampler=batches, collate_fn=self.data_collator)


class Clock(TrainerCallback):
    """Ends training when the process has used its processor time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_step_end(self, *arguments: object, **_: object) -> None:
        arguments[2].should_training_stop = time.process_time() > self.seconds  # type: ignore[attr-defined]


def train(folder: Path, output: str, seed: int, seconds: float, peak: float) -> None:
    torch.manual_seed(seed)
    corpus = read_corpus(str(folder / "train"))
    vocabulary = (
        sum(1 for _ in (folder / "marian" / "vocab.yml").open()) + 2
    )  # Marian has no padding or start symbol
    shape = sizes(D_MODEL, D_FF, DROPOUT, vocabulary)
    model = PegasusForConditionalGeneration(
        PegasusConfig(**shape, bos_token_id=BOS, init_std=D_MODEL**-0.5)
    )

    def rate(_: int) -> float:
        spent = time.process_time() / seconds
        return max(0.0, min(spent / WARM_UP, (1 - spent) / (1 - WARM_UP)))

    optimizer = torch.optim.AdamW(
        model.parameters(), lr=peak, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
    )
    options = arguments(output, corpus, TOKENS, max_steps=10**7, logging_steps=200, seed=seed)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    contents = {"train_dataset": corpus, "data_collator": collate, "callbacks": [Clock(seconds)]}
    TokenTrainer(model=model, args=options, optimizers=(optimizer, schedule), **contents).train()
    model.save_pretrained(output)


def translate(folder: str, source: str, output: str) -> None:
    model = PegasusForConditionalGeneration.from_pretrained(folder).eval()
    sentences = read(source)
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    lines = [""] * len(sentences)
    for first in range(0, len(order), ROWS):
        chosen = order[first : first + ROWS]
        ids = padded([sentences[number] for number in chosen], PAD)
        mask = (ids != PAD).long()
        longest = 3 * ids.shape[1]
        made = model.generate(
            ids, attention_mask=mask, num_beams=BEAM, max_new_tokens=longest, length_penalty=0.6
        )
        for number, tokens in zip(chosen, made.tolist(), strict=True):
            lines[number] = " ".join(str(id) for id in tokens if id not in (PAD, BOS, EOS))
    Path(output).write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    if sys.argv[1] == "train":
        folder, output, seed, seconds, peak = sys.argv[2:7]
        train(Path(folder), output, int(seed), float(seconds), float(peak))
    else:
        translate(*sys.argv[2:5])
