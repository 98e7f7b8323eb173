"""CTranslate2 as an engine: what it can be asked for, its conversions in our cache, and a check of what it loads.

CTranslate2 does not check the files that it loads, and may crash or read others beside them. As an export may come from
anyone, it gets checked files from memory. This file imports neither torch nor CTranslate2.
"""

import hashlib
import importlib.util
import io
import json
import math
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.config import BOS, EOS, UNK, DecodeConfig, ModelConfig, in_words, require
from nmt.errors import NMTError, one_line
from nmt.files import (
    MODEL_FILES,
    cache_folder,
    check_regular,
    is_exported,
    is_parser,
    read_bytes,
    read_description,
    sha256,
)
from nmt.plugins.exchange.names import layer_table
from nmt.search import EngineOptions, aligning_layer
from nmt.text import SOURCE, SYMBOLS, TARGET, read_tokenizer
from nmt.version import __version__

if TYPE_CHECKING:
    from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine

VERSION, REVISION = 6, 7
"""Of model.bin, and of the layout of Transformers in it."""
FLOAT32, INT8, INT16 = 0, 1, 2
"""Codes of types."""
ITEM_SIZES = {FLOAT32: 4, INT8: 1, INT16: 2}
ACTIVATIONS = {"relu": 0, "swish": 2, "gelu": 3, "quick_gelu": 4}
"""CTranslate2's number of model.activation."""
UNUSED = {"alibi", "alibi_use_positive_positions", "scale_alibi", "multi_query_attention", "embeddings_merge"}
"""Scalars of a stack that are 0, as far as a version of CTranslate2 has them."""
MAX_POSITIONS = 2048
"""Length of the table of sinusoids, which CTranslate2 needs."""
SAMPLING = ("temperature", "top_k", "top_p", "seed")  # without effect but for decode.do_sample
ABLE = ("beam_size", "length_penalty", "length_penalty_kind", "max_extra_length", "n_best", "batch_tokens", *SAMPLING)
"""Keys of the decoder that CTranslate2 follows, or that change nothing."""
CONVERSION = "3"
"""Raise it whenever a conversion of the same model gets another content."""


def require_ctranslate2(key: str) -> None:
    problem = f"{key}=ctranslate2: CTranslate2 is not installed; pip install ctranslate2"
    require(importlib.util.find_spec("ctranslate2") is not None, problem)


def check_search(config: DecodeConfig, target_prefix: str = "") -> None:
    """Raise NMTError for a search that CTranslate2 does not have, or that finds worse translations than torch."""
    usual = vars(DecodeConfig())
    changed = {f"decode.{key}": value for key, value in vars(config).items() if value != usual[key] and key not in ABLE}
    if config.beam_size > 1 and config.length_penalty > 1:
        changed["decode.length_penalty"] = config.length_penalty
    if target_prefix.strip():
        changed["target_prefix"] = target_prefix
    for key, value in changed.items():
        raise NMTError(
            f"{key}={in_words(value)}: engine=ctranslate2 cannot, or finds worse translations; use engine=torch"
        )


def check(folders: Sequence[Path], options: EngineOptions) -> None:
    """Raise NMTError for what CTranslate2 cannot do, whatever the model is."""
    other, device, models = "use engine=torch", options.device, len(folders)
    require(models == 1, f"engine=ctranslate2: {models} models, but it has no ensembles; {other}")
    require(device in ("auto", "cpu"), f"device={device}: engine=ctranslate2 is for processors; {other}")
    require(not options.constraints, f"engine=ctranslate2: no search for given words; {other}")
    check_search(options.decode, options.target_prefix)


def check_model(model: ModelConfig) -> None:
    """Raise NMTError for a model that CTranslate2 cannot compute."""
    width = model.d_model / model.heads
    computable = {"d_k": width, "d_v": width, "attention": "scaled_dot_product", "attention_window": None}
    for key, only in computable.items():
        problem = f"model.{key}={getattr(model, key)}: CTranslate2 computes models with {only} only; use engine=torch"
        require(getattr(model, key) == only, problem)


