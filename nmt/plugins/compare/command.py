"""`nmt compare`: several systems on one test set, and whether they differ significantly."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.commands.console import talker
from nmt.config import (
    Command,
    Compute,
    Option,
    TranslatorOptions,
    as_list,
    check_scoring,
    inline,
    number,
    require,
    require_choice,
)
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.plugins.compare.systems import System, TestSet
    from nmt.plugins.compare.translations import Translated


@dataclass
class CompareConfig:
    """The tree of `nmt compare`."""

    systems: Any = field(default_factory=list)
    """Runs, model directories, exported models or files of translations; words are short for it. Several seeds of one
    system are NAME=[A,B]. All are tested against the first."""
    source: str | None = None
    """File of source lines; null: the test set of the first system's corpus."""
    reference: str | None = None
    """File of reference translations; null: those of the test set of the first system's corpus."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: where the first system's run found it."""
    split: str = "test"
    """The set of the prepared corpus: test or valid."""
    training: str | None = None
    """File of source lines, to count words of training in; null: the training text of the prepared corpus, if known."""
    metrics: Any = field(default_factory=lambda: ["bleu", "chrf", "ter"])
    """bleu, chrf, chrf++, ter: the first decides for fail_if, and is that of the buckets."""
    tokenize: str | None = None
    """Tokenizer of BLEU, as in `nmt score`; null: the recommended one for the target language."""
    fail_if: str | None = None
    """worse: exit code 1 if the first system is significantly worse than the second; null: never."""
    seed: int = number(12345, 1, 2**63 - 1)
    """Seed of all tests; SACREBLEU_SEED of sacreBLEU's command line."""
    resamples: int = number(1000, 100, 1_000_000)
    """Resamples of the paired bootstrap."""
    trials: int = number(10000, 100, 10_000_000)
    """Trials of approximate randomisation."""
    alpha: float = number(0.05, 1e-6, 0.5)
    """Both tests have to be below it for a difference to be significant."""
    output: str | None = "compare.html"
    """The HTML page to write; null: none."""
    examples: int = number(25, 0, 10_000)
    """The number of largest wins, and of largest losses, on the page."""
    format: str = "text"
    """text or json."""
    translator: TranslatorOptions = inline(
        TranslatorOptions(compute=Compute("torch")),
        *("target", "engine", "precision", "threads", "device", "protect", "decode"),
    )

    def __post_init__(self) -> None:
        self.systems, self.metrics = as_list(self.systems), as_list(self.metrics)
        check_scoring(self.metrics, self.tokenize, "paired")
        require(len(set(self.metrics)) == len(self.metrics), "metrics: one is given twice")
        require_choice("split", self.split, ("test", "valid"))
        require_choice("format", self.format, ("text", "json"))
        if self.fail_if is not None:
            require_choice("fail_if", self.fail_if, ("worse",))


def is_same(output: Path, other: Path) -> bool:
    """True if two names are of one file."""
    return output.exists() and output.samefile(other)


def translate_all(config: CompareConfig, systems: "list[System]", test: "TestSet") -> "list[list[Translated]]":
    """The translations of all seeds of all systems."""
    from nmt.plugins.compare.systems import is_model
    from nmt.plugins.compare.translations import translations

    translated: list[list[Translated]] = []
    for system in systems:
        translated.append([])
        for member in system.members:
            console = talker()
            if is_model(member):
                console.print(f"{member}: {len(test.references):,} lines of {test.name}")
            with console.status("translating, unless an earlier comparison did"):
                translated[-1].append(translations(member, test, config.translator))
    return translated


def run(config: CompareConfig) -> int:
    """Print the numbers and write the page; returns the exit code."""
    from nmt.plugins.compare.systems import read_systems, read_test_set
    from nmt.plugins.report.pages import check_output

    systems = read_systems(config.systems)
    if config.output:
        read = [config.source, config.reference, config.training, *(each for own in systems for each in own.members)]
        if any(name and Path(name).is_file() and is_same(Path(config.output), Path(name)) for name in read):
            raise NMTError(f"output={config.output} is an input, which would be lost: name another file")
        check_output(Path(config.output), "compare.html")
    test = read_test_set(systems[0].members[0], config.source, config.reference, config.prepared, config.split)

    from nmt.evaluation import bleu_tokenizer
    from nmt.files import write_file
    from nmt.plugins.compare.buckets import look_closer
    from nmt.plugins.compare.page import compare_page
    from nmt.plugins.compare.significance import FEWEST_LINES, Sampling, measure
    from nmt.plugins.compare.summary import Comparison, as_json, as_text

    console = talker()
    translated = translate_all(config, systems, test)
    tokenize = bleu_tokenizer(config.tokenize, test.language, test.references)
    sampling = Sampling(config.seed, config.resamples, config.trials, config.alpha, tokenize)
    texts = [[seed.hypotheses for seed in seeds] for seeds in translated]
    with console.status("testing"):
        numbers = measure(texts, test.references, config.metrics, sampling)
        details = None
        if config.output or config.format == "json":
            details = look_closer(texts, test, config.training, config.metrics[0], sampling)
    found = Comparison(test, systems, translated, config.metrics, numbers, sampling)
    sys.stdout.write(as_json(found, details.rows) if details and config.format == "json" else as_text(found))
    if details and config.output:
        write_file(Path(config.output), compare_page(found, details, config.examples))
        console.print(f"the page is {config.output}")
    if config.fail_if == "worse" and found.first_is_worse:
        console.print(f"nmt: {systems[0].name} is significantly worse than {systems[1].name} (fail_if=worse)")
        return 1
    if config.fail_if == "worse" and len(test.references) < FEWEST_LINES:
        console.print(f"nmt: fail_if=worse cannot fail with fewer than {FEWEST_LINES} lines")
    return 0


COMMAND = Command(
    "compare",
    CompareConfig,
    run,
    lambda words: {"systems": words},
    usage="SYSTEM SYSTEM...",
    example="runs/new runs/old",
    keys=(
        "source=test.en reference=test.de fail_if=worse metrics=[chrf,bleu] split=valid prepared=data/mine "
        "training=train.en output=page.html format=json decode.beam_size=8 device=cpu"
    ),
    options={"--json": Option("Short for format=json.", override="format=json")},
    entries="systems",
    memory="pass lower resamples, trials or decode.batch_tokens",
    groups={"decode": "paper"},
)
