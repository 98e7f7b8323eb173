"""Options of `nmt cite` and `nmt verify`."""

import re
from dataclasses import dataclass, field
from typing import Any

from nmt.config import (
    MISSING,
    DecodeConfig,
    as_list,
    check_scoring,
    require,
    require_choice,
    shown,
)


@dataclass
class CiteConfig:
    """The tree of `nmt cite`."""

    run: str = "runs/latest"
    """The run, or a model directory; a word without = is short for it."""
    source: str | None = None
    """File of source lines, plain or compressed; null: the test set of the corpus that the model was trained on."""
    reference: str | None = None
    """File of reference translations of `source`."""
    output: str | None = None
    """The bundle to write; null: citation-TESTSET.zip in the run, or here for a model directory of no run."""
    text: bool = False
    """Put source and reference lines into the bundle, not only their SHA-256: only where their licence allows it."""
    metrics: Any = field(default_factory=lambda: ["bleu", "chrf", "ter"])
    """bleu, chrf, chrf++, ter, tokenised, split, as in `nmt score`."""
    tokenize: str | None = None
    """Tokenizer of BLEU, as in `nmt score`; null: the recommended one for the target language."""
    lowercase: bool = False
    """Ignore case, in every metric."""
    target: str | None = None
    """Target language of a model for several."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: where the run found it."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        self.metrics = as_list(self.metrics)
        check_scoring(self.metrics, self.tokenize, "text")
        for given, other in (("source", "reference"), ("reference", "source")):
            missing = getattr(self, given) is not None and getattr(self, other) is None
            require(not missing, f"{given}={getattr(self, given)}: needs {other}=FILE beside it")
        require("-" not in (self.source, self.reference), "source, reference: files, please, and not standard input")
        require(
            self.source is None or self.prepared is None,
            f"prepared={self.prepared}: leave it out with source and reference, which are the test set",
        )


@dataclass
class VerifyConfig:
    """The tree of `nmt verify`."""

    bundle: str = MISSING
    """The bundle, or the folder that it was unpacked to; a word without = is short for it."""
    sha256: str | None = None
    """SHA-256 of the bundle, as it was published: the only thing that shows who it is from."""
    reference: str | None = None
    """File of the references, where the bundle does not hold them; scores are computed from them."""
    source: str | None = None
    """File of the sources, where the bundle does not hold them; with run, they are translated again."""
    run: str | None = None
    """A run or model directory that should be the bundle's model, to translate the sources again."""
    device: str = "auto"
    """run: auto, cpu, cuda, cuda:1, mps."""
    allow: Any = field(default_factory=list)
    """What may be missing, by the names that are printed: unscored for scores, README.md for that file."""
    format: str = "text"
    """text or json."""

    def __post_init__(self) -> None:
        self.allow = as_list(self.allow)
        require_choice("format", self.format, ("text", "json"))
        if self.sha256 is not None:
            self.sha256 = self.sha256.lower()
            whole = re.fullmatch("[0-9a-f]{64}", self.sha256) is not None
            require(whole, f"sha256={shown(self.sha256)}: must be 64 hexadecimal digits")
        require("-" not in (self.source, self.reference), "source, reference: files, please, and not standard input")
