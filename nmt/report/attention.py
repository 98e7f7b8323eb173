"""`nmt attention`: what every head looks at, in a sentence and its translation, as a page or a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nmt import __version__
from nmt.config import EOS
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.model_directory.weights import load_model
from nmt.report.bands import Matrix, beside, draw_bands, draw_map
from nmt.report.details import section
from nmt.report.heat import data_uri, head_colour
from nmt.report.markup import Markup, join, tag
from nmt.report.output import check_output
from nmt.report.page import head, style_sheet
from nmt.search.attention_weights import model_attention
from nmt.search.forced_decoding import aligning_layer, force, pad_inputs
from nmt.search.torch_engine import TorchEngine, pad_source
from nmt.storage.whole import write_file
from nmt.text.tokenizers import Tokenizer, clean
from nmt.translation.load import choose_device, find_models

MOST = 200
"""Tokens of a sentence that can be drawn: pages grow with their square."""


@dataclass
class Stack:
    """One kind of attention, layer by layer."""

    name: str
    title: str
    columns: tuple[str, str]
    """What stands on the left, and what on the right."""
    layers: list[Matrix]
    first: int
    """The layer that is shown first."""


@dataclass
class Look:
    """A sentence, its translation, and the attention of a model to both."""

    sentence: str
    target: str
    given: bool
    """Whether the translation is not the model's own."""
    model: Path
    log_probability: float
    tokens: int
    stacks: list[Stack]


def chosen(key: str, wanted: int | None, count: int, what: str) -> list[int]:
    """The one that is wanted, or all, counted from 1; NMTError where there is no such one."""
    if wanted is not None and wanted > count:
        raise NMTError(f"{key}={wanted}: the model has {count} {what}")
    return list(range(1, count + 1)) if wanted is None else [wanted]


def stack(
    config: Any, words: tuple[str, str], weights: torch.Tensor, tokens: tuple[list[str], ...], first: int
) -> Stack:
    """Weights [L, H, Q, K] of one kind of attention, whose first picture is of layer `first`."""
    name, title = words
    layers = chosen("layer", config.layer, len(weights), f"layers in its {name}")
    heads = chosen("head", config.head, weights.shape[1], "heads")
    matrices = [
        Matrix(
            layer, heads, weights.shape[1], weights[layer - 1, [h - 1 for h in heads]].float().cpu().numpy(), *tokens
        )
        for layer in layers
    ]
    columns = ("token", "looks at") if name == "encoder" else ("to predict", "looks at")
    return Stack(name, title, columns, matrices, first if first in layers else layers[-1])


def find_target(config: Any, model: Transformer, tokenizer: Tokenizer, source: list[int]) -> list[int]:
    """The tokens of the translation: the given one's, or the model's."""
    if config.target is not None:
        return tokenizer.encode([clean(config.target)])[0]
    return TorchEngine([model], config.decode).search([source], [[]])[0][0].tokens


def look(config: Any) -> Look:
    """Translate the sentence, and watch; NMTError where that cannot be."""
    [folder], _, tokenizer = find_models([config.run])
    device = torch.device(choose_device(config.device))
    model = load_model(folder, device)
    source = tokenizer.encode([clean(config.sentence)])[0]
    target = find_target(config, model, tokenizer, source)
    if max(len(source), len(target)) > MOST:
        raise NMTError(f"sentence: {max(len(source), len(target))} tokens; at most {MOST} can be drawn")
    found = model_attention(model, pad_source([source], device), pad_inputs([target], device))
    sources, inputs, outputs = (tokenizer.subwords(ids) for ids in ([*source, EOS], target, [*target, EOS]))
    inputs = ["<s>", *inputs]
    aligning, deepest = aligning_layer(model) + 1, len(model.encoder_layers)
    stacks = [
        stack(config, ("encoder", "Encoder self-attention"), found.encoder[0], (sources, sources), deepest),
        stack(config, ("decoder", "Decoder self-attention"), found.decoder[0], (outputs, inputs), aligning),
        stack(config, ("decoder", "Cross-attention"), found.cross[0], (outputs, sources), aligning),
    ]
    [judged] = force([model], [(source, target)], MOST)
    text = " ".join(tokenizer.decode(target).split())
    total = sum(judged.log_probabilities)
    return Look(config.sentence, text, config.target is not None, folder, total, len(outputs), stacks)


def choice(name: str, kind: str, value: object, on: bool, *label: object, class_: str = "") -> Markup:
    """A button of which one at a time is pressed."""
    button = tag("input", type="radio", name_=name, class_=f"pick-{kind}-{value}", checked="checked" if on else None)
    return tag("label", button, *label, class_=class_ or None)


