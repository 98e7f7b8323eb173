"""Test sets, and the systems that translate them: files of translations, or models in a process each."""

import re
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from nmt import data, hardware, preparation, registry, search
from nmt.commands import talker
from nmt.config import DecodeConfig, NMTError, TranslatorOptions, exists, facts_of_kind, require
from nmt.files import MODEL_FILES, find_model_directory, is_parser, read_description, sha256
from nmt.plugins.results.translating import open_translator, threads_of, translate_lines
from nmt.text import TARGET, language_of_file, not_parallel, read_texts
from nmt.translation import Translator, warn, with_engine

Text = str | Path | Iterable[str]  # a file, or its lines
SPLITS = {"valid": "validation", "test": "test"}


@dataclass
class TestSet:
    """Lines to translate, and their references."""

    name: str
    sources: list[str] | None  # None if only the references are given
    references: list[str]
    corpus: "data.PreparedCorpus | None" = None
    language: str | None = None  # of the references, if known

    __test__ = False  # keeps pytest from collecting this class


def cited_model(run: str) -> Path:
    path = Path(run)
    if path.is_symlink():  # runs/latest may point to another run tomorrow
        path = path.parent / path.readlink()
    return find_model_directory(str(path))


def digests_of(folder: Path) -> dict[str, str]:
    return {name: sha256(folder / name) for name in MODEL_FILES}


def corpus_of_model(model: str, prepared: str | None) -> "data.PreparedCorpus":
    """The prepared corpus in the folder `prepared` or, if that is None, the corpus that a model was trained on."""
    folder, files = Path(model), "source=FILE reference=FILE"
    if folder.is_dir():
        folder = find_model_directory(model)
    require(
        bool(prepared) or folder.is_dir(),
        f"{model}: not a run folder, so it has no test set; pass {files}",
    )
    try:
        return data.corpus_of(
            folder, read_description(folder).training if folder.is_dir() else {}, prepared
        )
    except NMTError as error:
        raise NMTError(f"{error}; pass prepared=FOLDER, or {files}") from error


def held_out_text(corpus: "data.PreparedCorpus", split: str) -> tuple[list[str], list[str]]:
    """The sources and references of a held-out set, "valid" or "test"."""
    has_lines = bool(corpus.manifest.counts.get(split, {}).get("kept"))
    require(has_lines, f"split={split}: {corpus.folder} has no {SPLITS[split]} set")
    return corpus.text(split)


def named_lines(kind: str, text: Text) -> tuple[str, list[str]]:
    return (
        (str(text), list(read_texts(str(text))))
        if isinstance(text, str | Path)
        else (f"the {kind}", list(text))
    )


def read_test_set(
    model: str, source: Text | None, reference: Text | None, prepared: str | None
) -> TestSet:
    """The test set, from two texts (files or lists of lines) or from a model's corpus."""
    if reference is None:
        require(
            source is None,
            f"source={source}: pass its reference translations too, as reference=FILE",
        )
        corpus = corpus_of_model(model, prepared)
        is_text = not facts_of_kind(corpus.manifest.content["data"]["kind"]).get("structured")
        require(
            is_text, f"{corpus.folder}: contains no translations; pass source=FILE reference=FILE"
        )
        texts = held_out_text(corpus, "test")
        return TestSet(f"test set of {corpus.folder}", *texts, corpus, corpus.target_language)
    (of_sources, sources), (name, references) = (
        named_lines("source", source or []),
        named_lines("reference", reference),
    )
    if source and len(sources) != len(references):
        raise not_parallel((of_sources, name), (len(sources), len(references)))
    require(bool(references), f"reference={name}: is empty")
    with_corpus = corpus_of_model(model, prepared) if prepared else None
    return TestSet(
        name, sources if source else None, references, with_corpus, language_of_file(name)
    )


