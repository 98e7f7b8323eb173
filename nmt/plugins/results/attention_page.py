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
from nmt.config import BOS, EOS, require
from nmt.model import Transformer, load_model
from nmt.plugins.results.commands import AttentionConfig
from nmt.plugins.results.pages import render

Weights = npt.NDArray[np.float32]
MAX_TOKENS = 200  # per sentence, because the size of the page grows with the square of its length
MAX_LABEL_LETTERS = 15
MAX_BANDS, MIN_SHARE = (
    5,
    0.05,
)  # maximum per query, and the smallest share of the largest weight to draw


class Attention(NamedTuple):
    """The attention weights of every layer and head; each query's weights sum to 1."""

    cross: Tensor  # [B, L, H, T, S]
    encoder: Tensor  # [B, L, H, S, S]
    decoder: (
        Tensor | None
    )  # [B, L, H, T, T]; the first position is the start symbol; None with model.decoder=ssru


@torch.inference_mode()
def model_attention(model: Transformer, source_BS: Tensor, inputs_BT: Tensor) -> Attention:
    """All attention weights of a model (figures 3 to 5 of the paper show some)."""
    encoder_layers, decoder_layers = (
        cast(Any, model.encoder_layers),
        cast(Any, model.decoder_layers),
    )
    with (
        search.recorded([layer.cross_attention for layer in decoder_layers]) as cross,
        search.recorded([layer.self_attention for layer in encoder_layers]) as encoder,
        search.recorded(
            [layer.self_attention for layer in decoder_layers if layer.ssru is None]
        ) as decoder,
    ):
        model.decode(inputs_BT, model.encode(source_BS), source_BS)
    return Attention(
        torch.stack(cross, 1), torch.stack(encoder, 1), torch.stack(decoder, 1) if decoder else None
    )


def attention_page(config: AttentionConfig, show: Callable[[str], None]) -> str:
    """The HTML page with figures 3, 4 and 5; NMTError for a sentence or translation that is too long.

    `show` displays what nmt is doing.
    """
    [folder], _, tokenizer = translation.find_models([config.run])
    place = torch.device(search.choose_device(config.translator.compute.device))
    model = load_model(folder, place)
    [source] = tokenizer.encode([tokenizer.clean(config.sentence)])
    if config.target is None:
        show("translating")
        [found] = search.TorchEngine([model], config.translator.decode).search([source], [[]])
        require(bool(found), f"run={config.run}: {translation.NO_TRANSLATION}")
        ids = found[0].tokens
    else:
        [ids] = tokenizer.encode([tokenizer.clean(config.target, text.TARGET)], text.TARGET)
    longest = max(len(source), len(ids))
    require(longest <= MAX_TOKENS, f"sentence: {longest} tokens; at most {MAX_TOKENS} can be drawn")
    show("drawing the attention")
    source_BS = torch.tensor([[*source, EOS]], device=place)
    inputs_BT = torch.tensor([[BOS, *ids]], device=place)
    attention = model_attention(model, source_BS, inputs_BT)
    sources = tokenizer.subwords([*source, EOS], text.SOURCE)
    outputs = tokenizer.subwords([*ids, EOS], text.TARGET)
    cross, encoder, *decoder = (
        part[0].float().cpu().numpy() for part in attention if part is not None
    )
    if source and not model.config.source_end:
        cross, encoder, sources = cross[..., :-1], encoder[..., :-1, :-1], sources[:-1]
    aligning = search.aligning_layer(len(model.decoder_layers)) + 1
    return render(
        "attention_page.html",
        config=config,
        model=folder,
        target=" ".join(tokenizer.decode(ids).split()),
        stacks=[  # a title, weights, queries, keys, and the layer to show first, counted from 1
            ("Cross-attention", cross, outputs, sources, aligning),
            ("Encoder self-attention", encoder, sources, sources, len(encoder)),
            *(
                ("Decoder self-attention", part, outputs, ["<s>", *outputs[:-1]], aligning)
                for part in decoder
            ),
        ],
        heads=[*range(1, model.config.heads + 1)],
        most_layers=max(len(encoder), len(decoder)),
        most_tokens=max(len(sources), len(outputs)),
        longest_label=min(max(map(len, ["<s>", *sources, *outputs])), MAX_LABEL_LETTERS),
        max_label_letters=MAX_LABEL_LETTERS,
        blank=text.META,
        max_bands=MAX_BANDS,
        **{function.__name__: function for function in (hue, picture, bands)},
    )


def hue(head: int) -> float:
    """The hue of a head in degrees; steps of the golden angle keep any number of heads distinct."""
    return round((212 + 137.5 * (head - 1)) % 360, 1)


def picture(weights_QK: Weights, degrees: float) -> str:
    """A heat map as the data URL of a PNG with one pixel per weight; opacity is a weight's share of the largest."""
    pixels = np.empty((*weights_QK.shape, 4), np.uint8)
    pixels[..., :3] = [round(255 * part) for part in colorsys.hls_to_rgb(degrees / 360, 0.47, 0.72)]
    pixels[..., 3] = np.round(255 * weights_QK / weights_QK.max())
    Image.fromarray(pixels).save(file := io.BytesIO(), "png")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def bands(weights_QK: Weights) -> list[tuple[int, int, float]]:
    """The bands to draw for a head: query, key, and weight as a share of the head's largest weight."""
    shares = weights_QK / weights_QK.max()
    strongest = np.argsort(-shares, axis=1)[:, :MAX_BANDS]
    pairs = [(query, int(key)) for query, keys in enumerate(strongest) for key in keys]
    return [
        (query, key, float(shares[query, key]))
        for query, key in pairs
        if shares[query, key] >= MIN_SHARE
    ]
