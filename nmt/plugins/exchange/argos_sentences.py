"""Sentences for Argos Translate: a model of MiniSBD (https://github.com/LibreTranslate/MiniSBD) by rules. No torch.

A package without such a model has Argos Translate download one, which splits every line. This one leaves a line whole
that is short enough for the translator, as nmt does, and splits a longer one

- after . ! ? and the like, with a closing quote or bracket if there is one, before a blank and no small letter,
- after their wide forms, wherever they stand.

MiniSBD gives a model of ONNX the number of each character, and takes for each three logits, the last one for the end of
a sentence. The rules are a convolution: a row of weights for each, positive where all that it asks for is there.
"""

import json
import re

import numpy as np
from numpy.typing import NDArray

from nmt.plugins.exchange.protobuf import message

CLASSES = TERMINAL, CLOSING, WIDE_TERMINAL, WIDE_CLOSING, BLANK, SMALL = (
    ".!?\u2026\u0589\u061f\u06d4\u0964\u0965\u104b\u1362\u17d4",
    "\"')]}\u00bb\u2019\u201c\u201d\u203a",
    "\u3002\uff01\uff1f\uff61",
    "\u300d\u300f\uff09\u3011\uff63",
    " ",
    "".join(filter(str.islower, map(chr, range(0x590)))),
)
"""Classes of characters; MiniSBD gives all white space as a blank. Small letters are those of four European scripts."""
END = re.compile(
    f"[{re.escape(TERMINAL)}][{re.escape(CLOSING)}]?(?= [^{SMALL}])"
    f"|[{WIDE_TERMINAL}](?![{WIDE_TERMINAL}{WIDE_CLOSING}])|(?<=[{WIDE_TERMINAL}])[{WIDE_CLOSING}](?![{WIDE_CLOSING}])"
)
RULES: tuple[tuple[dict[tuple[str, int], int], float], ...] = (
    ({(TERMINAL, 0): 1, (BLANK, 1): 1, (SMALL, 2): -1}, 1.5),
    ({(TERMINAL, -1): 1, (CLOSING, 0): 1, (BLANK, 1): 1, (SMALL, 2): -1}, 2.5),
    ({(WIDE_TERMINAL, 0): 1, (WIDE_TERMINAL, 1): -1, (WIDE_CLOSING, 1): -1}, 0.5),
    ({(WIDE_TERMINAL, -1): 1, (WIDE_CLOSING, 0): 1, (WIDE_CLOSING, 1): -1}, 1.5),
)
"""The same: weights by class and distance of a character, and what their sum must exceed."""
FIRST, WIDTH = -1, 4
"""The distance of the first character that a rule sees, and the number of characters."""
PADDING, UNKNOWN = "<PAD>", "<UNK>"
FLOAT, INT64 = 1, 7
"""Types of ONNX."""
IR_VERSION, OPERATORS = 8, 13
"""Versions of ONNX: 1.10 and its set of operators, or later."""


def sentences(line: str, whole: int) -> list[str]:
    """The sentences that the model finds in a line; one of at most `whole` characters is not split."""
    text = re.sub(r"\s+", " ", line).rstrip()
    ends = [match.end() for match in END.finditer(text)] if len(text) > whole else []
    parts = [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [part.strip() for part in parts if part.strip()]


def sentence_model(language: str, whole: int) -> bytes:
    """The model, as a file of ONNX; it leaves lines of at most `whole` characters as they are."""
    numbers = {character: number for number, each in enumerate(CLASSES, 2) for character in each}
    vocabulary = {"_unit2id": {PADDING: 0, UNKNOWN: 1, **numbers}, "lang": language}
    config = {"skip_newline": False, "max_seqlen": 10**6, "no_ssplit": False, "batch_size": 1, "feat_funcs": []}
    metadata = {"lang_code": language, "config": json.dumps(config), "vocab": json.dumps(vocabulary)}
    return message(
        (1, IR_VERSION),
        (2, "nmt"),
        (7, graph(whole)),
        (8, message((1, ""), (2, OPERATORS))),
        *((14, message((1, key), (2, value))) for key, value in metadata.items()),
    )


def graph(whole: int) -> bytes:
    """units (1, T + 1), whose last is padding, and features (1, T + 1, 0) to logits (1, T + 1, 3)."""
    rules = np.zeros((len(RULES), len(CLASSES), WIDTH), np.float32)
    for number, (weights, _) in enumerate(RULES):
        for (kind, distance), weight in weights.items():
            rules[number, CLASSES.index(kind), distance - FIRST] = weight
    thresholds = np.array([-threshold for _, threshold in RULES], np.float32)
    nodes = (
        node("Gather", "classes units", "seen"),
        node("Transpose", "seen", "columns", perm=[0, 2, 1]),
        node("Conv", "columns rules thresholds", "found", pads=[-FIRST, WIDTH - 1 + FIRST]),
        node("ReduceMax", "found", "best", axes=[1]),
        node("Shape", "units", "shape"),
        node("Gather", "shape one", "length"),
        node("Greater", "length whole", "is_long"),
        node("Where", "is_long best never", "end"),
        node("Conv", "end spread otherwise", "rows"),
        node("Transpose", "rows", "logits", perm=[0, 2, 1]),
    )
    constants = (
        tensor("classes", np.eye(len(CLASSES) + 2, dtype=np.float32)[:, 2:]),
        tensor("rules", rules),
        tensor("thresholds", thresholds),
        tensor("one", np.array(1)),
        tensor("whole", np.array(whole + 1)),
        tensor("never", np.array(-1, np.float32)),
        tensor("spread", np.array([0, 0, 1], np.float32).reshape(3, 1, 1)),
        tensor("otherwise", np.array([0, -1, 0], np.float32)),
    )
    return message(
        *((1, each) for each in nodes),
        (2, "sentences"),
        *((5, each) for each in constants),
        (11, value("units", INT64, 2)),
        (11, value("features", FLOAT, 3)),
        (12, value("logits", FLOAT, 3)),
    )


def node(operator: str, inputs: str, output: str, **lists: list[int]) -> bytes:
    """An operator of ONNX with the names of its inputs and its output."""
    ints = 7
    attributes = (
        message((1, name), *((8, number) for number in numbers), (20, ints)) for name, numbers in lists.items()
    )
    return message(*((1, name) for name in inputs.split()), (2, output), (4, operator), *((5, a) for a in attributes))


def tensor(name: str, array: NDArray[np.float32] | NDArray[np.int64]) -> bytes:
    """A constant of ONNX."""
    kind = FLOAT if array.dtype == np.float32 else INT64
    raw = array.astype("<f4" if kind == FLOAT else "<i8").tobytes()
    return message(*((1, size) for size in array.shape), (2, kind), (8, name), (9, raw))


def value(name: str, kind: int, dimensions: int) -> bytes:
    """An input or output of ONNX, of any size."""
    shape = message(*((1, message((2, f"{name}_{number}"))) for number in range(dimensions)))
    return message((1, name), (2, message((1, message((1, kind), (2, shape))))))
