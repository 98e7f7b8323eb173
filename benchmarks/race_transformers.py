"""Train a small MBart with transformers' Seq2SeqTrainer for some processor time, or translate with it; for race.py.

    python benchmarks/race_transformers.py train FOLDER MODEL SEED SECONDS
    python benchmarks/race_transformers.py translate MODEL IDS OUTPUT

FOLDER contains train and valid, .source.ids and .target.ids, with one sentence of token ids per line.
"""

import sys
import time
from pathlib import Path

import torch
from peers_transformers import BOS, EOS, NO_LABEL, PAD, padded, read
from transformers import (
    MBartConfig,
    MBartForConditionalGeneration,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

D_MODEL, D_FF, LAYERS, HEADS, DROPOUT = 128, 512, 3, 4, 0.1
TOKENS, RATE, WARM_UP = 700, 2e-3, 1 / 12
"""Target tokens per update, peak learning rate, and the share of the time in which the rate rises."""
ROWS, BEAM = 32, 4


def new_model(vocabulary: int) -> MBartForConditionalGeneration:
    sizes = {f"{stack}_{key}": value for stack in ("encoder", "decoder")
             for key, value in (("layers", LAYERS), ("ffn_dim", D_FF), ("attention_heads", HEADS))}  # fmt: skip
    return MBartForConditionalGeneration(
        MBartConfig(
            **sizes,
            vocab_size=vocabulary,
            d_model=D_MODEL,
            dropout=DROPOUT,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=1024,
            init_std=D_MODEL**-0.5,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    )


def collate(pairs: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    source = padded([pair["input_ids"] for pair in pairs], PAD)
    labels = padded([pair["labels"] for pair in pairs], NO_LABEL)
    before = padded([[BOS, *pair["labels"][:-1]] for pair in pairs], PAD)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "decoder_input_ids": before,
        "labels": labels,
    }


class Clock(TrainerCallback):
    """Ends training when the process has used its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_step_end(self, *arguments: object, **_: object) -> None:
        arguments[2].should_training_stop = time.process_time() > self.seconds  # type: ignore[attr-defined]


def train(folder: Path, output: str, seed: int, seconds: float) -> None:
    torch.manual_seed(seed)
    sides = [read(str(folder / f"train.{side}.ids")) for side in ("source", "target")]
    corpus = [{"input_ids": source, "labels": target} for source, target in zip(*sides, strict=True)]
    vocabulary = sum(1 for _ in (folder / "vocab.yml").open()) + 2  # Marian has no padding or start symbol
    model = new_model(vocabulary)

    def rate(_: int) -> float:
        spent = time.process_time() / seconds
        return max(0.0, min(spent / WARM_UP, (1 - spent) / (1 - WARM_UP)))

    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    arguments = Seq2SeqTrainingArguments(
        output,
        per_device_train_batch_size=max(1, round(TOKENS * len(corpus) / sum(map(len, sides[1])))),
        train_sampling_strategy="group_by_length",
        max_steps=10**7,
        logging_steps=200,
        label_smoothing_factor=0.1,
        max_grad_norm=0.0,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    contents = {"train_dataset": corpus, "data_collator": collate, "callbacks": [Clock(seconds)]}
    Seq2SeqTrainer(model=model, args=arguments, optimizers=(optimizer, schedule), **contents).train()
    model.save_pretrained(output)


def translate(folder: str, source: str, output: str) -> None:
    model = MBartForConditionalGeneration.from_pretrained(folder).eval()
    sentences = read(source)
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    lines = [""] * len(sentences)
    for first in range(0, len(order), ROWS):
        chosen = order[first : first + ROWS]
        ids = padded([sentences[number] for number in chosen], PAD)
        mask = (ids != PAD).long()
        longest = 3 * ids.shape[1]
        made = model.generate(ids, attention_mask=mask, num_beams=BEAM, max_new_tokens=longest, length_penalty=0.6)
        for number, tokens in zip(chosen, made.tolist(), strict=True):
            lines[number] = " ".join(str(id) for id in tokens if id not in (PAD, BOS, EOS))
    Path(output).write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    else:
        translate(*sys.argv[2:5])
