"""Every head's attention for a sentence and its translation (figures 3, 4 and 5 of the paper).

Shapes: B sentences, L layers, H heads, Q queries, K keys, T target positions, S source positions.
"""

import base64
import colorsys
import io
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from nmt import search, text, translation
from nmt.config import BOS, EOS, NMTError
from nmt.model import Transformer, load_model
from nmt.plugins.results.options import AttentionConfig
from nmt.plugins.results.pages import render

Weights = npt.NDArray[np.float32]
MAX_TOKENS = 200
"""Maximum tokens per sentence, because the size of the page grows with the square of its length."""
MAX_LABEL_LETTERS = 15
"""Letters of a token to show; the page cuts longer ones off."""
MAX_BANDS = 5
"""Bands to draw for each query."""
# The same for all heads, so that none stands out.
LIGHTNESS = 0.47
SATURATION = 0.72
MIN_SHARE = 0.05
"""A band is drawn if its weight is at least this share of the head's largest weight."""


class Attention(NamedTuple):
    """The attention weights of every layer and head; each query's weights sum to 1."""

    cross: Tensor
    """[B, L, H, T, S]"""
    encoder: Tensor
    """[B, L, H, S, S]"""
    decoder: Tensor | None
    """[B, L, H, T, T], from the start symbol on; None with model.decoder=ssru."""


class Stack(NamedTuple):
    """The heads of all layers of one kind of attention, as the page draws them."""

    title: str
    weights_LHQK: Weights
    queries: list[str]
    keys: list[str]
    first_shown: int
    """The layer to show first, counted from 1."""


@torch.inference_mode()
def model_attention(model: Transformer, source_BS: Tensor, inputs_BT: Tensor) -> Attention:
    """All attention weights of a model (figures 3 to 5 of the paper show some)."""
    encoder_layers = cast(Any, model.encoder_layers)
    decoder_layers = cast(Any, model.decoder_layers)
    of_encoder = [layer.self_attention for layer in encoder_layers]
    # A recurrent layer has no self-attention.
    of_decoder = [layer.self_attention for layer in decoder_layers if layer.ssru is None]
    between = [layer.cross_attention for layer in decoder_layers]
    with (
        search.recorded(between) as cross,
        search.recorded(of_encoder) as encoder,
        search.recorded(of_decoder) as decoder,
    ):
        model.decode(inputs_BT, model.encode(source_BS), source_BS)
    return Attention(
        cross=torch.stack(cross, 1),
        encoder=torch.stack(encoder, 1),
        decoder=torch.stack(decoder, 1) if decoder else None,
    )


def attention_page(config: AttentionConfig, show: Callable[[str], None]) -> str:
    """The HTML page with figures 3, 4 and 5.

    NMTError for a sentence or translation that is too long. `show` displays what nmt is doing.
    """
    models = translation.find_models([config.run])
    [folder] = models.folders
    tokenizer = models.tokenizer
    # Before the weights: a sentence that names no languages costs no waiting.
    source, start = encoded(config.sentence, tokenizer)
    device = torch.device(search.choose_device(config.translator.compute.device))
    model = load_model(folder, device)
    if config.target is None:
        show("translating")
        target = translate(model, source, start, config)
    else:
        [target] = tokenizer.encode([tokenizer.clean(config.target, text.TARGET)], text.TARGET)
        target = start + target
    longest = max(len(source), len(target))
    if longest > MAX_TOKENS:
        raise NMTError(f"sentence: {longest} tokens; at most {MAX_TOKENS} can be drawn")
    show("drawing the attention")
    source_BS = torch.tensor([[*source, EOS]], device=device)
    inputs_BT = torch.tensor([[BOS, *target]], device=device)
    attention = model_attention(model, source_BS, inputs_BT)
    sources = tokenizer.subwords([*source, EOS], text.SOURCE)
    outputs = tokenizer.subwords([*target, EOS], text.TARGET)
    # Queries are named by the token that they predict, keys by the token that they read.
    inputs = ["<s>", *outputs[:-1]]
    if source and not model.config.source_end:
        # The model does not attend to the end symbol of the source.
        sources = sources[:-1]
    longest_label = max(len(label) for label in [*inputs, *sources, *outputs])
    return render(
        "attention_page.html",
        config=config,
        model=folder,
        target=" ".join(tokenizer.decode(target).split()),
        stacks=stacks_of(attention, sources, inputs, outputs),
        heads=[*range(1, model.config.heads + 1)],
        most_layers=max(len(model.encoder_layers), len(model.decoder_layers)),
        most_tokens=max(len(sources), len(outputs)),
        longest_label=min(longest_label, MAX_LABEL_LETTERS),
        max_label_letters=MAX_LABEL_LETTERS,
        blank=text.META,
        max_bands=MAX_BANDS,
        hue=hue,
        picture=picture,
        bands=bands,
    )


