"""The options of `nmt report`, `attention`, `compare`, `cite` and `verify`, and what the commands check and print."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from nmt import files, training
from nmt.commands import one_run, talker
from nmt.config import (
    BLEU_TOKENIZERS,
    MISSING,
    Command,
    Compute,
    NMTError,
    TranslatorOptions,
    choice,
    exists,
    inline,
    metric_names,
    number,
    require,
    running_text,
    shown,
)

COMPUTE = ("engine", "precision", "threads", "device")


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
    """Runs, model directories or files of translations; may be given without systems=. NAME=PATH names a system, and
    NAME=[A,B] is one system with several seeds. The first system is the baseline."""
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
    """Bundle to write; null: citation-TESTSET.zip in the run, or in the working directory if there is no run."""
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
            (self.source is None) == (self.reference is None),
            "source, reference: pass both or neither",
        )


@dataclass
class VerifyConfig:
    """Options of `nmt verify`."""

    bundle: str | None = None
    """Bundle, or the folder that it was unpacked into; may be given without bundle=."""
    sha256: str | None = None
    """SHA-256 of the bundle as published; only this proves where the bundle came from."""
    reference: str | None = None
    """File of references, for a bundle without them; needed to recompute the scores."""
    source: str | None = None
    """File of sources, for a bundle without them; needed, together with run, to translate again."""
    run: str | None = None
    """Run or model directory to translate the sources again; without a bundle, run to train again."""
    step: int | None = number(None, 0, 10**9)
    """Train a run again from this checkpoint to the next; 0: from the seed; null: from every checkpoint."""
    prepared: str | None = None
    """Folder of the prepared corpus to train again; null: as recorded by the run."""
    device: str = "auto"
    """Device on which to translate again: auto, cpu, cuda, cuda:1 or mps. The bundle records the engine."""

    def __post_init__(self) -> None:
        require(
            bool(self.bundle or self.run),
            "bundle, run: name the bundle to check, or the run to train again",
        )
        whole = re.fullmatch("[0-9a-f]{64}", self.sha256 or "0" * 64) is not None
        require(whole, f"sha256={shown(self.sha256)}: must be 64 hexadecimal digits")


def check_output(output: Path, example: str) -> Path:
    """Return `output` if it can be written; otherwise raise NMTError, before any work is done."""
    require(
        not output.is_dir(),
        f"output={output}: is a folder; name a file, such as output={output / example}",
    )
    suffix = Path(example).suffix  # text files are not overwritten by mistake
    require(output.suffix == suffix, f"output={output}: must end in {suffix}")
    try:
        with TemporaryFile(dir=output.parent):
            return output
    except OSError as error:
        raise NMTError(
            f"output={output}: cannot be written ({error.strerror}); choose another path"
        ) from error


def metrics_of(folder: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv in a run; NMTError if it has none."""
    rows = training.read_metrics(folder)
    advice = "try again after training has logged a loss"
    require(bool(rows), f"run={folder}: metrics.csv has no rows yet; {advice}")
    return rows


def report(config: ReportConfig) -> None:
    folder = Path(config.run)
    require(
        (folder / "config.yaml").is_file(),
        f"run={folder}: not a training run of `nmt train` (no config.yaml)",
    )
    training.check_no_links(folder)
    metrics_of(folder)  # fails before the import below, which takes seconds
    output = check_output(Path(config.output or folder / "report.html"), "report.html")
    from nmt.plugins.results.training_page import training_page

    files.write_file(output, training_page(config, talker()))
    print(output)


def attention(config: AttentionConfig) -> None:
    output = check_output(Path(config.output), "attention.html")
    with talker().status("loading") as status:
        from nmt.plugins.results.attention_page import attention_page  # imports torch

        page = attention_page(config, status.update)
    files.write_file(output, page)
    print(output)


