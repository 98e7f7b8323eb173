"""Export a model for Firefox's engine: int8 weights, a vocabulary, a shortlist, and the settings of translateLocally.

The engine computes products in int8. Activations are multiplied by a fixed factor (`alphas`) that suits the validation
set. It starts decoding from zeros, searches greedily, and considers only the target subwords that a lexical shortlist
lists for the source's. The export is compared with the original by translating lines with the engine itself.
"""

import hashlib
import json
import struct
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nmt import data, search
from nmt.config import EOS, UNK, DecodeConfig, ModelConfig, NMTError, one_line, require
from nmt.files import (
    ModelDescription,
    block,
    parse_yaml,
    read_bytes,
    read_description,
    sha256,
    whole_folder,
)
from nmt.model import Transformer, load_model
from nmt.plugins.bergamot import usage
from nmt.plugins.bergamot.container import (
    EMBEDDING,
    SCALE,
    Array,
    container,
    shortlist,
    shortlist_shape,
)
from nmt.plugins.bergamot.page import SEARCH, engine_files, page_of
from nmt.plugins.bergamot.supported import BERGAMOT
from nmt.plugins.exchange.commands import ExportConfig, sample_of, settings_of_model
from nmt.plugins.exchange.ctranslate2 import heading
from nmt.plugins.exchange.marian import halves, layer_table, rows_of
from nmt.plugins.exchange.normalization import sentencepiece_normalizer
from nmt.text import MarianTokenizer, SentencePieceTokenizer, Tokenizer, read_tokenizer

CALIBRATION = 32
"""Lines per batch when activations are measured, as in Mozilla's pipeline."""
DEVIATIONS = 1.1
"""Largest activation to represent: the mean of the batches' largest plus this many standard deviations (Mozilla's)."""
PAIRS = 20_000
"""Maximum number of training pairs from which the shortlist is counted."""
BATCH_TOKENS = 4096
LISTED, FREQUENT = 50, 100
"""Target subwords per source subword, and the subwords that every sentence can use besides bytes."""
MULTIPLE = 8
"""The engine needs vocabularies of a multiple of this size."""
GREEDY = DecodeConfig(beam_size=1)
NEVER = -1e9
"""Logit bias that rules out a symbol."""


def vocabularies(tokenizer: Tokenizer) -> tuple[list[Any], list[list[int]]]:
    """For each vocabulary, the sentencepiece model with </s> as 0 and <unk> as 1, and our id for each of its ids.

    Its size is padded with -1, ids that our vocabulary does not have.
    """
    from sentencepiece import sentencepiece_model_pb2

    require(
        not tokenizer.tags,
        f"format=bergamot: the engine cannot translate sources with {', '.join(tokenizer.tags)}",
    )
    if isinstance(tokenizer, SentencePieceTokenizer):
        model = tokenizer.parsed()
        orders = [[EOS, UNK, *range(UNK + 1, tokenizer.vocabulary_size)]]
        pieces = [model.pieces[id] for id in orders[0]]
        del model.pieces[:]
        model.pieces.extend(pieces)
        options = {"eos_id": 0, "unk_id": 1, "bos_id": -1, "pad_id": -1, "vocab_size": len(pieces)}
        for key, value in options.items():
            setattr(model.trainer_spec, key, value)
        # The engine cannot call our normalization, only sentencepiece's.
        normalizer = sentencepiece_normalizer(tokenizer.normalization)
        model.normalizer_spec.ParseFromString(normalizer.serialized_normalizer_spec())
        models = [model]
    else:
        problem = "format=bergamot needs a vocabulary of sentencepiece: pass experiment=bergamot to `nmt preprocess`"
        require(isinstance(tokenizer, MarianTokenizer), problem)
        assert isinstance(tokenizer, MarianTokenizer)
        proto = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
        models = [proto.FromString(content) for content in dict.fromkeys(tokenizer.models)]
        orders = []
        for table in tokenizer.tables:
            rows = rows_of(table, has_padding=False)
            orders.append([rows.index(row) for row in range(len(table))])
    for model, order in zip(models, orders, strict=True):
        for number in range(-len(order) % MULTIPLE):
            model.pieces.add(piece=f"<unused{number}>", score=0.0, type=model.SentencePiece.UNUSED)
            order.append(-1)
    return models, orders


