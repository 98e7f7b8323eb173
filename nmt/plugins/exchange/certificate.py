"""Compare an imported multilingual model with the original in transformers, if it is installed.

The figures become part of the model directory: the numbers of lines with the same tokens and with
the same translations, and the largest difference between logits.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import BOS, EOS, PAD, DecodeConfig
from nmt.model import Transformer, load_model
from nmt.plugins.exchange.hub_settings import read_settings
from nmt.search import beam_search
from nmt.text import MultilingualTokenizer, direction_tag, read_tokenizer

LINES = 5000
"""Lines whose tokens are compared."""
SENTENCES = 12
"""Lines whose logits and translations are compared."""
LONGEST = 24
"""The maximum length of these, in tokens."""
EXTRA = 10
"""How much longer than its source a translation may be."""
LEAST_SAME_TOKENS = 0.99
"""The least share of lines with the same tokens; mBART-50's have ties between segmentations."""
MOST_DIFFERENCE = 1e-3
"""The largest difference of logits that rounding explains, also in a large model."""
LOCALES = """
en ru el ar he hi bn pa gu or ta te kn ml si th lo my km ka hy am bo zh ja ko dz
"""
"""Languages in 26 scripts, for which Unicode's data has names of languages and territories."""
TOKENIZERS = {"SMALL100Tokenizer": "M2M100Tokenizer"}
"""Tokenizers that transformers lacks, and those with the same pieces."""
EXCHANGED = {PAD: BOS, BOS: PAD}
"""fairseq numbers <s> 0 and <pad> 1, nmt the reverse."""


@dataclass(frozen=True)
class Certificate:
    """How an imported model compares with the original in transformers."""

    transformers: str
    """The version of the library."""
    lines: int
    same_tokens: int
    """Lines with the same tokens."""
    logits: float
    """The largest difference between logits, in float32."""
    same_greedy: int
    """Sentences with the same translation by greedy search."""
    ended_greedy: int
    """Sentences whose greedy translations end before the maximum length in both programs."""
    same_beam: int
    """Like `same_greedy`, for a beam of 4."""
    ended_beam: int

    @property
    def holds(self) -> bool:
        """Whether the import computes what the original does."""
        are_translations_same = (
            self.same_greedy == self.ended_greedy and self.same_beam == self.ended_beam
        )
        has_tokens = self.same_tokens >= LEAST_SAME_TOKENS * self.lines
        return has_tokens and self.logits <= MOST_DIFFERENCE and are_translations_same

    def in_words(self) -> str:
        return (
            f"compared with transformers {self.transformers}: the same tokens for "
            f"{self.same_tokens:,} of {self.lines:,} lines in 26 scripts, logits within "
            f"{self.logits:.1e}; of the translations that end by themselves, the same for "
            f"{self.same_greedy} of {self.ended_greedy} (greedy search) and {self.same_beam} of "
            f"{self.ended_beam} (beam 4)"
        )


@cache
def names_in(locale: str) -> list[str]:
    """Names of languages, territories and scripts in a language."""
    from babel import Locale

    data = Locale.parse(locale)
    tables = (data.languages, data.territories, data.scripts)
    return [name for table in tables for name in table.values()]


def sample_lines(count: int) -> list[str]:
    """Lines of a few names each, in all of LOCALES."""
    rng = random.Random(1)
    locales = LOCALES.split()
    lines = []
    for index in range(count):
        names = names_in(locales[index % len(locales)])
        words = [rng.choice(names) for _ in range(rng.randint(1, 6))]
        # A joiner at the end becomes a blank, which sentencepiece removes and transformers 5 keeps.
        lines.append(" ".join(words).rstrip("\u200b\u200c\u200d") + rng.choice([".", "!", ""]))
    return lines


@dataclass
class Reference:
    """The results of transformers."""

    tokens: list[list[int]]
    logits: list[Tensor]
    greedy: list[list[int]]
    beam: list[list[int]]


def can_certify() -> bool:
    return find_spec("transformers") is not None