def why_not_automatic(folders: Sequence[Path], options: EngineOptions) -> str:
    """Why `engine=auto` does not take CTranslate2, or nothing."""
    import ctranslate2

    if options.device == "auto" and ctranslate2.get_cuda_device_count():
        return "there is a GPU"
    try:
        check(folders, options)
        description = read_description(folders[0])
        if is_parser(description):
            return "the model is a parser"
        if not is_exported(folders[0]):
            check_model(ModelConfig(**description.model))
            cache_folder().mkdir(parents=True, exist_ok=True)
    except NMTError as error:
        return str(error)
    except OSError as error:
        return f"cannot write the cache, {error.filename}"
    return ""


def load(folders: Sequence[Path], options: EngineOptions, notice: Callable[[str], None]) -> "CTranslate2Engine":
    """CTranslate2 with a model directory, which is converted at its first use, or with an exported model."""
    check(folders, options)
    require_ctranslate2("engine")
    [folder] = folders
    precision = "int8" if is_exported(folder) and options.precision == "int8" else "default"
    folder = folder if is_exported(folder) else converted(folder, options.precision, notice)
    return load_engine(folder, options.decode, precision, options.threads, options.scores)


def converted_folder(folder: Path, precision: str) -> Path:
    """The folder in our cache for a conversion; one in the model directory may hold other weights."""
    parts = [__version__, CONVERSION, *(sha256(folder / name) for name in MODEL_FILES)]
    return cache_folder() / "ctranslate2" / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}-{precision}"


def converted(folder: Path, precision: str, notice: Callable[[str], None]) -> Path:
    output = converted_folder(folder, precision)
    if not is_exported(output):
        from nmt.plugins.exchange.ctranslate2 import write

        try:
            output.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot write {output.parent} ({error.strerror})"
            raise NMTError(f"{reason}: XDG_CACHE_HOME=FOLDER names another cache, `nmt export` needs none") from error
        notice(f"converting the model for CTranslate2, once: {output}")
        write(folder, output, precision)
    return output


def describe(engine: "CTranslate2Engine") -> tuple[Path, dict[str, str]]:
    """The file of an engine's weights, and the keys that it decides: an exported model has an arithmetic of its own."""
    return engine.folder / "model.bin", {"precision": engine.precision}


def load_engine(folder: Path, config: DecodeConfig, *options: Any, **more: Any) -> "CTranslate2Engine":
    """The engine, with these options, of an exported folder; NMTError where it does not fit its description."""
    from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine

    model, tokenizer, path = ModelConfig(**read_description(folder).model), read_tokenizer(folder), folder / "model.bin"
    vocabularies = tokenizer.vocabulary(SOURCE), tokenizer.vocabulary(TARGET)
    check_model(model)
    check_regular(path)
    content = read_bytes(path, path.stat().st_size)
    try:
        check_variables(content, model, tuple(map(len, vocabularies)))
    except (ValueError, struct.error) as error:
        reason = "it is cut" if isinstance(error, struct.error) else one_line(error)
        raise NMTError(f"{path}: not what nmt exports for CTranslate2: {reason}; export the model again") from error
    symbols = {"unk_token": UNK, "bos_token": BOS, "eos_token": EOS, "decoder_start_token": BOS}
    settings: dict[str, Any] = {name: SYMBOLS[number] for name, number in symbols.items()}
    settings |= {"add_source_bos": False, "add_source_eos": model.source_end}
    settings["layer_norm_epsilon"] = model.norm_epsilon
    names = "source_vocabulary.json", "target_vocabulary.json"
    trees = {"config.json": settings, **dict(zip(names, vocabularies, strict=True))}
    files = {"model.bin": content, **{name: json.dumps(tree).encode() for name, tree in trees.items()}}
    engine = CTranslate2Engine(files, vocabularies, table_length(model), config, *options, **more)
    engine.folder = folder
    return engine


def table_length(model: ModelConfig) -> int:
    """Rows of the table of positions in an export."""
    return model.max_positions if model.positions == "learned" else max(MAX_POSITIONS, model.max_positions)


class Variable(NamedTuple):
    """A variable of model.bin: its shape, the code of its type, and its bytes."""

    shape: tuple[int, ...]
    type: int
    content: memoryview


