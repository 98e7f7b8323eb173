"""Train a Marian model with transformers' Seq2SeqTrainer, in its own environment; peers.py starts this script.

    python benchmarks/peers_transformers.py TEXT D_MODEL D_FF DROPOUT VOCABULARY RATE WARM_UP TOKENS UPDATES REPORT

TEXT.source and TEXT.target contain one sentence of ids per line. For each report, the script prints a line of JSON with
the seconds and target tokens since the last report, and the loss that the Trainer logged.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MarianConfig,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

PAD, BOS, EOS = 0, 1, 2
NO_LABEL = -100


def read(path: str) -> list[list[int]]:
    return [[*map(int, line.split()), EOS] for line in Path(path).read_text().splitlines()]


def padded(sentences: list[list[int]], value: int) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in sentences], True, value)


def collate(pairs: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    source = padded([pair["input_ids"] for pair in pairs], PAD)
    labels = padded([pair["labels"] for pair in pairs], NO_LABEL)
    before = padded([[BOS, *pair["labels"][:-1]] for pair in pairs], PAD)
    mask = (source != PAD).long()
    return {
        "input_ids": source,
        "attention_mask": mask,
        "decoder_input_ids": before,
        "labels": labels,
    }


def sizes(width: int, inner: int, dropout: float, vocabulary: int) -> dict[str, Any]:
    """The options of a Transformer's configuration in transformers: three layers in each stack and four heads."""
    stacks = {f"{stack}_{key}": value for stack in ("encoder", "decoder")
              for key, value in (("layers", 3), ("ffn_dim", inner), ("attention_heads", 4))}  # fmt: skip
    tokens = {
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
    }
    shape = {
        "vocab_size": vocabulary,
        "d_model": width,
        "dropout": dropout,
        "max_position_embeddings": 1024,
    }
    return {**stacks, **tokens, **shape, "activation_function": "relu", "scale_embedding": True}


def arguments(
    output: str, corpus: list[dict[str, list[int]]], tokens: int, **options: Any
) -> Seq2SeqTrainingArguments:
    """Training arguments for updates of about `tokens` target tokens, without clipping, reports or checkpoints."""
    return Seq2SeqTrainingArguments(
        output,
        per_device_train_batch_size=round(
            tokens * len(corpus) / sum(len(pair["labels"]) for pair in corpus)
        ),
        train_sampling_strategy="group_by_length",
        label_smoothing_factor=0.1,
        max_grad_norm=0.0,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )


def read_corpus(text: str) -> list[dict[str, list[int]]]:
    sides = read(f"{text}.source"), read(f"{text}.target")
    return [{"input_ids": source, "labels": target} for source, target in zip(*sides, strict=True)]


class Report(TrainerCallback):
    """Counts the tokens of batches as they are made, and prints them whenever the Trainer logs."""

    def __init__(self) -> None:
        self.tokens, self.start = 0, 0.0

    def collate(self, pairs: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        self.tokens += sum(len(pair["labels"]) for pair in pairs)
        return collate(pairs)

    def on_train_begin(self, *_: object, **__: object) -> None:
        self.tokens, self.start = 0, time.perf_counter()

    def on_log(self, *_: object, logs: dict[str, float], **__: object) -> None:
        if "loss" in logs:
            now = time.perf_counter()
            print(
                json.dumps(
                    {"seconds": now - self.start, "tokens": self.tokens, "loss": logs["loss"]}
                ),
                flush=True,
            )
            self.tokens, self.start = 0, now


def train(
    model: MarianMTModel,
    text: str,
    rate: float,
    warm_up: int,
    tokens: int,
    updates: int,
    every: int,
) -> None:
    corpus, report = read_corpus(text), Report()
    with tempfile.TemporaryDirectory() as folder:
        options = arguments(
            folder,
            corpus,
            tokens,
            max_steps=updates,
            logging_steps=every,
            learning_rate=rate,
            lr_scheduler_type="inverse_sqrt",
            warmup_steps=warm_up,
            adam_beta2=0.98,
            adam_epsilon=1e-9,
        )
        contents = {"train_dataset": corpus, "data_collator": report.collate, "callbacks": [report]}
        Seq2SeqTrainer(model=model, args=options, **contents).train()


if __name__ == "__main__":
    torch.manual_seed(1)
    d_model, d_ff, dropout, vocabulary, rate = sys.argv[2:7]
    model = MarianMTModel(
        MarianConfig(**sizes(int(d_model), int(d_ff), float(dropout), int(vocabulary)))
    )
    train(model, sys.argv[1], float(rate), *map(int, sys.argv[7:]))
