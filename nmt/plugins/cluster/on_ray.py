"""Translation of blocks on a Ray cluster. The only file that knows Ray."""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt.config import TranslateConfig, require
from nmt.errors import NMTError, how_to_install, one_line
from nmt.files import find_model_directory
from nmt.plugins.cluster.blocks import Block, BlockTranslator, claim, cut, find_files, write_blocks
from nmt.translation import what_decides


def require_ray(config: TranslateConfig) -> None:
    """NMTError unless Ray is installed, and chooses the devices."""
    require(bool(find_spec("ray")), f"--ray needs Ray; {how_to_install('ray')}")
    compute = config.translator.compute
    require(compute.devices == 1, f"devices={compute.devices}: --ray has ray.workers for that")
    plain = compute.device in ("auto", "cpu", "cuda", "mps")
    require(plain, f"device={compute.device}: Ray chooses which one; device=cuda")


def on_cluster(
    config: TranslateConfig, worker: type[BlockTranslator], arguments: tuple[Any, ...], blocks: Sequence[Block]
) -> Iterator[dict[str, Any]]:
    """Translate blocks on a cluster, which is started here if there is none; the report of each as it is written."""
    import ray.data
    import ray.exceptions

    keys = config.plugins["ray"]
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(keys.address, logging_level="ERROR", log_to_driver=False, include_dashboard=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise NMTError(f"ray.address={keys.address}: no Ray cluster answers ({one_line(error)})") from error
    try:
        resources = ray.cluster_resources()
        gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
        compute = config.translator.compute
        device = compute.device if compute.device != "auto" else "cuda" if gpus else "cpu"
        if device == "cuda" and not gpus:
            raise NMTError("device=cuda: the Ray cluster has no GPU; use device=cpu")
        workers = keys.workers or min(gpus if device == "cuda" else cores, len(blocks))
        needs = {"num_gpus": 1} if device == "cuda" else {"num_cpus": 1}
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars, context.print_on_execution_start = False, False
        rows = ray.data.from_items([asdict(block) for block in blocks], override_num_blocks=len(blocks))
        compute = replace(compute, device=device, engine=compute.engine.replace("auto", "torch"))
        config = replace(config, translator=replace(config.translator, compute=compute))
        arguments, pool = (config, *arguments), ray.data.ActorPoolStrategy(size=workers)
        yield from rows.map(worker, fn_constructor_args=arguments, compute=pool, **needs).iter_rows()
    except ray.exceptions.RayError as error:
        raise NMTError(f"Ray: {one_line(error)}; the same command goes on from there") from error
    finally:
        ray.shutdown()


def translate_corpus(config: TranslateConfig, console: Console) -> None:
    """Translate the files of `config.input` to Parquet files in `config.output`; files that are there stay."""
    require(config.input != "-", "input: --ray translates files, a folder, or a pattern of names; pass input=FILES")
    require(config.output != "-", "output: --ray writes a folder of Parquet files; pass output=FOLDER")
    require(config.format == "text", f"format={config.format}: --ray translates lines to Parquet; leave format out")
    require_ray(config)
    folder = Path(config.output)
    options, plugins = config.translator, dict(config.translator.plugins)
    if (protection := plugins.get("protection")) and protection.glossary:
        plugins["protection"] = replace(protection, glossary=str(Path(protection.glossary).resolve()))
    runs = [str(find_model_directory(name).resolve()) for name in options.run]
    options = replace(options, run=runs, plugins=plugins, results="scores")  # the Parquet files have scores
    config = replace(config, translator=options, output=str(folder.absolute()))
    with console.status("reading the input"):
        blocks, hashes = cut(find_files(config.input), config.plugins["ray"].lines)
        claim(folder, {"input": hashes, **what_decides(config)})
    write_blocks(blocks, folder.absolute(), console, partial(on_cluster, config, BlockTranslator, ()))
    console.print(f"{sum(block.count for block in blocks):,} lines are translated in {folder}")
