"""Translate a test set and write a bundle that cites the scores, as `nmt cite` does."""

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt import __version__, translation
from nmt.config import MULTIPLE, DecodeConfig, NMTError, TranslatorOptions, build
from nmt.evaluation import score
from nmt.files import (
    ModelDescription,
    expected_search,
    is_prefixed,
    named_model,
    parse_json,
    read_bytes,
    read_description,
    read_mapping,
    write_file,
)
from nmt.plugins.results.bundle import (
    OF_MODEL,
    OF_RUN,
    STATEMENT,
    SUMS,
    Statement,
    digest,
    pack,
    sums,
    text_of,
)
from nmt.plugins.results.options import CiteConfig, check_output
from nmt.plugins.results.test_set import (
    TestSet,
    cited_model,
    digests_of,
    read_test_set,
    search_keys,
)
from nmt.plugins.results.translating import (
    Computation,
    computation_of,
    device_of,
    open_translator,
    translate_lines,
    versions_with,
)
from nmt.translation import EXAMPLE

SOFTWARE = f"""@software{{nmt,
  author = {{{{The nmt authors}}}},
  title = {{nmt: Neural machine translation with the Transformer of ``Attention Is All You Need''}},
  version = {{{__version__}}}
}}"""
"""The BibTeX entry of nmt itself; double braces keep BibTeX from splitting the name."""


@dataclass
class Cited:
    """A model that is cited."""

    name: str
    """The name with which commands name the model."""
    folder: Path
    """The model directory."""
    run: Path | None
    """The run that contains the model; None for a model directory outside a run."""
    description: ModelDescription
    direction: translation.Direction
    """The languages in the names of the bundle's files."""
    decode: DecodeConfig
    """The search settings with which the model translates the test set."""
    computation: Computation
    device: str


def cite(config: CiteConfig, console: Console) -> tuple[Path, str, str]:
    """Translate the test set and write the bundle.

    Returns the bundle's path, its SHA-256, and a sentence that cites it.
    """
    # Resolved once: runs/latest may point to another run while this one is translated.
    folder = cited_model(config.run)
    run = run_of(folder)
    models = translation.find_models([config.run])
    if not config.source and not config.translator.target:
        check_one_language(config.run, models)
    direction = translation.require_languages(config.translator, models)
    # All that can fail comes before the translation, which takes longest.
    test = read_test_set(str(folder), config.source, config.reference, config.prepared)
    output = output_of(config, run)
    options = build(TranslatorOptions, {"run": [config.run]}, base=config.translator)
    translator = open_translator(options)
    sources = test.sources or []
    console.print(f"translating {len(sources):,} lines")
    hypotheses = translate_lines(translator, sources, console)

    description = read_description(folder)
    cited = Cited(
        name=name_of(config.run, folder),
        folder=folder,
        run=run,
        description=description,
        direction=named_languages(description, direction),
        decode=expected_search(config.translator.decode, description),
        # The options that the translator used, not those requested: engine=auto is resolved by now.
        computation=computation_of(translator),
        device=device_of(translator),
    )
    # The statement lists the other files, and the checksums cover the statement, hence this order.
    files = files_of(cited, test, hypotheses, has_text=config.text)
    statement = state(cited, test, hypotheses, sorted(files), config)
    files[STATEMENT] = (json.dumps(asdict(statement), indent=2) + "\n").encode()
    files[SUMS] = sums(files)
    archive = pack(files)
    write_file(output, archive)
    return output, digest(archive), sentence_of(statement, digest(archive))


def state(
    cited: Cited, test: TestSet, hypotheses: list[str], files: list[str], config: CiteConfig
) -> Statement:
    """The statement of a bundle with these files."""
    return Statement(
        run=cited.name if is_prefixed(cited.name) else Path(cited.name).resolve().name,
        test_set=Path(config.source or "test").name,
        source=cited.direction.source,
        target=cited.direction.target,
        lines=len(test.references),
        texts={
            "source": digest(text_of(test.sources or [])),
            "reference": digest(text_of(test.references)),
        },
        model=digests_of(cited.folder),
        decode=asdict(cited.decode),
        language_tag=config.translator.target,
        lowercase=config.lowercase,
        scores=scores_of(hypotheses, test.references, cited, config),
        commands=commands_of(cited, config),
        device=cited.device,
        versions=versions_with(cited.computation.engine),
        files=files,
        computation=cited.computation,
    )


def check_one_language(run: str, models: translation.Models) -> None:
    """Raise NMTError for a model with several target languages: its test set mixes them."""
    if models.tokenizer.tags or translation.languages(models.tokenizer):
        advice = "pass source=FILE reference=FILE target=CODE"
        if models.tokenizer.has_target_tags:
            advice = f"pass source=FILE reference=FILE and both languages, as in {EXAMPLE}"
        raise NMTError(f"run={run} has several target languages; {advice}")