def compare(config: CompareConfig) -> int:
    """Print the numbers, write the page, and return the exit code."""
    from nmt.plugins.results.comparison import FEWEST_LINES, as_text, compared
    from nmt.plugins.results.test_set import read_systems

    console, systems = talker(), read_systems(config.systems)
    tree = compared(systems, config.source, config.reference, config, console)
    as_json = config.format == "json"
    sys.stdout.write(
        json.dumps(tree, indent=2, ensure_ascii=False) + "\n" if as_json else as_text(tree)
    )
    if config.output:
        console.print(f"the page is {config.output}")
    if config.fail_if and tree["first_is_worse"]:
        console.print(
            f"nmt: {systems[0].name} is significantly worse than {systems[1].name} (fail_if=worse)"
        )
        return 1
    if config.fail_if and tree["lines"] < FEWEST_LINES:
        console.print(f"nmt: fail_if=worse cannot fail with fewer than {FEWEST_LINES} lines")
    return 0


def run_cite(config: CiteConfig) -> None:
    from nmt.plugins.results.verify import SOFTWARE, cite

    output, sha256, sentence = cite(config, talker())
    print(f"{output}\nSHA-256 {sha256}\n\n{sentence}\n\n{SOFTWARE}")


def run_verify(config: VerifyConfig) -> int:
    """Print every check.

    Return 1 if something differs or is missing, and 3 if bits differ in another environment, which
    proves nothing.
    """
    from nmt.plugins.results.verify import ANOTHER, DIFFERS, MISSING, RESULT_WIDTH, verify

    checks = verify
    if not config.bundle:
        from nmt.plugins.results.retraining import train_again as checks  # imports torch
    results = set()
    for result, what, detail in checks(config, talker()):
        print(files.printable(f"{result:{RESULT_WIDTH}}  {what}: {detail}"), flush=True)
        results.add(result)
    if results & {DIFFERS, MISSING}:
        return 1
    return 3 if ANOTHER in results else 0


def sentence_and_run(words: list[str]) -> dict[str, str]:
    """An existing folder is the run, and any other word is the sentence; NMTError for two of either."""
    keys = ["run" if exists(word) and Path(word).is_dir() else "sentence" for word in words]
    if len(keys) != len(set(keys)):
        raise NMTError(
            f"{words[-1]}: pass one sentence and one run, as in `nmt attention 'A SENTENCE' runs/mine`"
        )
    return dict(zip(keys, words, strict=True))


def bundle_or_run(words: list[str]) -> dict[str, Any]:
    require(
        len(words) == 1,
        f"{words[-1]}: this command takes one bundle or run, but {words[0]} is also given",
    )
    return {"run" if (Path(words[0]) / "checkpoints").is_dir() else "bundle": words[0]}


REPORT = Command(
    *("report", ReportConfig, report, one_run),
    usage="[RUN]",
    examples=("runs/corpus-30min", "runs/corpus-30min split=test sentences=null"),
    groups={"decode": "paper"},
    memory="pass device=cpu, because training may have filled the device, or sentences=0 to translate nothing",
)
ATTENTION = Command(
    *("attention", AttentionConfig, attention, sentence_and_run),
    usage="'A SENTENCE' [RUN]",
    examples=(
        "'A dog runs across the grass.'",
        "'A dog runs.' runs/corpus-30min target='Ein Hund rennt.'",
    ),
    groups={"decode": "paper"},
)
COMPARE = Command(
    *("compare", CompareConfig, compare, lambda words: {"systems": words}),
    usage="SYSTEM SYSTEM...",
    examples=(
        "base=runs/old tuned=runs/new",
        "new.de old.de reference=corpus/test.de source=corpus/test.en",
    ),
    groups={"decode": "paper"},
    options={"--json": "format=json"},
    entries="systems",
    memory="pass lower resamples, trials or decode.batch_tokens",
)
CITE = Command(
    *("cite", CiteConfig, run_cite, one_run),
    usage="[RUN]",
    examples=(
        "runs/corpus-30min",
        "runs/corpus-30min source=corpus/test.en reference=corpus/test.de",
    ),
    groups={"decode": "paper"},
    memory="pass a lower decode.batch_tokens, or device=cpu",
)
VERIFY = Command(
    *("verify", VerifyConfig, run_verify, bundle_or_run),
    usage="[BUNDLE or RUN]",
    examples=("citation-test.zip reference=test.de", "runs/quickstart step=5520"),
    memory="pass device=cpu, or omit run",
)