def layer_block(matrix: Matrix, name: str, columns: tuple[str, str]) -> Markup:
    """The pictures of one layer below the heads to choose from."""
    group, several = f"{name}-{matrix.layer}", len(matrix.heads) > 1
    buttons = [choice(group, "head", "all", True, "all", class_="all")] if several else []
    for place, (number, weights) in enumerate(zip(matrix.heads, matrix.weights, strict=True)):
        picture = tag("img", src=data_uri(weights, head_colour(number - 1, matrix.of)), alt="")
        buttons.append(choice(group, "head", number, not several and place == 0, picture, number))
    rows = f"a row: a token{' to predict' if columns[0] != 'token' else ''}, and what it looks at"
    return tag(
        "div",
        tag("fieldset", tag("legend", "Head"), *buttons, class_="heads"),
        tag(
            "div",
            tag("figure", draw_bands(matrix, columns)),
            tag("figure", tag("div", draw_map(matrix), class_="scroll"), tag("figcaption", rows, class_="unit")),
            class_="pictures",
        ),
        class_=f"layer layer-{matrix.layer}",
    )


def stack_section(stack: Stack, number: int) -> Markup:
    """The pictures of one kind of attention, by layer."""
    name = f"stack-{number}"
    layers = [choice(name, "layer", m.layer, m.layer == stack.first, m.layer) for m in stack.layers]
    return section(
        stack.title,
        tag("fieldset", tag("legend", "Layer"), *layers, class_="layers"),
        *(layer_block(matrix, name, stack.columns) for matrix in stack.layers),
    )


def rules(stacks: list[Stack]) -> str:
    """The style sheet that shows the layer and head that are chosen, and the bands of the token under the pointer."""
    layers = {matrix.layer for stack in stacks for matrix in stack.layers}
    heads = {number for stack in stacks for matrix in stack.layers for number in matrix.heads}
    tokens = max(len(side) for stack in stacks for m in stack.layers for side in (m.queries, m.keys))
    lines = [f"section:has(.pick-layer-{n}:checked) .layer-{n} {{ display: block; }}" for n in sorted(layers)]
    for place, n in enumerate(sorted(heads)):
        alone = f"stroke-width: 5; transform: translateY({-beside(place, len(heads)):.1f}px);"
        picked = f".layer:has(.pick-head-{n}:checked)"
        lines.append(f"{picked} .bands .head:not(.head-{n}), {picked} .mean {{ display: none; }}")
        lines.append(f"{picked} .bands .head-{n} {{ {alone} }} {picked} .map .head-{n} {{ display: inline; }}")
    for side in ("q", "k"):
        for n in range(tokens):
            lines.append(f".bands:has(.token.{side}{n}:hover) path:not(.{side}{n}) {{ opacity: 0.03; }}")
    return "\n".join(lines) + "\n"


def page(seen: Look) -> str:
    """The HTML of a look."""
    label = "translation that was given" if seen.given else "translation by the model"
    perplexity = np.exp(-seen.log_probability / seen.tokens)
    said = f"{seen.tokens} tokens, log probability {seen.log_probability:.2f}, perplexity {perplexity:.2f}"
    body = tag(
        "body",
        tag("h1", "Attention"),
        tag(
            "dl",
            join(tag("dt", "sentence"), tag("dd", seen.sentence, dir="auto")),
            join(tag("dt", f"{label}: {said}"), tag("dd", seen.target or tag("i", "(empty)"), dir="auto")),
            class_="sentences",
        ),
        *(stack_section(stack, number) for number, stack in enumerate(seen.stacks)),
        tag("footer", f"nmt {__version__}, {seen.model}; a band or cell is the more opaque the greater its weight"),
    )
    styles = (style_sheet("page.css"), style_sheet("attention.css"), rules(seen.stacks))
    return f"<!DOCTYPE html>\n{tag('html', head('Attention', *styles), body, lang='en')}\n"


def attention(config: Any) -> Path:
    """Write the page or picture of a sentence, after the paper's figures 3, 4 and 5, and give its path.

    Raises NMTError where the model is missing, has no such layer or head, or the file cannot be written.
    """
    output = check_output(Path(config.output), Path(config.output) / "attention.html")
    if output.suffix == ".png":
        from nmt.report.attention_figure import load_matplotlib, write_figure

        load_matplotlib(output)  # before the model is loaded
        write_figure(output, [(stack.title, stack.layers) for stack in look(config).stacks])
    else:
        write_file(output, page(look(config)))
    return output