def named_languages(
    description: ModelDescription, direction: translation.Direction
) -> translation.Direction:
    """The languages that a model states, except where it translates between many."""
    source = description.source
    target = description.target
    return translation.Direction(
        direction.source or source if source == MULTIPLE else source,
        direction.target or target if target == MULTIPLE else target,
    )


def name_of(run: str, folder: Path) -> str:
    """The name of a run or model directory that will still name the same model tomorrow."""
    if is_prefixed(run):
        return named_model(run).name
    return str(run_of(folder) or folder)


def run_of(folder: Path) -> Path | None:
    """The run that contains a model directory."""
    run = folder.parent
    if folder.name == "model" and (run / "config.yaml").is_file():
        return run
    return None


def output_of(config: CiteConfig, run: Path | None) -> Path:
    """The path of the bundle; NMTError if it exists or cannot be written."""
    name = f"citation-{Path(config.source or 'test').name}.zip"
    default = run / name if run else Path(name)
    output = check_output(Path(config.output or default), name)
    if output.exists():
        # Whoever published its SHA-256 could no longer show the bundle.
        advice = "pass output=FILE or remove it"
        raise NMTError(f"{output} exists and may have been cited: {advice}")
    return output


def files_of(
    cited: Cited, test: TestSet, hypotheses: list[str], has_text: bool
) -> dict[str, bytes]:
    """The files of a bundle, except for the statement and the checksums.

    `has_text` adds the source and reference lines.
    """
    files = {}
    paths = [cited.folder / name for name in OF_MODEL]
    if cited.run:
        paths += [cited.run / name for name in OF_RUN]
    for path in paths:
        if path.exists():
            files[path.name] = read_bytes(path)
    source, target = cited.direction
    files[f"hypotheses.{target}"] = text_of(hypotheses)
    # Only on request, because the license of a test set may forbid it.
    if has_text:
        files[f"source.{source}"] = text_of(test.sources or [])
        files[f"reference.{target}"] = text_of(test.references)
    return files


def language_of(cited: Cited, config: CiteConfig) -> str:
    """The language of the translations."""
    return translation.language_of(config.translator.target or cited.direction.target)


def scores_of(
    hypotheses: list[str], references: list[str], cited: Cited, config: CiteConfig
) -> list[dict[str, Any]]:
    scores = score(
        hypotheses,
        references,
        config.metrics,
        language_of(cited, config),
        config.lowercase,
        config.tokenize,
    )
    return [asdict(one) for one in scores]


def commands_of(cited: Cited, config: CiteConfig) -> list[str]:
    """The commands that train the model (if recorded), translate the test set and score."""
    # The commands name files as the bundle does, so that they work in an unpacked bundle.
    source = f"source.{cited.direction.source}"
    target = cited.direction.target
    options = [f"run={cited.name}", f"engine={cited.computation.engine}"]
    if cited.computation.precision != "float32":
        options.append(f"precision={cited.computation.precision}")
    if config.translator.target:
        options.append(f"target={config.translator.target}")
    options += search_keys(cited.decode)
    translate = f"nmt translate {shlex.join(options)} < {source} > hypotheses.{target}"

    score = f"nmt score hypotheses.{target} reference.{target}"
    score += f" metrics=[{','.join(config.metrics)}] language={language_of(cited, config)}"
    if config.tokenize:
        score += f" tokenize={config.tokenize}"
    if config.lowercase:
        score += " lowercase=true"

    train = training_command(cited.run)
    return [train, translate, score] if train else [translate, score]


def training_command(run: Path | None) -> str | None:
    """The command that started a run; None if it is not recorded."""
    environment = run / "environment.json" if run else None
    if not environment or not environment.exists():
        return None
    command = read_mapping(environment, parse_json).get("command")
    # The file is the user's, who may have edited it.
    return command if isinstance(command, str) else None


def sentence_of(statement: Statement, sha256: str) -> str:
    """A sentence that cites the scores of a bundle."""
    figures = []
    for one in statement.scores:
        figures.append(f"{one['name']} {one['value']:.2f} ({one['signature']})")
    lines = f"{statement.lines:,} lines of {statement.test_set}"
    decode = statement.decode
    computation = statement.computation
    parts = [
        "; ".join([*figures, lines]),
        f"{statement.source}-{statement.target}",
        f"by {statement.run}",
        f"beam {decode['beam_size']}",
        f"length penalty {decode['length_penalty']}",
        f"{computation.engine} {computation.precision}",
        f"nmt {statement.versions['nmt']}",
        f"bundle SHA-256 {sha256}.",
    ]
    return ", ".join(parts)