def marian_weights(model: Transformer, orders: Sequence[Sequence[int]]) -> dict[str, Array]:
    """The weights by Marian's names and in its order: matrices [in, out], vectors [1, out]."""
    config, state = model.config, model.state_dict()
    order_D, weights = torch.from_numpy(halves(config.d_model)), dict[str, Array]()
    for row in layer_table(config):
        tensor = row.reordered(
            state.get(row.ours, torch.zeros(row.shape)), order_D
        )  # zeros for missing biases
        for name, part in zip(row.marian, tensor.chunk(len(row.marian)), strict=True):
            weights[name] = (part.T if part.dim() == 2 else part[None]).numpy()
    names = (EMBEDDING,) if len(orders) == 1 else (f"encoder_{EMBEDDING}", f"decoder_{EMBEDDING}")
    for name, order, ours in zip(
        names, orders, ("source_embedding", "target_embedding"), strict=False
    ):
        table = torch.cat(
            (state[f"{ours}.weight"], torch.zeros(1, config.d_model))
        )  # -1: the last row
        weights[name] = table[list(order)][:, order_D].numpy()
    bias = torch.cat(
        (state.get("output.bias", torch.zeros(model.vocabulary_size)), torch.tensor([NEVER]))
    )
    weights["decoder_ff_logit_out_b"] = bias[list(orders[-1])][None].numpy()
    return weights