def certify(folder: Path, model_directory: Path) -> Certificate:
    """Compare the model in a hub's folder with its import.

    The two models are loaded one after the other, because both may not fit into memory.
    """
    import transformers

    tokenizer = read_tokenizer(model_directory)
    assert isinstance(tokenizer, MultilingualTokenizer)
    comparison = Comparison(tokenizer)
    with quiet(transformers):
        reference = comparison.reference(folder, transformers)
    return comparison.with_ours(load_model(model_directory), reference, transformers.__version__)


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """transformers without progress bars and advice."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)
        transformers.logging.enable_progress_bar()


def renumbered(ids: list[int]) -> list[int]:
    """nmt's ids as fairseq's, or the reverse."""
    return [EXCHANGED.get(id, id) for id in ids]


class Comparison:
    """Lines to compare, in nmt's ids, and how both programs process them."""

    def __init__(self, tokenizer: MultilingualTokenizer) -> None:
        self.tokenizer = tokenizer
        # Any two languages do: the comparison is of programs, not of translations.
        self.source, *_, self.target = tokenizer.languages
        if tokenizer.has_target_tags:
            self.tag = direction_tag(self.source, self.target)
        else:
            self.tag = f"<2{self.target}>"
        self.start = tokenizer.target_start(self.tag)
        self.lines = [tokenizer.clean(line) for line in sample_lines(LINES)]
        self.rows = tokenizer.encode([self.tag + line for line in self.lines])
        short = [row for row in self.rows if len(row) < LONGEST]
        self.sentences = short[:: max(1, len(short) // SENTENCES)][:SENTENCES]

    def targets(self, index: int) -> list[int]:
        """Tokens of a target for the logits: those of another sentence, without its tag."""
        return [*self.start, *self.sentences[index - 1][1:]]

    def reference(self, folder: Path, transformers: Any) -> Reference:
        """What transformers computes."""
        name = read_settings(folder / "tokenizer_config.json").get("tokenizer_class")
        tokenizer_class = getattr(transformers, TOKENIZERS.get(str(name), str(name)))
        tokenizer = tokenizer_class.from_pretrained(folder, src_lang=self.source)
        tokens = []
        for line, row in zip(self.lines, self.rows, strict=True):
            # The first token is the tag, which SMaLL-100 chooses differently.
            tokens.append([*row[:1], *renumbered(tokenizer(line)["input_ids"])[1:]])
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32)
        model.eval()
        logits = []
        for index, row in enumerate(self.sentences):
            inputs = {
                "input_ids": torch.tensor([renumbered([*row, EOS])]),
                "decoder_input_ids": torch.tensor([renumbered([EOS, *self.targets(index)])]),
            }
            with torch.inference_mode():
                logits.append(model(**inputs).logits[0])
        greedy = [self.generated(model, row, beam=1) for row in self.sentences]
        beam = [self.generated(model, row, beam=4) for row in self.sentences]
        return Reference(tokens, logits, greedy, beam)

    def generated(self, model: Any, row: list[int], beam: int) -> list[int]:
        """A translation by transformers, in nmt's ids."""
        with torch.inference_mode():
            [tokens] = model.generate(
                input_ids=torch.tensor([renumbered([*row, EOS])]),
                num_beams=beam,
                do_sample=False,
                forced_bos_token_id=self.start[0] if self.start else None,
                decoder_start_token_id=EOS,
                length_penalty=1.0,
                # The search of nmt continues while an unfinished hypothesis may win.
                early_stopping="never" if beam > 1 else False,
                max_length=len(row) + 2 + EXTRA,
                suppress_tokens=[0, 1, 3],
            ).tolist()
        return renumbered(tokens[1:])

    def with_ours(self, model: Transformer, reference: Reference, version: str) -> Certificate:
        """The figures, given the results of transformers."""
        difference = 0.0
        for index, (row, theirs) in enumerate(zip(self.sentences, reference.logits, strict=True)):
            sources = torch.tensor([[*row, EOS]])
            targets = torch.tensor([[BOS, *self.targets(index)]])
            with torch.inference_mode():
                ours = model(sources, targets)[0]
            order = torch.arange(ours.shape[-1])
            order[:2] = torch.tensor([EXCHANGED[PAD], EXCHANGED[BOS]])
            difference = max(difference, float((ours - theirs[:, order]).abs().max()))
        ended_greedy, same_greedy = self.compare(model, reference.greedy, beam=1)
        ended_beam, same_beam = self.compare(model, reference.beam, beam=4)
        rows = zip(self.rows, reference.tokens, strict=True)
        return Certificate(
            transformers=version,
            lines=len(self.lines),
            same_tokens=sum([*row, EOS] == tokens for row, tokens in rows),
            logits=difference,
            same_greedy=same_greedy,
            ended_greedy=ended_greedy,
            same_beam=same_beam,
            ended_beam=ended_beam,
        )

    def compare(self, model: Transformer, theirs: list[list[int]], beam: int) -> tuple[int, int]:
        """How many translations end by themselves, and how many of these are the same."""
        config = DecodeConfig(
            beam_size=beam, length_penalty=1.0, length_penalty_kind="marian", max_extra_length=EXTRA
        )
        ended = 0
        same = 0
        for row, tokens in zip(self.sentences, theirs, strict=True):
            [[best, *_]] = beam_search([model], torch.tensor([[*row, EOS]]), config, [self.start])
            # At the maximum length, transformers leaves out the end symbol, or its log P (mBART).
            longest = len(row) + 1 + EXTRA
            if max(len(best.tokens) + 1, len(tokens)) < longest:
                ended += 1
                same += tokens == [*best.tokens, EOS]
        return ended, same
