"""Export a model for Firefox's engine: int8 weights, a vocabulary, a shortlist, and settings.

The engine computes products in int8. Activations are multiplied by a fixed factor (`alphas`) that
suits the validation set. It starts decoding from zeros, searches greedily, and considers only the
target subwords that a lexical shortlist lists for the source's. The export is compared with the
original by translating lines with the engine itself.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nmt import data
from nmt.config import NMTError
from nmt.files import ModelDescription, block, read_description, sha256, whole_folder
from nmt.model import Transformer, load_model
from nmt.plugins.bergamot import usage
from nmt.plugins.bergamot.calibration import scales
from nmt.plugins.bergamot.container import container
from nmt.plugins.bergamot.page import SEARCH, engine_files, page_of
from nmt.plugins.bergamot.shortlist import LISTED, build_shortlist, read_shortlist
from nmt.plugins.bergamot.supported import BERGAMOT
from nmt.plugins.bergamot.vocabulary import Vocabulary, vocabularies
from nmt.plugins.bergamot.weights import marian_settings, marian_weights
from nmt.plugins.exchange.exporting import (
    ExportConfig,
    Sample,
    heading,
    sample_of,
    settings_of_model,
)
from nmt.text import Tokenizer, read_tokenizer

NOT_COMPARED = (
    "not compared: fxtranslate does not support BPE, unlike Firefox's engine; use "
    "tokenizer.kind=unigram"
)


@dataclass(frozen=True)
class ModelFiles:
    """The contents of the files that the engine reads."""

    model: bytes
    lexicon: bytes
    vocabularies: list[bytes]
    """One for both languages, or one each."""

    def named(self, pair: str) -> dict[str, bytes]:
        """File name -> content, with Mozilla's names; `pair` has both languages, such as ende."""
        files = {
            f"model.{pair}.intgemm.alphas.bin": self.model,
            f"lex.{LISTED}.{LISTED}.{pair}.s2t.bin": self.lexicon,
        }
        names = ["vocab"] if len(self.vocabularies) == 1 else ["srcvocab", "trgvocab"]
        for name, content in zip(names, self.vocabularies, strict=True):
            files[f"{name}.{pair}.spm"] = content
        return files


@dataclass(frozen=True)
class Inputs:
    """The inputs of an export, checked before the slow steps begin."""

    description: ModelDescription
    tokenizer: Tokenizer
    model: Transformer
    vocabularies: list[Vocabulary]
    shortlist: bytes | None
    """The content of a file; None: build a shortlist from the corpus."""
    corpus: data.PreparedCorpus | None
    engine: list[bytes]
    """The engine's program and its WebAssembly; empty: write no page."""
    sample: Sample


def export(
    folder: Path,
    output: Path,
    config: ExportConfig,
    status: Callable[[str], None],
) -> list[str]:
    """Write the engine's files and a README.md.

    Returns the lines that compare the engine with the original.
    """
    # All that can fail comes before the slow steps.
    inputs = checked_inputs(folder, config)
    description = inputs.description
    settings = marian_settings(inputs.model.config, inputs.vocabularies)
    pair = f"{description.source}{description.target}"
    files = model_files(inputs, settings, status).named(pair)
    status(f"translating {len(inputs.sample.lines):,} lines twice")
    text = heading(description, "bergamot") + usage.ABOUT
    # fxtranslate, for which the README's code is, supports no other vocabularies.
    if all(map(is_unigram, inputs.vocabularies)):
        code = usage.code_for([*files])
        text += usage.USAGE.format(code=code)
        notes = usage.compare(folder, description, files, code, inputs.sample)
    else:
        notes = [NOT_COMPARED]
    sizes = [f"{name} {megabytes(content)}" for name, content in files.items()]
    notes.append(f"{megabytes(*files.values())} MB: {', '.join(sizes)}")
    # The name of the run says more than "model".
    name = folder.parent.name if folder.name == "model" else folder.name
    descriptions = descriptions_of(description, name, settings, files)
    if inputs.engine:
        # The page has all files of the engine and of the model, in this order.
        contents = [*inputs.engine, *files.values()]
        page = page_of(contents, description)
        descriptions["translator.html"] = page
        notes.append(f"translator.html {megabytes(page)} MB")
    comparison = block("\n".join(notes))
    descriptions["README.md"] = f"{text}\nComparison:\n\n{comparison}\n".encode()
    with whole_folder(output) as temporary:
        for name, content in (files | descriptions).items():
            (temporary / name).write_bytes(content)
    return notes


