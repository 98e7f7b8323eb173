"""The systems of `nmt compare`: files of translations, or models, each in its own process."""

import re
import time
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from nmt import hardware, preparation, search
from nmt.commands import talker
from nmt.config import DecodeConfig, NMTError, TranslatorOptions, exists
from nmt.extensions import EngineEntry, import_attribute
from nmt.files import find_model_directory, is_parser, is_prefixed, read_description
from nmt.plugins.results.test_set import TestSet, names_model, search_keys
from nmt.plugins.results.translating import open_translator, threads_of, translate_lines
from nmt.registry import entries_of
from nmt.text import TARGET, Tokenizer, not_parallel, read_texts, read_tokenizer
from nmt.translation import Translator, warn, with_engine

NAMED_SEEDS = re.compile(r"([\w.+-]+)=\[(.*)\]")
"""NAME=[A,B]: a system with two seeds."""
NAMED = re.compile(r"([\w.+-]+)=(.+)")
"""NAME=PATH."""


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
    """One run of a system, and its translations once they are read or made."""

    path: str
    hypotheses: list[str] = field(default_factory=list)
    cost: Cost | None = None  # None for a file of translations


@dataclass
class System:
    """A model or file of translations, or several that differ only in their seed."""

    name: str
    seeds: list[Seed]


def read_systems(texts: list[str]) -> list[System]:
    """The systems named by words such as PATH, NAME=PATH or NAME=[A,B].

    NMTError for fewer than two, for duplicates, and for paths that lead to no translations.
    """
    if len(texts) < 2:
        example = "`nmt compare runs/new runs/old`"
        raise NMTError(f"systems: name at least two, as in {example}")
    file_names = Counter(Path(text).name for text in texts)
    systems = [read_system(text, file_names) for text in texts]
    paths = []
    for system in systems:
        paths += [seed.path for seed in system.seeds]
    # A system that is compared with itself would never differ.
    check_different(paths)
    check_different([system.name for system in systems])
    for path in paths:
        check_system(path)
    return systems


def read_system(text: str, file_names: Counter[str]) -> System:
    """The system of one word; without a name, its file's name if no other system has it."""
    # Before NAME=PATH, which would match as well, with "[A,B]" as the path.
    several = NAMED_SEEDS.fullmatch(text)
    if several:
        name, paths = several.groups()
        return System(name, [Seed(path.strip()) for path in paths.split(",")])
    one = NAMED.fullmatch(text)
    # A file whose own name contains "=" is a file.
    if one and not exists(text):
        name, path = one.groups()
        return System(name, [Seed(path)])
    # Of runs/a/model and runs/b/model, the last part would not distinguish the two.
    name = Path(text).name
    is_unique = name and file_names[name] == 1
    return System(name if is_unique else text, [Seed(text)])


def check_different(names: list[str]) -> None:
    [(name, count)] = Counter(names).most_common(1)
    if count > 1:
        raise NMTError(f"{name}: this system is given twice; omit one")


def check_system(path: str) -> None:
    """Raise NMTError if a path is neither a file nor a model that translates."""
    if not path or not (is_prefixed(path) or exists(path)):
        name = path or "an empty name"
        raise NMTError(f"{name}: no such file or folder; pass a run, a model or a file")
    if not names_model(path):
        return
    description = read_description(find_model_directory(path, "systems"))
    if is_parser(description):
        advice = "score its trees with `nmt score metrics=[brackets]`"
        raise NMTError(f"{path}: is a parser; {advice}")


def translated(seed: Seed, test: TestSet, options: TranslatorOptions) -> Seed:
    """The seed with its translations of a test set: those it has, those of its file, or new ones.

    If its path is a run or a model, the model translates the source with these options, and the
    result has its cost. NMTError if translations and references differ in number.
    """
    path = seed.path
    if seed.hypotheses:
        hypotheses = seed.hypotheses
    elif names_model(path):
        return translate_in_process(path, test, options)
    else:
        hypotheses = list(read_texts(path))
    if len(hypotheses) != len(test.references):
        raise not_parallel((path, test.name), (len(hypotheses), len(test.references)))
    return Seed(path, hypotheses)