def encoded(sentence: str, tokenizer: text.Tokenizer) -> tuple[list[int], list[int]]:
    """A sentence as the model reads it, and the tokens that its translation must begin with.

    These are the tag of the target language, in a model in which targets have one. The stages of
    `nmt translate` are left out.
    """
    line = translation.untagged(sentence, tokenizer)
    if isinstance(line, translation.RefusedLine):
        problem = line.problem
        # Here, the key target is the translation.
        if tokenizer.has_target_tags:
            problem = "begin it with the tag of two languages of the model, such as <en2de>"
        raise NMTError(f"sentence: {problem}")
    [source] = tokenizer.encode([tokenizer.clean(line.tag + line.text)])
    return source, tokenizer.target_start(line.tag.strip())


def translate(
    model: Transformer, source: list[int], start: list[int], config: AttentionConfig
) -> list[int]:
    """The model's own translation, which begins with the tokens `start`."""
    engine = search.TorchEngine([model], config.translator.decode)
    [hypotheses] = engine.search([source], [start])
    if not hypotheses:
        raise NMTError(f"run={config.run}: {translation.NO_TRANSLATION}")
    return hypotheses[0].tokens


def stacks_of(
    attention: Attention, sources: list[str], inputs: list[str], outputs: list[str]
) -> list[Stack]:
    """The stacks to draw, with the subwords of their queries and keys."""
    # Shown first: the layer whose attention nmt reads as a word alignment.
    aligning_layer = search.aligning_layer(attention.cross.shape[1]) + 1
    # Without the end symbol of the source, if `sources` lacks it.
    length = len(sources)
    cross = as_array(attention.cross)[..., :length]
    encoder = as_array(attention.encoder)[..., :length, :length]
    stacks = [
        Stack("Cross-attention", cross, outputs, sources, aligning_layer),
        Stack("Encoder self-attention", encoder, sources, sources, len(encoder)),
    ]
    if attention.decoder is not None:
        decoder = as_array(attention.decoder)
        stacks.append(Stack("Decoder self-attention", decoder, outputs, inputs, aligning_layer))
    return stacks


def as_array(weights_BLHQK: Tensor) -> Weights:
    """The weights of the first sentence: [L, H, Q, K]."""
    array: Weights = weights_BLHQK[0].float().cpu().numpy()
    return array


def hue(head: int) -> float:
    """The hue of a head in degrees; steps of the golden angle keep any number of heads distinct."""
    return round((212 + 137.5 * (head - 1)) % 360, 1)


def picture(weights_QK: Weights, degrees: float) -> str:
    """A heat map as the data URL of a PNG with one pixel per weight.

    Opacity is a weight's share of the largest one.
    """
    color = colorsys.hls_to_rgb(degrees / 360, LIGHTNESS, SATURATION)
    pixels = np.empty((*weights_QK.shape, 4), np.uint8)
    pixels[..., :3] = [round(255 * part) for part in color]
    # In the opacity, so that the picture suits a light and a dark page.
    pixels[..., 3] = np.round(255 * weights_QK / weights_QK.max())
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    content = base64.b64encode(file.getvalue()).decode()
    return f"data:image/png;base64,{content}"


def bands(weights_QK: Weights) -> list[tuple[int, int, float]]:
    """The bands to draw for a head: query, key, and weight as a share of the largest weight."""
    shares = weights_QK / weights_QK.max()
    # Hundreds of faint bands would hide the strong ones and enlarge the page.
    strongest = np.argsort(-shares, axis=1)[:, :MAX_BANDS]
    bands = []
    for query, keys in enumerate(strongest.tolist()):
        for key in keys:
            share = float(shares[query, key])
            if share >= MIN_SHARE:
                bands.append((query, key, share))
    return bands