def search_keys(decode: DecodeConfig, *always: str) -> list[str]:
    """The search keys that differ from the defaults or are in `always`, as decode.KEY=VALUE."""
    items = asdict(decode).items()
    return [
        f"decode.{key}={x}".lower()
        for key, x in items
        if key in always or x != getattr(DecodeConfig, key)
    ]


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
    """The systems named by words such as PATH, NAME=PATH or NAME=[A,B]; NMTError for fewer than two or duplicates."""
    require(len(texts) > 1, "systems: name at least two, as in `nmt compare runs/new runs/old`")
    counts, systems = Counter(Path(text).name for text in texts), list[System]()
    for text in texts:
        if group := re.fullmatch(r"([\w.+-]+)=\[(.*)\]", text):
            systems.append(System(group[1], [Seed(path.strip()) for path in group[2].split(",")]))
        elif (pair := re.fullmatch(r"([\w.+-]+)=(.+)", text)) and not exists(text):
            systems.append(System(pair[1], [Seed(pair[2])]))
        else:
            name = Path(text).name
            systems.append(System(name if name and counts[name] == 1 else text, [Seed(text)]))
    paths = [seed.path for system in systems for seed in system.seeds]
    for given in (paths, [system.name for system in systems]):
        name, count = Counter(given).most_common(1)[0]
        require(count == 1, f"{name}: this system is given twice; omit one")
    for path in paths:
        is_there = bool(path) and exists(path)
        require(
            is_there,
            f"{path or 'an empty name'}: no such file or folder; pass a run, a model or a file",
        )
        if Path(path).is_dir() and is_parser(
            read_description(find_model_directory(path, "systems"))
        ):
            raise NMTError(
                f"{path}: is a parser; score its trees with `nmt score metrics=[brackets]`"
            )
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
    config = with_engine(replace(options, run=[str(folder)]), lambda text: warn(f"{path}: {text}"))
    with preparation.worker_pool(
        1, mp_context=get_context("spawn"), initializer=preparation.begin
    ) as pool:
        try:
            return pool.submit(translate_here, path, config, test.sources).result()
        except BrokenProcessPool as error:
            raise NMTError(
                f"{path}: the translation process died, perhaps out of memory"
            ) from error


def translate_here(path: str, config: TranslatorOptions, sources: list[str]) -> Seed:
    """Translate as `nmt translate` does and measure the cost, after translating one line to warm up."""
    translator = open_translator(config)
    translator.translate(sources[:1])
    start = time.perf_counter()
    hypotheses = translate_lines(translator, sources, talker(), f"translating with {path}")
    seconds = time.perf_counter() - start
    tokens = sum(map(len, translator.tokenizer.encode(hypotheses, TARGET)))
    memory, device = memory_and_device(translator)
    size = weights_of(Path(config.run[0]), config).stat().st_size
    cost = Cost(seconds, len(sources), tokens, memory, size, device, keys_of_cost(translator))
    return Seed(path, hypotheses, cost)


def memory_and_device(translator: Translator) -> tuple[int, str]:
    """The peak memory of the process or GPU in bytes, 0 if unknown, and the name of the device."""
    compute = translator.options.compute
    if compute.engine == "torch":
        import torch

        device = search.choose_device(compute.device)
        if device.startswith("cuda"):
            return torch.cuda.max_memory_allocated(device), torch.cuda.get_device_name(device)
    peak = hardware.proc_value("self/status", "VmHWM")
    memory = 1024 * int(peak.split()[0]) if peak else 0
    threads = threads_of(translator)
    return memory, f"{hardware.processor()}, {threads} core{'s' if threads > 1 else ''}"


def weights_of(folder: Path, config: TranslatorOptions) -> Path:
    """The file of weights that the engine loads."""
    path = registry.entries_of("engine")[config.compute.engine].facts.get("weights")
    if path:
        return Path(registry.import_attribute(path)(folder, config.compute.precision))
    return folder / "model.safetensors"


def keys_of_cost(translator: Translator) -> str:
    options = translator.options
    keys = [f"engine={options.compute.engine}", f"precision={options.compute.precision}"]
    protection = options.plugins.get("protection")
    if protection and protection.protect != ["usual"]:
        keys.append(f"protect={','.join(protection.protect) or 'none'}")
    # batch_tokens does not affect translations.
    decode = replace(translator.engine.config, batch_tokens=DecodeConfig.batch_tokens)
    return " ".join([*keys, *search_keys(decode, "beam_size")])
