"""`nmt cite` and `nmt verify`: write and check a bundle of translations and scores."""

import re
from dataclasses import dataclass
from typing import Any

from nmt.commands import one_run, talker
from nmt.config import BLEU_TOKENIZERS, MISSING, Command, DecodeConfig, choice, metric_names, require, shown


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
    target: str | None = None
    """Target language of a multilingual model."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: as recorded by the run."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    decode: DecodeConfig = MISSING

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
    """What may be missing, under the names that are printed: for example, unscored (no scores) or README.md."""

    def __post_init__(self) -> None:
        whole = re.fullmatch("[0-9a-f]{64}", self.sha256 or "0" * 64) is not None
        require(whole, f"sha256={shown(self.sha256)}: must be 64 hexadecimal digits")


def run_cite(config: CiteConfig) -> None:
    from nmt.plugins.cite.cite import SOFTWARE, cite

    output, sha256, sentence = cite(config, talker())
    print(f"{output}\nSHA-256 {sha256}\n\n{sentence}\n\n{SOFTWARE}")


def run_verify(config: VerifyConfig) -> int:
    """Print every check; return 1 if something differs or is missing."""
    from nmt.files import printable
    from nmt.plugins.cite.verify import DIFFERS, MISSING, verify

    failed = False
    for result, what, detail in verify(config, talker()):
        print(printable(f"{result:9}  {what}: {detail}"), flush=True)
        failed |= result in (DIFFERS, MISSING)
    return int(failed)


def one_bundle(words: list[str]) -> dict[str, Any]:
    require(len(words) == 1, f"{words[-1]}: this command takes one bundle; {words[0]} is given too")
    return {"bundle": words[0]}


CITE = Command(
    "cite",
    CiteConfig,
    run_cite,
    one_run,
    usage="[RUN]",
    example="runs/mine",
    groups={"decode": "paper"},
    memory="pass a lower decode.batch_tokens, or device=cpu",
)
VERIFY = Command(
    "verify",
    VerifyConfig,
    run_verify,
    one_bundle,
    usage="BUNDLE",
    example="citation-test.zip reference=test.de",
    memory="pass device=cpu, or omit run",
)
