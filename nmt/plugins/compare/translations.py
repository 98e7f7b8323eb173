"""Translations by each system: read from a file, or made here, once, and kept in the cache with what they cost."""

import hashlib
import json
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from nmt.config import DecodeConfig, JobConfig, TranslatorOptions, build
from nmt.errors import NMTError
from nmt.files import EXPORTED, LARGE, cache_folder, is_exported, parse_json, read_mapping, sha256, write_file
from nmt.hardware import proc_value, processor, usable_cores
from nmt.plugins.compare.systems import TestSet, is_model, model_folder
from nmt.preparation import begin, worker_pool
from nmt.search import Engine, choose_device
from nmt.text import TARGET, not_parallel, read_texts
from nmt.translation import load_translator, warn, what_decides
from nmt.version import __version__

SEARCH = ("beam_size", "length_penalty", "length_penalty_kind")
"""Keys of `decode` that are told of a beam search, whatever they are; the first one of greedy search."""


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
class Translated:
    """The translations of a test set by one seed of a system."""

    path: str
    hypotheses: list[str]
    cost: Cost | None = None
    """None for a file of translations."""


@dataclass
class Kept:
    """A file of the cache."""

    hypotheses: list[str]
    cost: Cost


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
    file = cache_folder() / "compare" / f"{identity(config, folder, test.sources)}.json"
    kept = read_kept(file, len(test.sources)) or translate_apart(config, test.sources)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, json.dumps(asdict(kept), ensure_ascii=False))
    return Translated(member, kept.hypotheses, kept.cost)


def identity(config: TranslatorOptions, folder: Path, sources: list[str]) -> str:
    """SHA-256 of all that decides what the translations are, and of where and how they are made."""
    about = folder / (EXPORTED if is_exported(folder) else "config.json")
    decides = {
        **what_decides(config),
        **{key: getattr(config.compute, key) for key in ("device", "threads")},
        "batch_tokens": config.decode.batch_tokens,
        "description": sha256(about),
        "sources": sources,
        "processor": processor(),
        "nmt": __version__,
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def read_kept(file: Path, lines: int) -> Kept | None:
    """What an earlier comparison kept; None if that is missing or damaged."""
    with suppress(NMTError):
        kept = build(Kept, read_mapping(file, parse_json, LARGE), str(file))
        if len(kept.hypotheses) == lines:
            return kept
    file.unlink(missing_ok=True)
    return None


def translate_apart(config: TranslatorOptions, sources: list[str]) -> Kept:
    """Translate in a process of its own, whose peak of memory is that of this model alone."""
    with worker_pool(1, mp_context=get_context("spawn"), initializer=begin) as pool:
        try:
            return pool.submit(translate_here, config, sources).result()
        except BrokenProcessPool as error:
            raise NMTError(f"{config.run[0]}: the process that translates died: is memory short?") from error


def translate_here(config: TranslatorOptions, sources: list[str]) -> Kept:
    """Translate as `nmt translate` does, and measure it; the model has translated one line before."""
    translator = load_translator(config, warn)
    translator.translate(sources[:1])
    start = time.perf_counter()
    hypotheses = [found[0].text for found in translator.stream(sources, JobConfig.buffer)]
    seconds = time.perf_counter() - start
    tokens = sum(map(len, translator.tokenizer.encode(hypotheses, TARGET)))
    weights, keys = what_translated(translator.engine, config)
    memory, device = peak_memory(config)
    return Kept(hypotheses, Cost(seconds, len(sources), tokens, memory, weights.stat().st_size, device, keys))


def what_translated(engine: Engine, config: TranslatorOptions) -> tuple[Path, str]:
    """The file of the weights, and the keys of `Cost`."""
    weights, compute = Path(config.run[0]) / "model.safetensors", config.compute
    keys = {"engine": compute.engine, "precision": compute.precision}
    if compute.engine == "ctranslate2":
        from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine

        assert isinstance(engine, CTranslate2Engine)
        weights, keys["precision"] = engine.folder / "model.bin", engine.precision  # an exported model has its own
    protection = config.plugins.get("protection")
    if protection and protection.protect != ["usual"]:
        keys["protect"] = ",".join(protection.protect) or "none"
    usual = asdict(DecodeConfig())
    search = asdict(engine.config) | {"length_penalty_kind": engine.config.length_penalty_kind or "gnmt"}
    usual |= {"length_penalty_kind": "gnmt", "batch_tokens": search["batch_tokens"]}  # that decides no translation
    always = () if engine.config.do_sample else SEARCH[:1] if engine.config.beam_size == 1 else SEARCH
    told = {key: value for key, value in search.items() if key in always or value != usual[key]}
    keys |= {f"decode.{key}": str(value).lower() for key, value in told.items()}
    return weights, " ".join(f"{key}={value}" for key, value in keys.items())


def peak_memory(config: TranslatorOptions) -> tuple[int, str]:
    """The most memory that was taken so far, in bytes, and on which device."""
    if config.compute.engine == "torch" and choose_device(config.compute.device).startswith("cuda"):
        import torch

        device = choose_device(config.compute.device)
        return torch.cuda.max_memory_allocated(device), torch.cuda.get_device_name(device)
    peak = proc_value("self/status", "VmHWM")
    cores = config.compute.threads or usable_cores()
    return 1024 * int(peak.split()[0]) if peak else 0, f"{processor()}, {cores} core{'s' if cores > 1 else ''}"
