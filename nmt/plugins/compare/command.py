"""`nmt compare`: test whether systems differ significantly on a test set."""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from nmt.commands import talker
from nmt.config import BLEU_TOKENIZERS, Command, Option, TranslatorOptions, choice, inline, metric_names, number
from nmt.errors import NMTError


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
        if not 0 < len(self.metrics) == len(set(self.metrics)):
            raise NMTError("metrics: name at least one, without duplicates")
        if self.output is not None and not self.output.endswith(".html"):
            raise NMTError(f"output={self.output}: must end in .html")


def run(config: CompareConfig) -> int:
    """Print the numbers, write the page, and return the exit code."""
    from nmt.files import check_output, write_file
    from nmt.plugins.compare.systems import read_systems, translated
    from nmt.translation import read_test_set

    console, systems = talker(), read_systems(config.systems)
    if config.output:
        check_output(Path(config.output), "compare.html")
    test = read_test_set(systems[0].seeds[0].path, config.source, config.reference, config.prepared)

    from nmt.evaluation import bleu_tokenizer
    from nmt.plugins.compare.page import as_text, compare_page
    from nmt.plugins.compare.significance import FEWEST_LINES, Sampling, look_closer, measure

    for system in systems:
        with console.status(f"translating {test.name} unless it is cached"):
            system.seeds = [translated(seed.path, test, config.translator) for seed in system.seeds]
    tokenize = bleu_tokenizer(config.tokenize, test.language, test.references)
    sampling = Sampling(config.seed, config.resamples, config.trials, config.alpha, tokenize)
    with console.status("testing"):
        measured = measure(systems, test.references, config.metrics, sampling)
        if config.output or config.format == "json":
            details = look_closer(systems, test, config.metrics[0], sampling)
    tree = {"test_set": test.name, "lines": len(test.references), **asdict(sampling), **measured}
    if config.format == "json":
        print(json.dumps({**tree, "buckets": details.rows}, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(as_text(tree))
    if config.output:
        write_file(Path(config.output), compare_page(tree, test, details))
        console.print(f"the page is {config.output}")
    if config.fail_if and tree["first_is_worse"]:
        console.print(f"nmt: {systems[0].name} is significantly worse than {systems[1].name} (fail_if=worse)")
        return 1
    if config.fail_if and len(test.references) < FEWEST_LINES:
        console.print(f"nmt: fail_if=worse cannot fail with fewer than {FEWEST_LINES} lines")
    return 0


COMMAND = Command(
    "compare",
    CompareConfig,
    run,
    lambda words: {"systems": words},
    usage="SYSTEM SYSTEM...",
    example="runs/new runs/old",
    groups={"decode": "paper"},
    options={"--json": Option("Short for format=json.", override="format=json")},
    entries="systems",
    memory="pass lower resamples, trials or decode.batch_tokens",
)
