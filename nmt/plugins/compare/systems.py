"""Systems, and their translations of a test set: read from a file, or made here once and kept in the cache.

What a model's translations cost is measured in a process that translates nothing else.
"""

import hashlib
import json
import re
import time
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from nmt import __version__
from nmt.config import DecodeConfig, JobConfig, TranslatorOptions, build
from nmt.errors import NMTError
from nmt.files import (
    EXPORTED,
    LARGE,
    cache_folder,
    find_model_directory,
    is_exported,
    is_parser,
    parse_json,
    read_description,
    read_mapping,
    sha256,
    write_file,
)
from nmt.hardware import proc_value, processor, usable_cores
from nmt.preparation import begin, worker_pool
from nmt.registry import entries_of, import_attribute
from nmt.search import Engine, choose_device
from nmt.text import TARGET, not_parallel, read_texts
from nmt.translation import TestSet, load_translator, warn, what_decides

GROUP = re.compile(r"(?P<name>[\w.+-]+)=\[(?P<members>.*)\]")
"""Several seeds of one system, NAME=[A,B]."""
SEARCH = ("beam_size", "length_penalty", "length_penalty_kind")
"""Keys of `decode` that are reported of a beam search, whatever they are; the first one of greedy search."""


@dataclass
class Cost:
    """What it took to translate the test set here."""

    seconds: float
    """Without the time to load the model."""
    lines: int
    tokens: int
    """Subwords of the translations."""
    memory: int
    """Peak of the process, or of the GPU, in bytes; 0 where it is unknown."""
    size: int
    """Of the weights on the disk, in bytes."""
    device: str
    keys: str
    """Those of `nmt translate` that decided: engine, precision, and of the search what is not as usual."""


@dataclass
class Kept:
    """A file of the cache."""

    hypotheses: list[str]
    cost: Cost


@dataclass
class Translated:
    """The translations of a test set by one seed of a system."""

    path: str
    hypotheses: list[str]
    cost: Cost | None = None
    """None for a file of translations."""


@dataclass
class System:
    """A system to compare: one model or file of translations, or several that differ in their seed alone."""

    name: str
    members: list[str]
    """Runs, model directories, exported models or files of translations."""
    seeds: list[Translated] = field(default_factory=list)
    """The translations of each member."""


def read_systems(texts: list[str]) -> list[System]:
    """The systems that words name: a path, or NAME=[A,B]; NMTError for fewer than two, and for one named twice."""
    groups = {text: GROUP.fullmatch(text) for text in texts}
    paths = short_names([text for text, group in groups.items() if not group])
    systems = []
    for text in texts:
        group = groups[text]
        members = [part.strip() for part in group["members"].split(",")] if group else [text]
        systems.append(System(group["name"] if group else paths[text], members))
    if len(systems) < 2:
        raise NMTError("systems: two are needed, or more: `nmt compare runs/new runs/old`")
    members = [member for system in systems for member in system.members]
    for names in (members, [system.name for system in systems]):
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise NMTError(f"{name}: this system is given twice; leave one out")
    for member in members:
        if not member or not Path(member).exists():
            raise NMTError(f"{member or 'an empty name'}: no such file or folder; a system is a run, a model or a text")
        if is_model(member) and is_parser(read_description(model_folder(member))):
            raise NMTError(f"{member}: a parser; `nmt score metrics=[brackets]` scores its trees")
    return systems


def short_names(paths: list[str]) -> dict[str, str]:
    """The ends of paths, of as many parts as it takes to tell them apart: runs/new and runs/old are new and old."""
    parts = [Path(path).parts for path in paths]
    for count in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(path[-count:]) for path in parts]
        if len(set(names)) == len(set(paths)):
            return dict(zip(paths, names, strict=True))
    return {path: path for path in paths}


def is_model(member: str) -> bool:
    return Path(member).is_dir()


def model_folder(member: str) -> Path:
    """The model directory of a run, or the folder of a model, exported or not; NMTError where there is none."""
    folder = Path(member)
    return folder if is_exported(folder) else find_model_directory(member, "systems")


