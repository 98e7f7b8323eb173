"""`nmt report`: from a run directory to one HTML page."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nmt.config import DecodeConfig, ModelConfig
from nmt.data.prepared import PreparedCorpus
from nmt.errors import NMTError
from nmt.model_directory import shapes
from nmt.model_directory.description import read_tokenizer
from nmt.model_directory.weights import load_model
from nmt.report.content import Content
from nmt.report.output import check_output
from nmt.report.page import page
from nmt.report.quality import TEXT, TREES, Quality, assess, in_blocks
from nmt.report.run import Facts, Run, find_run, open_run
from nmt.storage.foreign import build, matches
from nmt.storage.whole import write_file
from nmt.text.tokenizers import load_tokenizer, tokenizer_fingerprint
from nmt.training.averaging import averaged_model
from nmt.training.checkpoints import load_checkpoint
from nmt.training.run_folder import list_checkpoints
from nmt.translation.load import choose_device
from nmt.translation.parser import parse_lines
from nmt.translation.torch_translator import torch_translator
from nmt.translation.translator import Translator


def choose_output(config: Any, run: Path) -> Path:
    """The file to write; NMTError where that cannot be, before minutes are spent on translating."""
    output = Path(config.output) if config.output else run / "report.html"
    return check_output(output, output / "report.html")


def checkpoint_facts(path: Path) -> Facts:
    """What a checkpoint tells of the training that led to it."""
    content = load_checkpoint(path)
    about, meters = content["nmt"], content["callbacks"].get("MetricsCallback", {})
    tokens, devices, lightning = meters.get("tokens"), meters.get("devices"), content.get("pytorch-lightning_version")
    return Facts(
        updates=int(content["global_step"]),
        vocabulary_size=about["vocabulary_size"],
        corpus=about["corpus"],
        tokens=tokens if matches(tokens, int) else None,
        devices=devices if isinstance(devices, str) else None,
        versions={"lightning": lightning} if lightning else {},
    )


def count_parameters(run: Run, facts: Facts | None) -> int | None:
    """Of the run's model, without making its weights; None where its vocabulary is not known yet."""
    size = facts.vocabulary_size if facts else run.manifest.vocabulary_size if run.manifest else None
    if size is None:
        return None
    path = run.folder / "config.yaml"
    return shapes.count_parameters(build(ModelConfig, run.config.get("model"), f"{path}, model"), size)


def load_newest(run: Run, decode: DecodeConfig, device: str) -> tuple[Translator, str]:
    """The model directory's translator, or the last checkpoint's, and what it is in words."""
    if run.model:
        folder = run.folder / "model"
        translator = torch_translator([load_model(folder, device)], read_tokenizer(folder), decode)
        return translator, f"the model in {folder}, update {run.model.updates:,}"
    path = list_checkpoints(run.folder)[-1]
    average = averaged_model([path])
    tokenizer_file = run.folder / "tokenizer.model"
    tokenizer = load_tokenizer(tokenizer_file)
    if tokenizer_fingerprint(tokenizer_file) != average.last["nmt"]["tokenizer"]:
        raise NMTError(f"{tokenizer_file} is not the tokenizer that {path} was trained with")
    translator = torch_translator([average.model.to(device)], tokenizer, decode)
    return translator, f"the checkpoint of update {average.updates[0]:,}"


def held_out(run: Run, config: Any) -> tuple[list[str], list[str], int]:
    """The lines to translate, their references, and how many lines the whole set has."""
    assert run.manifest
    corpus = PreparedCorpus(run.prepared, run.manifest)
    if not (run.prepared / config.split).is_dir():
        raise NMTError(f"split={config.split}: {run.prepared} holds no {config.split} set; use split=valid")
    sources, references = corpus.text(config.split)
    return sources[: config.sentences], references[: config.sentences], len(sources)


def in_progress(translate: Callable[[list[str]], list[str]], lines: list[str], console: Console) -> list[str]:
    """What becomes of each line; NMTError where the device's memory is full, as training may have filled it."""
    columns = (TextColumn("translating"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(lines))
        try:
            return in_blocks(translate, lines, lambda count: progress.update(task, advance=count))
        except torch.OutOfMemoryError as error:
            raise NMTError("no memory left on the device; pass device=cpu, or sentences=0 to translate none") from error


def assess_run(run: Run, config: Any, console: Console) -> tuple[Quality, str]:
    """Translate or parse a held-out set with the newest model; the scores, and what was done in words."""
    sources, references, whole = held_out(run, config)
    parses = run.manifest is not None and run.manifest.is_treebank
    decode = as_parser(run, config.decode) if parses else config.decode
    translator, model = load_newest(run, decode, choose_device(config.device))
    lines = f"{len(sources):,}" if len(sources) == whole else f"the first {len(sources):,} of {whole:,}"
    name = {"valid": "validation", "test": "test"}[config.split]
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty}"
    done = f"{lines} lines of the {name} set, {search}, by {model}"
    console.print(f"{'parsing' if parses else 'translating'} {done}")

    def translate(block: list[str]) -> list[str]:
        if parses:
            return [tree.bracketed() for tree, _ in parse_lines(translator, block)]
        return [best[0].text for best in translator.translate(block)]

    hypotheses = in_progress(translate, sources, console)
    measure = TREES if parses else TEXT
    return assess(sources, references, hypotheses, config.examples, measure), f"{done[0].upper()}{done[1:]}."


def as_parser(run: Run, decode: DecodeConfig) -> DecodeConfig:
    """A search whose output may be as long as in the run's own validation: trees are longer than translations."""
    found = run.config.get("decode", {}).get("max_extra_length")
    longest = found if matches(found, int) else decode.max_extra_length
    return replace(decode, max_extra_length=max(decode.max_extra_length, longest))


def report(config: Any, defaults: dict[str, Any], console: Console) -> Path:
    """Write the page of `config.run`, and give its path. `defaults` is what `nmt train` has without options.

    Raises NMTError where there is no run, nothing is logged yet, or the page cannot be written.
    """
    folder = find_run(config.run)
    run = open_run(folder, config.prepared)
    output = choose_output(config, folder)
    checkpoints = list_checkpoints(folder)
    facts = run.model or (checkpoint_facts(checkpoints[-1]) if checkpoints else None)
    if facts and run.manifest and facts.corpus != run.manifest.fingerprint:
        run.manifest = None
        run.corpus_problem = (
            f"{run.prepared} holds another corpus than the one that this run was trained on "
            f"(fingerprint {facts.corpus[:16]}); pass prepared=FOLDER where that lies"
        )
    quality = None
    if config.sentences == 0:
        said = "None were asked for (sentences=0)."
    elif not facts:
        said = "The run has no checkpoint yet."
    elif not run.manifest:
        raise NMTError(f"there is nothing to translate: {run.corpus_problem}, or sentences=0 to translate nothing")
    else:
        quality, said = assess_run(run, config, console)
    now = datetime.now().astimezone()
    content = Content(run, facts, count_parameters(run, facts), defaults, quality, said, now)
    write_file(output, page(content))
    return output