def translate_in_process(
    path: str,
    test: TestSet,
    options: TranslatorOptions,
) -> Seed:
    """Translate with a model in a process of its own, whose peak memory is that of the model."""
    if test.sources is None:
        raise NMTError(f"{path}: a model needs source lines to translate; pass source=FILE")
    folder = find_model_directory(path, "systems")
    sources = test.sources
    if any(test.tags):
        sources = tagged(sources, test.tags, read_tokenizer(folder))
    options = replace(options, run=[str(folder)])
    # Before the process starts, so that a choice of the engine is reported once, with the system's
    # name.
    options = with_engine(options, lambda text: warn(f"{path}: {text}"))
    # "spawn", because a forked process would begin with the memory of this one, and must not
    # inherit the threads of torch.
    context = get_context("spawn")
    process = preparation.worker_pool(1, mp_context=context, initializer=preparation.begin)
    with process as pool:
        try:
            return pool.submit(translate_here, path, options, sources).result()
        except BrokenProcessPool as error:
            problem = "the translation process died, perhaps out of memory"
            raise NMTError(f"{path}: {problem}") from error


def tagged(sources: list[str], tags: list[str], tokenizer: Tokenizer) -> list[str]:
    """The sources, each after its tag if the model's vocabulary has this tag."""
    pairs = zip(tags, sources, strict=True)
    # For a model without the tag, it would be text to translate.
    return [tag + source if tokenizer.leading_tag(tag) else source for tag, source in pairs]


def translate_here(path: str, options: TranslatorOptions, sources: list[str]) -> Seed:
    """Translate as `nmt translate` does and measure the cost, after one line to warm up."""
    translator = open_translator(options)
    # The first call allocates memory and may compile kernels, which is not part of the speed.
    translator.translate(sources[:1])
    start = time.perf_counter()
    hypotheses = translate_lines(translator, sources, talker(), f"translating with {path}")
    seconds = time.perf_counter() - start
    # The system's own subwords: speeds in tokens are comparable only between systems that share a
    # vocabulary.
    tokens = sum(len(ids) for ids in translator.tokenizer.encode(hypotheses, TARGET))
    memory, device = memory_and_device(translator)
    cost = Cost(
        seconds=seconds,
        lines=len(sources),
        tokens=tokens,
        memory=memory,
        size=weights_of(Path(options.run[0]), options).stat().st_size,
        device=device,
        keys=keys_of_cost(translator),
    )
    return Seed(path, hypotheses, cost)


def memory_and_device(translator: Translator) -> tuple[int, str]:
    """The peak memory of the process or GPU in bytes, 0 if unknown, and the name of the device."""
    compute = translator.options.compute
    if compute.engine == "torch":
        import torch

        device = search.choose_device(compute.device)
        # The process holds little memory then; what limits a model is the memory of the GPU.
        if device.startswith("cuda"):
            return torch.cuda.max_memory_allocated(device), torch.cuda.get_device_name(device)
    # Linux alone has it; elsewhere, the memory is unknown.
    peak = hardware.proc_value("self/status", "VmHWM")  # such as "123456 kB"
    memory = 1024 * int(peak.split()[0]) if peak else 0
    threads = threads_of(translator)
    cores = "1 core" if threads == 1 else f"{threads} cores"
    return memory, f"{hardware.processor()}, {cores}"


def weights_of(folder: Path, options: TranslatorOptions) -> Path:
    """The file of weights that the engine loads."""
    compute = options.compute
    function = entries_of(EngineEntry)[compute.engine].weights
    if function:
        return Path(import_attribute(function)(folder, compute.precision))
    return folder / "model.safetensors"


def keys_of_cost(translator: Translator) -> str:
    """The keys that affect speed or translations: engine, precision, protection and search."""
    options = translator.options
    keys = [f"engine={options.compute.engine}", f"precision={options.compute.precision}"]
    protection = options.plugins.get("protection")
    if protection and protection.protect != ["usual"]:
        protected = ",".join(protection.protect)
        keys.append(f"protect={protected or 'none'}")
    # batch_tokens does not affect translations.
    decode = replace(translator.engine.config, batch_tokens=DecodeConfig.batch_tokens)
    return " ".join([*keys, *search_keys(decode, "beam_size")])