def translations(member: str, test: TestSet, options: TranslatorOptions) -> Translated:
    """The translations of a test set, from a file, the cache, or a model; NMTError if they are not parallel to it.

    The `run` of `options` does not matter.
    """
    if not is_model(member):
        hypotheses = list(read_texts(member))
        if len(hypotheses) != len(test.references):
            raise not_parallel((member, test.name), (len(hypotheses), len(test.references)))
        return Translated(member, hypotheses)
    if test.sources is None:
        raise NMTError(f"{member}: a model needs source lines to translate; pass source=FILE")
    folder = model_folder(member)
    compute = replace(options.compute, engine="ctranslate2") if is_exported(folder) else options.compute
    config = replace(options, run=[str(folder)], compute=compute)
    decides = {
        **what_decides(config),
        **{key: getattr(compute, key) for key in ("device", "threads")},
        "batch_tokens": config.decode.batch_tokens,
        "description": sha256(folder / (EXPORTED if is_exported(folder) else "config.json")),
        "sources": test.sources,
        "processor": processor(),
        "nmt": __version__,
    }
    identity = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    file = cache_folder() / "compare" / f"{identity}.json"
    with suppress(NMTError):  # what is missing or damaged is made again
        kept = build(Kept, read_mapping(file, parse_json, LARGE), str(file))
        if len(kept.hypotheses) == len(test.sources):
            return Translated(member, kept.hypotheses, kept.cost)
    with worker_pool(1, mp_context=get_context("spawn"), initializer=begin) as pool:
        try:
            kept = pool.submit(translate_here, config, test.sources).result()
        except BrokenProcessPool as error:
            raise NMTError(f"{member}: the process that translates died: is memory short?") from error
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, json.dumps(asdict(kept), ensure_ascii=False))
    return Translated(member, kept.hypotheses, kept.cost)


def translate_here(config: TranslatorOptions, sources: list[str]) -> Kept:
    """Translate as `nmt translate` does, and measure it; the model has translated one line before."""
    translator = load_translator(config, warn)
    translator.translate(sources[:1])
    start = time.perf_counter()
    hypotheses = [best.text for best, *_ in translator.stream(sources, JobConfig.buffer)]
    seconds = time.perf_counter() - start
    tokens = sum(map(len, translator.tokenizer.encode(hypotheses, TARGET)))
    weights, keys = what_translated(translator.engine, config)
    compute = config.compute
    if compute.engine == "torch" and (device := choose_device(compute.device)).startswith("cuda"):
        import torch

        memory, name = torch.cuda.max_memory_allocated(device), torch.cuda.get_device_name(device)
    else:
        peak, cores = proc_value("self/status", "VmHWM"), compute.threads or usable_cores()
        memory = 1024 * int(peak.split()[0]) if peak else 0
        name = f"{processor()}, {cores} core{'s' if cores > 1 else ''}"
    return Kept(hypotheses, Cost(seconds, len(sources), tokens, memory, weights.stat().st_size, name, keys))


def what_translated(engine: Engine, config: TranslatorOptions) -> tuple[Path, str]:
    """The file of the weights, and the keys of `Cost`."""
    weights, compute = Path(config.run[0]) / "model.safetensors", config.compute
    keys = {"engine": compute.engine, "precision": compute.precision}
    if describe := entries_of("engine")[compute.engine].facts.get("describe"):
        weights, changed = import_attribute(describe)(engine)
        keys |= changed
    protection = config.plugins.get("protection")
    if protection and protection.protect != ["usual"]:
        keys["protect"] = ",".join(protection.protect) or "none"
    usual = asdict(DecodeConfig())
    search = asdict(engine.config) | {"length_penalty_kind": engine.config.length_penalty_kind or "gnmt"}
    usual |= {"length_penalty_kind": "gnmt", "batch_tokens": search["batch_tokens"]}  # that decides no translation
    always = () if engine.config.do_sample else SEARCH[:1] if engine.config.beam_size == 1 else SEARCH
    reported = {key: value for key, value in search.items() if key in always or value != usual[key]}
    keys |= {f"decode.{key}": str(value).lower() for key, value in reported.items()}
    return weights, " ".join(f"{key}={value}" for key, value in keys.items())