def checked_inputs(folder: Path, config: ExportConfig) -> Inputs:
    """The inputs for exporting a model directory; NMTError if the engine cannot use the model."""
    description = read_description(folder)
    options = config.plugins["bergamot"]
    tokenizer = read_tokenizer(folder)
    BERGAMOT.check(settings_of_model(description, tokenizer))
    engine = engine_files(Path(options.page)) if options.page else []
    model = load_model(folder)
    of_engine = vocabularies(tokenizer)
    size = model.config.source_vocabulary_size
    # The engine takes one embedding from one vocabulary; another matrix for the source would be
    # lost.
    if (len(of_engine) == 1) != (size is None):
        problem = f"model.source_vocabulary_size={size}: format=bergamot needs null"
        raise NMTError(f"{problem} for a model with one vocabulary")
    shortlist = None
    corpus = None
    if options.shortlist:
        # A corpus is needed only to build a shortlist.
        shortlist = read_shortlist(Path(options.shortlist), of_engine[0], of_engine[-1])
    else:
        corpus = corpus_of_model(folder, description, options.prepared)
    sample = sample_of(folder, config, options.prepared)
    # Other formats only compare with the sample; here, the factors of activations come from it.
    if not sample.lines:
        raise NMTError(f"no lines to measure activations: {sample.origin}; pass sample=FILE")
    return Inputs(
        description,
        tokenizer,
        model,
        of_engine,
        shortlist,
        corpus,
        engine,
        sample,
    )


def corpus_of_model(
    folder: Path,
    description: ModelDescription,
    prepared: str | None,
) -> data.PreparedCorpus:
    """The corpus of a training, or a prepared one; NMTError if it has another vocabulary."""
    corpus = data.corpus_of(folder, description.training, prepared)
    # The shortlist is counted in ids, which mean something else in another vocabulary.
    if sha256(corpus.tokenizer_file) != description.tokenizer:
        advice = f"prepare it with init={folder}"
        raise NMTError(f"prepared={prepared}: has another vocabulary; {advice}")
    return corpus


def model_files(
    inputs: Inputs,
    settings: dict[str, Any],
    status: Callable[[str], None],
) -> ModelFiles:
    """Measure activations, build the shortlist, and round the weights."""
    status("measuring activations")
    tokenizer = inputs.tokenizer
    encoded = tokenizer.encode([tokenizer.clean(line) for line in inputs.sample.lines])
    # An empty line has no activations.
    sources = [ids for ids in encoded if ids]
    is_shared = len(inputs.vocabularies) == 1
    weights = marian_weights(inputs.model, inputs.vocabularies)
    # The factors are stored like weights.
    weights |= scales(inputs.model, sources, is_shared)
    status("building the shortlist")
    shortlist = inputs.shortlist
    if shortlist is None:
        assert inputs.corpus
        source = inputs.vocabularies[0]
        target = inputs.vocabularies[-1]
        shortlist = build_shortlist(inputs.model, inputs.corpus, source, target)
    return ModelFiles(
        container(weights, yaml.safe_dump(settings)),
        shortlist,
        [vocabulary.model.SerializeToString() for vocabulary in inputs.vocabularies],
    )


def is_unigram(vocabulary: Vocabulary) -> bool:
    """Whether fxtranslate supports a vocabulary."""
    trainer = vocabulary.model.trainer_spec
    return bool(trainer.model_type == trainer.UNIGRAM)


def megabytes(*contents: bytes) -> str:
    """The size of files, without its unit."""
    return f"{sum(map(len, contents)) / 1e6:.1f}"


def descriptions_of(
    description: ModelDescription,
    name: str,
    settings: dict[str, Any],
    files: dict[str, bytes],
) -> dict[str, bytes]:
    """The files that describe a model to translateLocally, and to Firefox's pipeline.

    `name` is the model's, `settings` are Marian's, and `files` are those that the engine reads.
    """
    model, lexicon, *of_vocabularies = files
    source = description.source
    target = description.target
    search = {
        "models": [model],
        "vocabs": [of_vocabularies[0], of_vocabularies[-1]],
        "shortlist": [lexicon, False],
        "relative-paths": True,
        **SEARCH,
    }
    about = {
        "modelName": f"{source}-{target} {name}",
        # translateLocally replaces models whose short names are equal.
        "shortName": f"{source}-{target}-{name}",
        "type": "tiny",
        "srcTags": {source: source},
        "trgTag": target,
        "src": source,
        "trg": target,
        "version": 1,
        "API": 1,
        "exported_by": "nmt",
    }
    metadata = {
        "sourceLanguage": source,
        "targetLanguage": target,
        "architecture": "tiny",
        "modelConfig": settings,
        "byteSize": len(files[model]),
        "hash": hashlib.sha256(files[model]).hexdigest(),
    }
    return {
        "config.intgemm8bitalpha.yml": yaml.safe_dump(search, sort_keys=False).encode(),
        "model_info.json": (json.dumps(about, indent=2) + "\n").encode(),
        "metadata.json": (json.dumps(metadata, indent=2, sort_keys=True) + "\n").encode(),
    }
