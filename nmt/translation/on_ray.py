"""`nmt translate --ray`: a corpus to a folder of Parquet files, on a Ray cluster. The only file that knows Ray."""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt.config import TranslateConfig
from nmt.errors import NMTError, how_to_install, one_line
from nmt.model_directory.description import find_model_directory
from nmt.translation.load import load_translator
from nmt.translation.parquet import Block, claim, cut, find_files, read_block, write_block
from nmt.translation.resumption import what_decides
from nmt.translation.segments import RefusedLine
from nmt.translation.translate import SUMMARIES, remark, summarize
from nmt.translation.translator import Translator, lines_of


class BlockTranslator:
    """A model in a Ray actor, which translates blocks and writes their files."""

    def __init__(self, config: TranslateConfig) -> None:
        self.config, self.counts, self.notices = config, Counter[str](), list[str]()
        self.translator: Translator | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate a block; a row for the driver, which holds the error if there was one."""
        self.notices.clear()
        before, block, error = self.counts.copy(), Block(**row), ""
        name = Path(block.file).name
        try:
            self.translate(block, name)
        except RefusedLine as problem:
            error = f"{name}, line {block.first + problem.index}: {problem.problem}"
        except NMTError as problem:
            error = str(problem)
        except Exception as problem:
            error = f"{block.file}, from line {block.first}: {type(problem).__name__}: {one_line(problem)}"
        counts = {kind: self.counts[kind] - before[kind] for kind in SUMMARIES}
        return {"lines": block.count, "error": error, "notices": "\n".join(self.notices), **counts}

    def translate(self, block: Block, name: str) -> None:
        self.translator = self.translator or load_translator(self.config, self.notices.append)
        lines, size = read_block(block, self.config.ray.column, self.notices.append), self.config.buffer
        parts = (lines[begin : begin + size] for begin in range(0, len(lines), size))
        translations = [best for best, *_ in lines_of(map(self.translator.translate_block, parts))]
        for number, translation in enumerate(translations, block.first):
            remark(translation, f"{name}, line {number}", self.counts, self.notices.append)
        write_block(Path(self.config.output), block, lines, translations)


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to a Ray cluster, or start one on this machine."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(address, logging_level="ERROR", log_to_driver=False, include_dashboard=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise NMTError(f"ray.address={address}: no Ray cluster answers ({one_line(error)})") from error
    try:
        yield
    finally:
        ray.shutdown()


def on_cluster(config: TranslateConfig, blocks: list[Block]) -> Iterator[dict[str, Any]]:
    """Translate blocks; gives the row of each one as soon as it is written."""
    import ray.data

    resources = ray.cluster_resources()
    gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    device = config.device if config.device != "auto" else "cuda" if gpus else "cpu"
    if device == "cuda" and not gpus:
        raise NMTError("device=cuda: the Ray cluster has no GPU; use device=cpu")
    workers = config.ray.workers or min(gpus if device == "cuda" else cores, len(blocks))
    needs = {"num_gpus": 1} if device == "cuda" else {"num_cpus": 1}
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars, context.print_on_execution_start = False, False
    rows = ray.data.from_items([asdict(block) for block in blocks], override_num_blocks=len(blocks))
    arguments, pool = (replace(config, device=device),), ray.data.ActorPoolStrategy(size=workers)
    yield from rows.map(BlockTranslator, fn_constructor_args=arguments, compute=pool, **needs).iter_rows()


def translate_blocks(config: TranslateConfig, blocks: list[Block], console: Console) -> None:
    """Translate blocks with progress and notices; NMTError for the first error of a worker."""
    import ray.exceptions

    def notice(words: str) -> None:
        console.print(f"nmt: {words}")

    done, counts = 0, Counter[str]()
    try:
        with cluster(config.ray.address), console.status("starting") as status:
            for row in on_cluster(config, blocks):
                if row["error"]:
                    raise NMTError(row["error"])
                for words in row["notices"].splitlines():
                    notice(words)
                counts.update({kind: row[kind] for kind in SUMMARIES})
                done += row["lines"]
                status.update(f"translated {done:,} lines")
    except ray.exceptions.RayError as error:
        raise NMTError(f"Ray: {one_line(error)}; the same command goes on from there") from error
    summarize(counts, notice)


def translate_corpus(config: TranslateConfig, console: Console) -> None:
    """Translate the files of `config.input` to Parquet files in `config.output`; files that are there stay."""
    if not find_spec("ray"):
        raise NMTError(f"--ray needs Ray; {how_to_install('ray')}")
    folder, output = Path(config.output), Path(config.output).absolute()
    runs = [str(find_model_directory(name).resolve()) for name in config.run]
    glossary = config.glossary and str(Path(config.glossary).resolve())
    config = replace(config, run=runs, output=str(output), glossary=glossary)
    settings = {"ray.lines": config.ray.lines, "ray.column": config.ray.column}
    with console.status("reading the input"):
        blocks, hashes = cut(find_files(config.input), config.ray.lines, config.ray.column)
        claim(folder, {"input": hashes, **what_decides(config), **settings})
    missing = [block for block in blocks if not (output / block.name).is_file()]
    if len(missing) < len(blocks):
        console.print(f"{len(blocks) - len(missing):,} of {len(blocks):,} files are there already")
    if missing:
        translate_blocks(config, missing, console)
    lost = sum(not (output / block.name).is_file() for block in missing)
    if lost:
        raise NMTError(f"{lost:,} files are not in {output}: all machines of the cluster must share that folder")
    console.print(f"{sum(block.count for block in blocks):,} lines are translated in {folder}")