def check_variables(content: bytes, model: ModelConfig, sizes: tuple[int, ...]) -> None:
    """ValueError or struct.error unless model.bin holds the variables of an exported model, and no others."""
    variables, shapes, scalars = read_variables(content), expected_arrays(model, sizes), expected_scalars(model)
    rounded = [name for name in shapes if name.endswith("/weight") and variables.get(name, ((), FLOAT32))[1] == INT8]
    shapes |= {f"{name}_scale": shapes[name][:1] for name in rounded}
    for name, (shape, kind, number) in variables.items():
        if name in shapes:
            fits = shape == shapes[name] and kind == (INT8 if name in rounded else FLOAT32)
            require_value(fits, f"{name} is {list(shape)} of type {kind}, where there should be {list(shapes[name])}")
        else:  # CTranslate2 does not check which heads and layers these name, and crashes.
            value = int.from_bytes(number, "little", signed=True)
            default = 0 if name.rpartition("/")[2] in UNUSED else None
            require_value(shape == () and value == scalars.get(name, default), f"{name[:80]!r} is {value}")
    missing = sorted({*shapes, *scalars} - variables.keys())
    require_value(not missing, f"{missing[:1]} is missing")


def require_value(fits: bool, problem: str) -> None:
    if not fits:
        raise ValueError(problem)


def expected_arrays(model: ModelConfig, sizes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    width = model.d_model
    arrays: dict[str, tuple[int, ...]] = {
        "encoder/embeddings_0/weight": (sizes[SOURCE], width),
        **{f"decoder/{name}/weight": (sizes[TARGET], width) for name in ("embeddings", "projection")},
        **{f"{stack}/position_encodings/encodings": (table_length(model), width) for stack in ("encoder", "decoder")},
        **({"decoder/projection/bias": (sizes[TARGET],)} if model.output_bias or model.unpredicted else {}),
    }
    for row in layer_table(model):
        if model.attention_bias or not row.ours.endswith("_bias"):
            rows = [width, row.shape[0] - width] if len(row.ctranslate2) == 2 else [row.shape[0]]
            arrays |= {name: (part, *row.shape[1:]) for name, part in zip(row.ctranslate2, rows, strict=True)}
    return arrays


def expected_scalars(model: ModelConfig) -> dict[str, int]:
    stack = {"num_heads": model.heads, "pre_norm": int(model.norm == "pre"), "scale_embeddings": 1}
    stack["activation"] = ACTIVATIONS[model.activation]
    alignment = {"alignment_layer": aligning_layer(model.decoder_layers), "alignment_heads": 0}
    decoder = {**stack, **alignment, "start_from_zero_embedding": int(model.zero_start)}
    return {f"{name}/{key}": n for name, tree in (("encoder", stack), ("decoder", decoder)) for key, n in tree.items()}


def read_variables(content: bytes) -> dict[str, Variable]:
    """The variables of model.bin: a header, each with its name, shape, type and numbers, then further names of some."""
    file, variables = io.BytesIO(content), dict[str, Variable]()

    def take(kind: str) -> Any:
        return struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))[0]

    def text() -> str:
        return take(f"{take('H')}s").removesuffix(b"\0").decode()  # type: ignore[no-any-return]

    header = take("I"), text(), take("I")
    require_value(header == (VERSION, "TransformerSpec", REVISION), "another format or kind of model")
    for _ in range(take("I")):
        name, shape = text(), tuple(take("I") for _ in range(take("B")))
        kind, length = take("B"), take("I")
        require_value(name not in variables, f"{name[:80]!r} is there twice")
        fits = math.prod(shape) * ITEM_SIZES.get(kind, -1) == length
        require_value(fits, f"{name[:80]!r} is not as long as its shape")
        variables[name] = Variable(shape, kind, memoryview(content)[file.tell() : file.tell() + length])
        require_value(file.seek(length, io.SEEK_CUR) <= len(content), "it is cut")
    for _ in range(take("I")):
        name, other = text(), text()
        require_value(other in variables, f"{name[:80]!r} is {other[:80]!r}, which is not there")
        for end in ("", "_scale"):
            if (variable := variables.get(other + end)) is not None:
                require_value(variables.setdefault(name + end, variable) is variable, f"{name[:80]!r} is there twice")
    require_value(file.tell() == len(content), "it is longer than what it holds")
    return variables
