"""The options of `nmt report`, `attention`, `compare`, `cite` and `verify`."""

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from nmt.config import (
    BLEU_TOKENIZERS,
    MISSING,
    Compute,
    MetricOptions,
    NMTError,
    TranslatorOptions,
    choice,
    inline,
    metric_names,
    number,
    require,
    running_text,
    shown,
)

COMPUTE = ("engine", "precision", "threads", "device")
"""The keys of every command that translates with a chosen engine."""


@dataclass
class ReportConfig:
    """Options of `nmt report`."""

    run: str = "runs/latest"
    """Run, finished or not; may be given without run=."""
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
    translator: TranslatorOptions = inline(TranslatorOptions(), *COMPUTE, "decode")


@dataclass
class AttentionConfig:
    """Options of `nmt attention`."""

    sentence: str = running_text(MISSING)
    """Sentence to translate; may be given without sentence=."""
    target: str | None = running_text(None)
    """Translation of the sentence; null: the model's own."""
    run: str = "runs/latest"
    """Run or model directory."""
    output: str = "attention.html"
    """HTML page to write."""
    translator: TranslatorOptions = inline(
        TranslatorOptions(compute=Compute("torch")), "device", "decode"
    )


@dataclass
class CompareConfig:
    """Options of `nmt compare`."""

    systems: list[str] = choice([])
    """Runs, model directories or files of translations; may be given without systems=. NAME=PATH
    names a system, and NAME=[A,B] is one system with several seeds. The first system is the
    baseline."""
    source: str | None = None
    """File of source lines; null: the test set of the baseline's corpus."""
    reference: str | None = None
    """File of reference translations; null: the test set of the baseline's corpus."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: as recorded by the baseline's run."""
    metrics: list[str] = choice(["bleu", "chrf", "ter"], names_of=lambda: metric_names("paired"))
    """Metrics, chosen from {choices}; the first metric given is used for fail_if and for the
    buckets."""
    metric_options: MetricOptions = inline(MetricOptions())
    tokenize: str | None = choice(None, *BLEU_TOKENIZERS)
    """BLEU tokenizer, as in `nmt score`; null: the recommended one for the target language."""
    fail_if: str | None = choice(None, "worse")
    """worse: exit with code 1 if the first system is significantly worse than the second; null:
    never."""
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
        TranslatorOptions(), "target", *COMPUTE, "protect", "decode"
    )

    def __post_init__(self) -> None:
        require(
            0 < len(self.metrics) == len(set(self.metrics)),
            "metrics: name at least one, without duplicates",
        )


@dataclass
class CiteConfig:
    """Options of `nmt cite`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    source: str | None = None
    """File of source lines; null: the test set of the model's training corpus."""
    reference: str | None = None
    """File of reference translations of `source`."""
    output: str | None = None
    """Bundle to write; null: citation-TESTSET.zip in the run, or in the working directory if there
    is no run."""
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
    translator: TranslatorOptions = inline(TranslatorOptions(), "target", *COMPUTE, "decode")

    def __post_init__(self) -> None:
        require(bool(self.metrics), "metrics: name at least one")
        require(
            # One of them alone would be mixed with the other of the test set.
            (self.source is None) == (self.reference is None),
            "source, reference: pass both or neither",
        )


@dataclass
class VerifyConfig:
    """Options of `nmt verify`."""

    bundle: str | None = None
    """Bundle, or the folder that it was unpacked into; may be given without bundle=."""
    # Checksums inside a bundle prove nothing: whoever edits the bundle can edit them too.
    sha256: str | None = None
    """SHA-256 of the bundle as published; only this proves where the bundle came from."""
    reference: str | None = None
    """File of references, for a bundle without them; needed to recompute the scores."""
    source: str | None = None
    """File of sources, for a bundle without them; needed, together with run, to translate again."""
    run: str | None = None
    """Run or model directory to translate the sources again; without a bundle, run to train
    again."""
    step: int | None = number(None, 0, 10**9)
    """Train a run again from this checkpoint to the next; 0: from the seed; null: from every
    checkpoint."""
    prepared: str | None = None
    """Folder of the prepared corpus to train again; null: as recorded by the run."""
    device: str = "auto"
    """Device on which to translate again: auto, cpu, cuda, cuda:1 or mps. The bundle records the
    engine."""

    def __post_init__(self) -> None:
        require(
            bool(self.bundle or self.run),
            "bundle, run: name the bundle to check, or the run to train again",
        )
        if self.sha256 and not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise NMTError(f"sha256={shown(self.sha256)}: must be 64 hexadecimal digits")


def check_output(output: Path, example: str) -> Path:
    """Return `output` if it can be written; otherwise raise NMTError, before any work is done."""
    if output.is_dir():
        advice = f"name a file, such as output={output / example}"
        raise NMTError(f"output={output}: is a folder; {advice}")
    suffix = Path(example).suffix
    if output.suffix != suffix:  # so that no text file is overwritten by mistake
        raise NMTError(f"output={output}: must end in {suffix}")
    try:
        # Only an attempt shows whether a folder can be written, whatever its permissions are.
        with TemporaryFile(dir=output.parent):
            return output
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise NMTError(f"output={output}: {problem}; choose another path") from error
