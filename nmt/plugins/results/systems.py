"""Translations of a test set by several systems: read from files, or computed in one process per model."""

import re
import time
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

import torch

from nmt.config import DecodeConfig, JobConfig, NMTError, TranslatorOptions, require
from nmt.files import find_model_directory, is_parser, read_description
from nmt.hardware import proc_value, processor, usable_cores
from nmt.plugins.results.test_set import TestSet, search_keys
from nmt.preparation import begin, worker_pool
from nmt.registry import entries_of, import_attribute
from nmt.search import choose_device
from nmt.text import TARGET, not_parallel, read_texts
from nmt.translation import load_translator, warn, with_engine


@dataclass
class Cost:
    """The cost of translating the test set, excluding the time to load the model."""

    seconds: float
    lines: int
    tokens: int  # subwords in the translations
    memory: int  # peak usage of the process or GPU, in bytes; 0: unknown
    size: int  # of the weights on disk, in bytes
    device: str
    keys: str  # engine, precision, and search keys that differ from the defaults


@dataclass
class Seed:
    path: str
    hypotheses: list[str] = field(default_factory=list)
    cost: Cost | None = None  # None for a file of translations


@dataclass
class System:
    """A model or file of translations, or several that differ only in their seed."""

    name: str
    seeds: list[Seed]


def read_systems(texts: list[str]) -> list[System]:
    """The systems named by words such as PATH or NAME=[A,B]; NMTError for fewer than two or for duplicates."""
    require(len(texts) > 1, "systems: name at least two, as in `nmt compare runs/new runs/old`")
    counts, systems = Counter(Path(text).name for text in texts), list[System]()
    for text in texts:
        if group := re.fullmatch(r"([\w.+-]+)=\[(.*)\]", text):
            systems.append(System(group[1], [Seed(path.strip()) for path in group[2].split(",")]))
        else:
            name = Path(text).name
            systems.append(System(name if name and counts[name] == 1 else text, [Seed(text)]))
    paths = [seed.path for system in systems for seed in system.seeds]
    for given in (paths, [system.name for system in systems]):
        name, count = Counter(given).most_common(1)[0]
        require(count == 1, f"{name}: this system is given twice; omit one")
    for path in paths:
        exists = bool(path) and Path(path).exists()
        require(exists, f"{path or 'an empty name'}: no such file or folder; pass a run, a model or a file")
        if Path(path).is_dir() and is_parser(read_description(find_model_directory(path, "systems"))):
            raise NMTError(f"{path}: is a parser; score its trees with `nmt score metrics=[brackets]`")
    return systems


def translated(seed: Seed, test: TestSet, options: TranslatorOptions) -> Seed:
    """The translations of a test set, from a file or by a model; NMTError if their number is wrong."""
    path = seed.path
    if seed.hypotheses or not Path(path).is_dir():
        hypotheses = seed.hypotheses or list(read_texts(path))
        if len(hypotheses) != len(test.references):
            raise not_parallel((path, test.name), (len(hypotheses), len(test.references)))
        return Seed(path, hypotheses)
    if test.sources is None:
        raise NMTError(f"{path}: a model needs source lines to translate; pass source=FILE")
    folder = find_model_directory(path, "systems")
    config = with_engine(replace(options, run=[str(folder)]), warn)
    with worker_pool(1, mp_context=get_context("spawn"), initializer=begin) as pool:
        try:
            return pool.submit(translate_here, path, config, test.sources).result()
        except BrokenProcessPool as error:
            raise NMTError(f"{path}: the translation process died, perhaps out of memory") from error


def translate_here(path: str, config: TranslatorOptions, sources: list[str]) -> Seed:
    """Translate as `nmt translate` does and measure the cost, after translating one line to warm up."""
    translator, compute = load_translator(config, warn), config.compute
    translator.translate(sources[:1])
    start = time.perf_counter()
    hypotheses = [best.text for best, *_ in translator.stream(sources, JobConfig.buffer)]
    seconds = time.perf_counter() - start
    tokens = sum(map(len, translator.tokenizer.encode(hypotheses, TARGET)))
    if compute.engine == "torch" and (device := choose_device(compute.device)).startswith("cuda"):
        memory, name = torch.cuda.max_memory_allocated(device), torch.cuda.get_device_name(device)
    else:
        peak, cores = proc_value("self/status", "VmHWM"), compute.threads or usable_cores()
        memory = 1024 * int(peak.split()[0]) if peak else 0
        name = f"{processor()}, {cores} core{'s' if cores > 1 else ''}"
    folder, weights_of = Path(config.run[0]), entries_of("engine")[compute.engine].facts.get("weights")
    weights = import_attribute(weights_of)(folder, compute.precision) if weights_of else folder / "model.safetensors"
    keys = [f"engine={compute.engine}", f"precision={compute.precision}"]
    if (protection := config.plugins.get("protection")) and protection.protect != ["usual"]:
        keys.append(f"protect={','.join(protection.protect) or 'none'}")
    # batch_tokens does not affect translations.
    keys += search_keys(replace(translator.engine.config, batch_tokens=DecodeConfig.batch_tokens), "beam_size")
    cost = Cost(seconds, len(sources), tokens, memory, weights.stat().st_size, name, " ".join(keys))
    return Seed(path, hypotheses, cost)