class Largest(TorchDispatchMode):
    """Records the largest activation of each product with a weight, by Marian's names."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values: defaultdict[str, list[float]] = defaultdict(list)
        self.addresses = {EMBEDDING: model.output.weight.data_ptr()}
        state = model.state_dict()
        for row in layer_table(model.config):
            if len(row.shape) == 2:
                for number, name in enumerate(row.marian):
                    part = state[row.ours][number * row.shape[0] // len(row.marian) :]
                    self.addresses[name] = part.data_ptr()

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        factors = [
            x for x in arguments if isinstance(x, Tensor) and x.dim() >= 2 and x.is_floating_point()
        ]
        for x, weight in (factors, factors[::-1]) if len(factors) == 2 else ():
            begin = weight.data_ptr()
            names = [
                name for name, at in self.addresses.items() if begin <= at < begin + weight.nbytes
            ]
            for name in names:
                self.values[name].append(float(x.abs().max()))
        return function(*arguments, **(options or {}))


def scales(model: Transformer, sources: Sequence[list[int]], is_shared: bool) -> dict[str, Array]:
    """The factor by which to multiply the activations of each product before rounding to int8."""
    engine, largest = search.TorchEngine([model], GREEDY), Largest(model)
    for start in range(0, len(sources), CALIBRATION):
        batch = sources[start : start + CALIBRATION]
        with largest:
            engine.search(batch, [[]] * len(batch))
    alphas = {}
    for name, values in largest.values.items():
        place = name if name != EMBEDDING or is_shared else f"decoder_{EMBEDDING}"
        alphas[place + SCALE] = 127 / (np.mean(values) + DEVIATIONS * np.std(values))
    if is_shared:
        alphas[f"none{SCALE}"] = alphas[EMBEDDING + SCALE]
    return {name: np.array([[alpha]], np.float32) for name, alpha in alphas.items()}


def likely_targets(model: Transformer, corpus: data.PreparedCorpus) -> dict[int, list[int]]:
    """Source id -> the target ids that the model aligns with it most often in the training text, best first."""
    split = corpus.split("train")
    rows = np.sort(np.random.default_rng(0).permutation(len(split))[:PAIRS])
    pairs: Any = list(zip(*(side.to_pylist() for side in split.rows(rows)), strict=True))
    links = [np.empty((0, 2), np.int64)]
    for pair, score in zip(
        pairs, search.forced_decoding([model], pairs, BATCH_TOKENS, align=True), strict=True
    ):
        weights = score.attention
        if weights is not None and weights.size:
            targets, sources = np.nonzero(weights >= weights.max(axis=1, keepdims=True) / 2)
            links.append(np.stack((np.array(pair[0])[sources], np.array(pair[1])[targets]), axis=1))
    linked, counts = np.unique(np.concatenate(links), axis=0, return_counts=True)
    likely: dict[int, list[int]] = {}
    for source, target in linked[np.argsort(-counts, kind="stable")].tolist():
        likely.setdefault(source, []).append(target)
    return {source: targets[:LISTED] for source, targets in likely.items()}


def lexicon(
    model: Transformer, corpus: data.PreparedCorpus, pieces: Any, orders: Sequence[list[int]]
) -> bytes:
    """The shortlist; every sentence can also use bytes and the FREQUENT subwords after them."""
    theirs = {id: number for number, id in enumerate(orders[-1])}
    likely = likely_targets(model, corpus)
    lists = [[theirs[target] for target in likely.get(id, [])] for id in orders[0]]
    first = (
        next(number for number, piece in enumerate(pieces) if piece.type == piece.NORMAL) + FREQUENT
    )
    return shortlist(lists, min(first, len(orders[-1])), LISTED)


def marian_settings(model: ModelConfig, orders: Sequence[list[int]]) -> dict[str, Any]:
    sizes = {"dim-emb": model.d_model, "dim-vocabs": [len(orders[0]), len(orders[-1])]}
    sizes |= {"enc-depth": model.encoder_layers, "dec-depth": model.decoder_layers}
    sizes |= {"transformer-heads": model.heads, "transformer-dim-ffn": model.d_ff}
    ties = {"tied-embeddings-all": len(orders) == 1, "tied-embeddings": len(orders) == 2}
    return {**parse_yaml(Path(__file__).with_name("student.yml").read_text()), **sizes, **ties}


def read_shortlist(path: Path, orders: Sequence[list[int]]) -> bytes:
    """The content of a shortlist file; NMTError if it is not for these vocabularies."""
    content = read_bytes(path)
    try:
        sources, targets = shortlist_shape(content)
    except (ValueError, struct.error) as error:
        raise NMTError(f"shortlist={path}: not a Firefox shortlist ({one_line(error)})") from error
    fits = sources == len(orders[0]) and targets <= len(orders[-1])
    require(
        fits,
        f"shortlist={path}: is for a vocabulary of {sources:,} entries, not {len(orders[0]):,}",
    )
    return content


class Parts(NamedTuple):
    """The contents of the files that the engine reads."""

    model: bytes
    lexicon: bytes
    vocabularies: list[bytes]  # one for both languages, or one each

    def named(self, pair: str) -> dict[str, bytes]:
        """File name -> content, with Mozilla's names."""
        files = {
            f"model.{pair}.intgemm.alphas.bin": self.model,
            f"lex.{LISTED}.{LISTED}.{pair}.s2t.bin": self.lexicon,
        }
        names = ["vocab"] if len(self.vocabularies) == 1 else ["srcvocab", "trgvocab"]
        return files | {
            f"{name}.{pair}.spm": text for name, text in zip(names, self.vocabularies, strict=True)
        }


