"""Compare systems: the record of `nmt compare`, its HTML page, and `nmt.compare` for Python."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt import commands, evaluation, files
from nmt.config import NMTError, build
from nmt.plugins.results.breakdown import look_closer
from nmt.plugins.results.comparison_page import comparison_page
from nmt.plugins.results.comparison_text import as_text
from nmt.plugins.results.options import CompareConfig, check_output
from nmt.plugins.results.scorers import Scorers
from nmt.plugins.results.significance import measure
from nmt.plugins.results.systems import Seed, System, read_systems, translated
from nmt.plugins.results.test_set import Text, read_test_set

OFFERED = (
    "prepared",
    "metrics",
    "metric_options",
    "tokenize",
    "seed",
    "resamples",
    "trials",
    "alpha",
    "output",
    "translator",
)
"""The options of `nmt compare` that `nmt.compare` takes."""


class Comparison(dict[str, Any]):
    """The results, with the keys of `nmt compare --json`; `str` returns what the command prints."""

    def __str__(self) -> str:
        return as_text(self)


def compared(
    systems: list[System],
    source: Text | None,
    reference: Text | None,
    config: CompareConfig,
    console: Console,
) -> dict[str, Any]:
    """Translate, measure and test; write the page if `config` names one.

    Returns what `--json` prints.
    """
    if config.output:
        # First, because the translation below takes long.
        check_output(Path(config.output), "compare.html")
    # Without a reference, the test set is that of a corpus, which has sources.
    has_sources = source is not None or reference is None
    evaluation.check_metrics(config.metrics, config.metric_options.plugins, has_sources)
    test = read_test_set(systems[0].seeds[0].path, source, reference, config.prepared)
    for system in systems:
        system.seeds = [translated(seed, test, config.translator) for seed in system.seeds]
    # Only now are the references known, on whose language both depend.
    config = replace(
        config,
        tokenize=evaluation.bleu_tokenizer(config.tokenize, test.language, test.references),
        metrics=evaluation.usable_metrics(config.metrics, test.language, test.references),
    )
    tree = {
        "test_set": test.name,
        "lines": len(test.references),
        "seed": config.seed,
        "resamples": config.resamples,
        "trials": config.trials,
        "alpha": config.alpha,
        "tokenize": config.tokenize,
    }
    with console.status("testing"):
        scorers = Scorers.of_systems(systems, test, config)
        tree |= measure(systems, test.references, config, scorers)
        # The breakdown resamples every bucket and the text output does not show it, so it is made
        # only if somebody reads it.
        if config.output or config.format == "json":
            tree["buckets"], counted = look_closer(systems, test, config, scorers)
    if config.output:
        page = comparison_page(tree, systems, test, counted)
        files.write_file(Path(config.output), page)
    return tree


def compare(
    systems: Iterable[str | Path] | Mapping[str, Iterable[str]],
    source: Text | None = None,
    reference: Text | None = None,
    **options: Any,
) -> Comparison:
    """Compare systems on a test set, and test whether each differs significantly from the first.

    `systems` are runs, model directories or files of translations, or a mapping from names to lists
    of translations. `source` and `reference` are files or lists of lines. `options` are further
    keys of `nmt compare`.
    """
    # A string is iterable, and would be taken for a list of one-letter paths.
    if isinstance(systems, str) or not isinstance(systems, Iterable):
        problem = "must be a list of runs or files, or a mapping"
        raise NMTError(f"systems={systems!r:.60}: {problem}")
    # From Python, a page is written only on request.
    config = build(CompareConfig, {"output": None, **options}, offered=OFFERED)
    if isinstance(systems, Mapping):
        if len(systems) < 2:
            raise NMTError("systems: name at least two")
        rivals = [System(name, [Seed(name, [*lines])]) for name, lines in systems.items()]
    else:
        rivals = read_systems([str(system) for system in systems])
    return Comparison(compared(rivals, source, reference, config, commands.talker()))
