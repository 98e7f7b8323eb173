"""`nmt cite`: write a bundle of translations and scores that others can verify. `nmt verify`: check one."""

import re
from dataclasses import dataclass
from typing import Any

from nmt.commands.console import one_run, talker
from nmt.config import BLEU_TOKENIZERS, MISSING, Command, DecodeConfig, choice, metric_names, require, shown


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
    metrics: list[str] = choice(["bleu", "chrf", "ter"], names_of=lambda: metric_names("text"))
    """bleu, chrf, chrf++, ter, tokenised, split, as in `nmt score`."""
    tokenize: str | None = choice(None, *BLEU_TOKENIZERS)
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
        require(bool(self.metrics), "metrics: name at least one")
        require((self.source is None) == (self.reference is None), "source, reference: pass both, or neither")


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
    allow: list[str] = choice([])
    """What may be missing, by the names that are printed: unscored for scores, README.md for that file."""

    def __post_init__(self) -> None:
        whole = re.fullmatch("[0-9a-f]{64}", self.sha256 or "0" * 64) is not None
        require(whole, f"sha256={shown(self.sha256)}: must be 64 hexadecimal digits")


def run_cite(config: CiteConfig) -> None:
    """Write the bundle; print its path and SHA-256, and what to paste."""
    from nmt.plugins.cite.cite import SOFTWARE, cite

    output, sha256, sentence = cite(config, talker())
    print(f"{output}\nSHA-256 {sha256}\n\n{sentence}\n\n{SOFTWARE}")


def run_verify(config: VerifyConfig) -> int:
    """Print what was checked, and return 1 if anything differs or is missing."""
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
    keys="run=runs/mine source=test.en reference=test.de text=true metrics=[bleu,chrf,ter] output=mine.zip device=cpu",
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
    keys="sha256=null reference=test.de source=test.en run=runs/mine device=cpu",
    memory="pass device=cpu, or leave run out",
)