def export(
    folder: Path, output: Path, config: ExportConfig, status: Callable[[str], None]
) -> list[str]:
    """Write the engine's files and a README.md; return the lines that compare the engine with the original."""
    description, options = read_description(folder), config.plugins["bergamot"]
    tokenizer = read_tokenizer(folder)
    BERGAMOT.check(settings_of_model(description, tokenizer))
    engine = engine_files(Path(options.page)) if options.page else []
    model = load_model(folder)
    models, orders = vocabularies(tokenizer)
    is_shared = model.config.source_vocabulary_size is None
    problem = f"model.source_vocabulary_size={model.config.source_vocabulary_size}: format=bergamot needs null"
    require(is_shared == (len(orders) == 1), f"{problem} for a model with one vocabulary")
    given = read_shortlist(Path(options.shortlist), orders) if options.shortlist else None
    corpus = None if given else data.corpus_of(folder, description.training, options.prepared)
    other = f"prepared={options.prepared}: has another vocabulary; prepare it with init={folder}"
    require(corpus is None or sha256(corpus.tokenizer_file) == description.tokenizer, other)
    origin, lines, references = sample_of(folder, config, options.prepared)
    require(bool(lines), f"no lines to measure activations: {origin}; pass sample=FILE")
    status("measuring activations")
    sources = [ids for ids in tokenizer.encode([tokenizer.clean(line) for line in lines]) if ids]
    weights = marian_weights(model, orders) | scales(model, sources, is_shared=len(orders) == 1)
    settings = marian_settings(model.config, orders)
    status("building the shortlist")
    listed = lexicon(model, corpus, models[-1].pieces, orders) if corpus else given or b""
    contents = [vocabulary.SerializeToString() for vocabulary in models]
    parts = Parts(container(weights, yaml.safe_dump(settings)), listed, contents)
    status(f"translating {len(lines):,} lines twice")
    text = heading(description) + usage.ABOUT
    notes = [
        "not compared: fxtranslate does not support BPE, unlike Firefox's engine; use tokenizer.kind=unigram"
    ]
    files = parts.named(f"{description.source}{description.target}")
    if all(
        vocabulary.trainer_spec.model_type == vocabulary.trainer_spec.UNIGRAM
        for vocabulary in models
    ):
        code = usage.code_for([*files])
        text += usage.USAGE.format(code=code)
        notes = usage.compare(folder, description, files, code, (origin, lines, references))
    sizes = [f"{name} {len(content) / 1e6:.1f}" for name, content in files.items()]
    notes.append(f"{sum(map(len, files.values())) / 1e6:.1f} MB: {', '.join(sizes)}")
    name = folder.parent.name if folder.name == "model" else folder.name
    described = descriptions(description, name, settings, files)
    if engine:
        described["translator.html"] = page_of(
            [*engine, parts.model, parts.lexicon, *contents], description
        )
        notes.append(f"translator.html {len(described['translator.html']) / 1e6:.1f} MB")
    described["README.md"] = f"{text}\nComparison:\n\n{block(chr(10).join(notes))}\n".encode()
    with whole_folder(output) as temporary:
        for name, content in (files | described).items():
            (temporary / name).write_bytes(content)
    return notes


def descriptions(
    description: ModelDescription, name: str, settings: dict[str, Any], files: dict[str, bytes]
) -> dict[str, bytes]:
    """The files that describe a model to translateLocally, and to Firefox's pipeline."""
    (model, lexicon, *vocabularies), source, target = files, description.source, description.target
    search = {
        "models": [model],
        "vocabs": [vocabularies[0], vocabularies[-1]],
        "shortlist": [lexicon, False],
    }
    search |= {"relative-paths": True, **SEARCH}
    # translateLocally replaces models whose short names are equal.
    about: dict[str, Any] = {
        "modelName": f"{source}-{target} {name}",
        "shortName": f"{source}-{target}-{name}",
    }
    about |= {"type": "tiny", "srcTags": {source: source}, "trgTag": target}
    about |= {"src": source, "trg": target, "version": 1, "API": 1, "exported_by": "nmt"}
    metadata: dict[str, Any] = {
        "sourceLanguage": source,
        "targetLanguage": target,
        "architecture": "tiny",
        "modelConfig": settings,
    }
    metadata |= {"byteSize": len(files[model]), "hash": hashlib.sha256(files[model]).hexdigest()}
    return {
        "config.intgemm8bitalpha.yml": yaml.safe_dump(search, sort_keys=False).encode(),
        "model_info.json": (json.dumps(about, indent=2) + "\n").encode(),
        "metadata.json": (json.dumps(metadata, indent=2, sort_keys=True) + "\n").encode(),
    }
