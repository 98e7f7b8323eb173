"""The parameters that training leaves unchanged, `optim.frozen`.

A name stands for parameters of the Transformer:

- `embeddings`: all embeddings, and the projection before the softmax;
- `encoder`, `decoder`: all layers and the final norm;
- `encoder.3`, `decoder.0-5`: some of the layers, counted from 0;
- a pattern of names, such as `*.cross_attention` or `decoder_layers.*.feed_forward.*.bias`.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from torch import nn

from nmt.config import in_words, nearest, shown
from nmt.errors import SameForAll
from nmt.model import Transformer

KEY = "optim.frozen"
PARTS = {
    "embeddings": ["source_embedding", "target_embedding", "output"],
    "encoder": ["encoder_layers", "encoder_norm"],
    "decoder": ["decoder_layers", "decoder_norm"],
}
"""A part of the model -> the names of its modules."""

LAYERS = re.compile(r"(encoder|decoder)\.(\d+)(?:-(\d+))?((?:\..+)?)")
"""`encoder.3` or `encoder.0-5`, and what follows, such as `.feed_forward`."""


def freeze(model: Transformer, names: Sequence[str]) -> None:
    """Freeze the parameters that `names` stand for.

    Raises NMTError for a name that stands for no parameter, and if nothing is left to train.
    """
    # Tied matrices have several names, and each of the names freezes the matrix.
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name in names:
        patterns = patterns_of(name, model)
        matching = [key for key in parameters if matches_any(key, patterns)]
        if not matching:
            raise SameForAll(
                f"{KEY}={shown(name)}: no parameter has this name; "
                f"{nearest(name, names_to_suggest(model, name))}"
            )
        for key in matching:
            # Autograd then computes no gradient, so there is none to add up or to exchange.
            parameters[key].requires_grad_(False)
    if not trained_parameters(model):
        raise SameForAll(f"{KEY}={in_words(list(names))}: leaves no parameter to train")


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that are not frozen."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def patterns_of(name: str, model: Transformer) -> list[str]:
    """The patterns of modules or parameters that a name stands for."""
    if name in PARTS:
        return PARTS[name]
    layers = LAYERS.fullmatch(name)
    if layers is None:
        return [name]
    stack, first, last, rest = layers.groups()
    count = len(model.encoder_layers if stack == "encoder" else model.decoder_layers)
    start = int(first)
    stop = int(last or first)
    if not start <= stop < count:
        raise SameForAll(f"{KEY}={shown(name)}: the layers are {stack}.0 to {stack}.{count - 1}")
    return [f"{stack}_layers.{number}{rest}" for number in range(start, stop + 1)]


def matches_any(parameter: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches a parameter's name, or a module that contains the parameter."""
    for pattern in patterns:
        if fnmatchcase(parameter, pattern) or fnmatchcase(parameter, f"{pattern}.*"):
            return True
    return False


def names_to_suggest(model: Transformer, name: str) -> list[str]:
    """The names to suggest instead of a name that stands for no parameter."""
    parts = [*PARTS, "encoder.0", "decoder.0"]
    # Only for a name like theirs: the list would fill the screen.
    if "_" not in name and "*" not in name:
        return parts
    # A module, like a parameter, is a name that freezes something.
    modules = [key for key, module in model.named_modules() if key and holds_parameters(module)]
    return [*parts, *modules, *dict(model.named_parameters())]


def holds_parameters(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())
