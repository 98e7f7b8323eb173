"""The options of `nmt report`, `attention`, `compare`, `cite` and `verify`."""

import re
from dataclasses import dataclass

from nmt.config import (
    BLEU_TOKENIZERS,
    MISSING,
    Compute,
    TranslatorOptions,
    choice,
    inline,
    metric_names,
    number,
    require,
    running_text,
    shown,
)

BY_TORCH = TranslatorOptions(compute=Compute("torch"))


@dataclass
class ReportConfig:
    """Options of `nmt report`."""

    run: str = "runs/latest"
    """The run, finished or not; may be given without run=."""
    output: str | None = None
    """HTML page to write; null: report.html in the run folder."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: as recorded by the run."""
    split: str = choice("valid", "valid", "test")
    """Held-out set to translate: valid or test."""
    sentences: int | None = number(500, 0, 10**9)
    """Number of sentences to translate, from the beginning of the set; 0: none, null: all."""
    examples: int = number(12, 0, 10_000)
    """Number of translations to show in each group: best, median and worst."""
    translator: TranslatorOptions = inline(BY_TORCH, "device", "decode")


@dataclass
class AttentionConfig:
    """Options of `nmt attention`."""

    sentence: str = running_text(MISSING)
    """The sentence; may be given without sentence=."""
    target: str | None = running_text(None)
    """The translation of the sentence; null: the model's own."""
    run: str = "runs/latest"
    """A run or a model directory."""
    output: str = "attention.html"
    """HTML page to write."""
    translator: TranslatorOptions = inline(BY_TORCH, "device", "decode")

    def __post_init__(self) -> None:
        require(bool(self.sentence.strip()), "sentence: must not be empty")
        require(self.output.endswith(".html"), f"output={self.output}: must end in .html")


@dataclass
class CompareConfig:
    """Options of `nmt compare`."""

    systems: list[str] = choice([])
    """Runs, model directories or files of translations; may be given without systems=. NAME=[A,B] is one system
    with several seeds. The first system is the baseline."""
    source: str | None = None
    """File of source lines; null: the test set of the baseline's corpus."""
    reference: str | None = None
    """File of reference translations; null: the test set of the baseline's corpus."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: as recorded by the baseline's run."""
    metrics: list[str] = choice(["bleu", "chrf", "ter"], names_of=lambda: metric_names("paired"))
    """bleu, chrf, chrf++ or ter; the first metric given is used for fail_if and for the buckets."""
    tokenize: str | None = choice(None, *BLEU_TOKENIZERS)
    """BLEU tokenizer, as in `nmt score`; null: the recommended one for the target language."""
    fail_if: str | None = choice(None, "worse")
    """worse: exit with code 1 if the first system is significantly worse than the second; null: never."""
    seed: int = number(12345, 1, 2**63 - 1)
    """Random seed for all tests, like SACREBLEU_SEED."""
    resamples: int = number(1000, 100, 1_000_000)
    """Number of resamples in the paired bootstrap."""
    trials: int = number(10000, 100, 10_000_000)
    """Number of trials in approximate randomization."""
    alpha: float = number(0.05, 1e-6, 0.5)
    """A difference is significant if both tests have a p-value below this."""
    output: str | None = "compare.html"
    """HTML page to write; null: none."""
    format: str = choice("text", "text", "json")
    """text or json."""
    translator: TranslatorOptions = inline(
        TranslatorOptions(), *("target", "engine", "precision", "threads", "device", "protect", "decode")
    )

    def __post_init__(self) -> None:
        require(0 < len(self.metrics) == len(set(self.metrics)), "metrics: name at least one, without duplicates")
        is_page = self.output is None or self.output.endswith(".html")
        require(is_page, f"output={self.output}: must end in .html")


@dataclass
class CiteConfig:
    """Options of `nmt cite`."""

    run: str = "runs/latest"
    """A run or a model directory; may be given without run=."""
    source: str | None = None
    """File of source lines; null: the test set of the model's training corpus."""
    reference: str | None = None
    """File of reference translations of `source`."""
    output: str | None = None
    """The bundle to write; null: citation-TESTSET.zip in the run, or in the working directory if there is no run."""
    text: bool = False
    """Include the source and reference lines; check first that their license allows it."""
    metrics: list[str] = choice(["bleu", "chrf", "ter"], names_of=lambda: metric_names("text"))
    """bleu, chrf, chrf++, ter, tokenized or split, as in `nmt score`."""
    tokenize: str | None = choice(None, *BLEU_TOKENIZERS)
    """BLEU tokenizer, as in `nmt score`; null: the recommended one for the target language."""
    lowercase: bool = False
    """Ignore case in every metric."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: as recorded by the run."""
    translator: TranslatorOptions = inline(BY_TORCH, "target", "device", "decode")

    def __post_init__(self) -> None:
        require(bool(self.metrics), "metrics: name at least one")
        require((self.source is None) == (self.reference is None), "source, reference: pass both or neither")


@dataclass
class VerifyConfig:
    """Options of `nmt verify`."""

    bundle: str = MISSING
    """A bundle, or the folder that it was unpacked into; may be given without bundle=."""
    sha256: str | None = None
    """SHA-256 of the bundle as published; only this proves where the bundle came from."""
    reference: str | None = None
    """File of references, for a bundle without them; needed to recompute the scores."""
    source: str | None = None
    """File of sources, for a bundle without them; needed, together with run, to translate again."""
    run: str | None = None
    """The bundle's model, as a run or a model directory, to translate the sources again."""
    device: str = "auto"
    """Device on which to translate again: auto, cpu, cuda, cuda:1 or mps."""
    allow: list[str] = choice([])
    """Names, as printed, of what may be missing, such as unscored (no scores) or README.md."""

    def __post_init__(self) -> None:
        whole = re.fullmatch("[0-9a-f]{64}", self.sha256 or "0" * 64) is not None
        require(whole, f"sha256={shown(self.sha256)}: must be 64 hexadecimal digits")
