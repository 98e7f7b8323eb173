"""Scales: on which corpora, with which sizes and for how many updates the tables are reproduced.

A scale is data. Whatever it does not name is as in the paper, so that every scale runs the same commands.
"""

from dataclasses import dataclass

from nmt.commands import compose
from nmt.config import ModelConfig


@dataclass(frozen=True)
class Training:
    """How long a model is trained."""

    updates: int
    checkpoint_every: int
    """Updates between checkpoints. The paper has minutes, of machines of its time: so many updates in ten of them."""
    words: tuple[str, ...] = ()
    """What else stands in its command line."""


@dataclass(frozen=True)
class Scale:
    """All that tells one scale from another."""

    name: str
    said: str
    """What ours are, for the pages: a sentence."""
    corpora: dict[str, tuple[str, ...]]
    """en-de, en-fr -> the words that choose corpus and vocabulary."""
    local: str
    """The key of `nmt reproduce` that may hold a local copy of them; empty: there is none."""
    trainings: dict[str, Training]
    """base and big (Table 2); variation and variation_big (Table 3); parser (Table 4)."""
    grid: str
    """The sizes of layers that are measured (Table 1)."""
    parser: tuple[str, ...]
    """The words that choose the parser and how its treebank is read (Table 4)."""
    parser_said: str
    """What ours are in Table 4: a sentence."""
    words: tuple[str, ...] = ()
    """What stands in the command line of every training."""
    width: int = 1
    """d_model, d_ff, d_k and d_v are divided by it."""
    depth: int = 1
    """N is divided by it."""
    test_lines: int | None = None
    """Lines that a test set must have; None: however many."""
    valid_lines: int | None = None
    """Lines that a validation set must have."""

    def sizes(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The overrides that shrink the model that `nmt train` would make of `words`."""
        if self.width == self.depth == 1:
            return ()
        model: ModelConfig = compose("train", list(words)).model
        widths = {key: getattr(model, key) // self.width for key in ("d_model", "d_ff", "d_k", "d_v")}
        sizes = {key: getattr(model, key) // self.depth for key in ("encoder_layers", "decoder_layers")} | widths
        if model.attention_window is not None:  # sentences are shorter, too
            sizes["attention_window"] = round(model.attention_window / self.width)
        return tuple(f"model.{key}={value}" for key, value in sizes.items())


PAPER = Scale(
    name="paper",
    said=(
        "Ours were measured with the paper's corpora (WMT14; development set newstest2013, test set newstest2014), "
        "models and numbers of updates."
    ),
    corpora={
        "en-de": ("data=wmt14_en_de", "tokenizer=bpe37k"),
        "en-fr": ("data=wmt14_en_fr", "tokenizer=wordpiece32k"),
    },
    local="wmt14",
    trainings={
        "base": Training(100_000, 1500),
        "big": Training(300_000, 600),
        "variation": Training(100_000, 1500),
        "variation_big": Training(300_000, 600),
        "parser": Training(100_000, 1500),
    },
    grid="paper",
    parser=("experiment=table4/wsj",),
    parser_said="Ours were measured on the Wall Street Journal, sections 2 to 21, 22 and 23.",
    test_lines=3003,
    valid_lines=3000,
)

LAPTOP = Scale(
    name="laptop",
    said=(
        "Ours are of models with half the paper's layers and a quarter of its widths, normalised before each sub-layer "
        "(pre-norm, which learns sooner), trained for minutes on some 29,000 short sentences of user interfaces: the "
        "paper's way in small, whose numbers cannot be compared with the paper's."
    ),
    corpora={
        "en-de": ("data=quickstart", "tokenizer=bpe4k"),
        "en-fr": ("data=quickstart", "data.target=fr", "tokenizer=wordpiece32k", "tokenizer.vocabulary_size=4000"),
    },
    local="quickstart",
    trainings={
        "base": Training(1600, 32),
        "big": Training(2400, 24),
        "variation": Training(900, 300),
        "variation_big": Training(1500, 300),
        "parser": Training(10_000, 500),
    },
    grid="laptop",
    parser=("experiment=table4/laptop", "data.errors=skip"),
    parser_said=(
        "Ours are of a small parser on another treebank, trained for some thousand updates: the paper's way in small, "
        "whose numbers cannot be compared with the paper's."
    ),
    words=(
        "model.norm=pre",
        "batching.tokens_per_update=700",
        "batching.micro_batches=1",
        "optim.warmup=400",
        "logger=csv",
    ),
    width=4,
    depth=2,
)

SCALES = {scale.name: scale for scale in (PAPER, LAPTOP)}
