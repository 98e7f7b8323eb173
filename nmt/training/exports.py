"""Which programs a run's model can be exported to, from the exporters' tables. No torch import."""

from nmt.config import (
    ExperimentConfig,
    exported_settings,
    sources_of,
    structured_targets,
    to_tree,
)
from nmt.extensions import ExporterEntry
from nmt.registry import entries_of


def exports_in_words(config: ExperimentConfig, vocabulary_size: int) -> str:
    """The possible exports of the model, and the needs of the other exports; empty for parsers."""
    if structured_targets(config.data.kind):
        return ""
    tokenizer = {**to_tree(config.tokenizer), "vocabulary_size": vocabulary_size}
    tags = set()
    for source in sources_of(config.data):
        if source.data.tag:
            tags.add(source.data.tag)
    settings = exported_settings(config.model, tokenizer, config.data.kind, sorted(tags))
    able: list[str] = []
    needs: list[str] = []
    for name, entry in entries_of(ExporterEntry).items():
        program = entry.program()
        # An exporter without a table gives nothing to compare the settings with.
        if program is None:
            continue
        problems = list(program.problems(settings))
        if problems:
            # No `needs`: the program lacks the key altogether.
            required = [problem.needs or f"no {problem.key}" for problem in problems]
            needs.append(f"{name} needs {', '.join(required)}")
        else:
            able.append(name)
    if able:
        return "; ".join([f"the model can be exported to {enumerated(able)}", *needs])
    return "; ".join(needs)


def enumerated(names: list[str]) -> str:
    """Names in a sentence: a, b and c."""
    *others, last = names
    if not others:
        return last
    return f"{', '.join(others)} and {last}"
