"""`nmt attention`: the page contains every weight of every head, loads nothing, and runs no script."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from nmt.config import BOS, EOS, PAD
from nmt.model import load_model
from nmt.plugins.results.attention_page import bands, model_attention
from nmt.text import read_tokenizer
from tests.conftest import write_random_model
from tests.core.test_forced import random_model, torch_attention

SENTENCE, TARGET = "ka lo mi nu", "mi <lo> ka"


def opacity(address: str) -> np.ndarray:
    """The opacity of every pixel of the picture in a data URL."""
    with Image.open(
        io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,")))
    ) as image:
        assert image.mode == "RGBA"
        return np.asarray(image)[..., 3] / 255


def test_bands_are_the_largest_weights_of_each_query():
    weights = np.full((2, 8), 0.02, dtype=np.float32)
    weights[0, :3], weights[1] = (0.5, 0.25, 0.005), np.arange(1, 9) / 36
    drawn = bands(weights)
    assert [(q, k) for q, k, _ in drawn if q == 1] == [(1, 7), (1, 6), (1, 5), (1, 4), (1, 3)]
    assert [(k, pytest.approx(share)) for q, k, share in drawn if q == 0] == [(0, 1.0), (1, 0.5)]


@pytest.mark.parametrize(
    "settings",
    [{}, {"norm": "pre"}, {"attention": "dot_product"}, {"attention_window": 2}],
    ids=str,
)
def test_weights_equal_those_of_torchs_attention(monkeypatch, settings):
    model = random_model(4, **settings)
    source = torch.tensor([[5, 6, 7, EOS, PAD], [9, 10, 11, 12, EOS]])
    target = torch.tensor([[BOS, 6, 7, 8], [BOS, 9, PAD, PAD]])
    expected = torch_attention(monkeypatch, model, source, target)
    attention = model_attention(model, source, target)
    torch.testing.assert_close(attention.encoder, torch.stack(expected[:2], 1))
    torch.testing.assert_close(attention.decoder, torch.stack(expected[2::2], 1))
    torch.testing.assert_close(attention.cross, torch.stack(expected[3::2], 1))
    for weights in (attention.encoder, attention.decoder, attention.cross):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert not attention.encoder[0, ..., :4, 4].any()
    assert not attention.cross[0, ..., 4].any()
    assert not attention.decoder.triu(1).any()


def test_page_has_all_weights_and_loads_nothing(nmt, finished):
    done = nmt("attention", SENTENCE, f"target={TARGET}", f"run={finished}", "device=cpu")
    assert (done.code, done.out) == (0, "attention.html\n"), done.err
    text = Path("attention.html").read_text(encoding="utf-8")
    tree = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    model, tokenizer = load_model(finished / "model"), read_tokenizer(finished / "model")
    source, target = tokenizer.encode([SENTENCE, TARGET])
    attention = model_attention(
        model, torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])
    )
    sections = tree.findall(".//section")
    titles = ["Cross-attention", "Encoder self-attention", "Decoder self-attention"]
    assert [section.find("h2").text for section in sections] == titles
    for part, weights in zip(
        sections, (attention.cross, attention.encoder, attention.decoder), strict=True
    ):
        images = part.findall(".//image")
        assert len(images) == 1 + model.config.heads
        for image, matrix in zip(images, [*weights[0, 0], weights[0, 0].mean(0)], strict=True):
            held = opacity(image.get("href"))
            assert np.abs(held - (matrix / matrix.max()).numpy()).max() < 0.5 / 255 + 1e-5
    assert [node.text for node in tree.findall(".//dd")] == [SENTENCE, TARGET]
    tokens = [*tokenizer.subwords(target), "</s>", *tokenizer.subwords(source), "</s>"]
    assert [node.text for node in sections[0].findall(".//title")] == tokens
    assert "&lt;lo&gt;" in text
    assert f"given translation: {len(target) + 1} tokens" in text
    assert "<script" not in text
    assert not re.search(r"https?://|@import|url\(", text)
    assert "default-src 'none'" in tree.find(".//meta[@http-equiv]").get("content")
    ids = {node.get("id") for node in tree.iter()}
    for node in tree.iter():
        address = node.get("href", "data:")
        assert address.startswith("data:") or (node.tag == "use" and address[1:] in ids)
    chosen = [button.get("name") for button in tree.iter("input") if button.get("checked")]
    assert sorted(chosen) == sorted(
        {button.get("name") for button in tree.iter("input")}
    )  # one per group


def test_progress_is_shown_on_a_terminal_only(nmt, finished, monkeypatch):
    command = ("attention", SENTENCE, f"run={finished}", "device=cpu")
    assert nmt(*command).err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if standard error were a terminal
    monkeypatch.setenv("TERM", "xterm")
    done = nmt(*command)
    assert done.out == "attention.html\n"
    assert "drawing the attention" in done.err


def test_model_translates_without_target_and_errors_are_one_line(nmt, finished):
    assert (
        nmt("attention", "ka = lo / mi", f"run={finished}", "device=cpu", "output=x.html").code == 0
    )
    text = Path("x.html").read_text(encoding="utf-8")
    assert "translation by the model" in text
    assert "ka = lo / mi" in text
    nmt("attention", SENTENCE, f"run={finished}", "output=x.pdf").refused(".html")
    nmt("attention", "ka", "lo").refused("one sentence and one run")
    assert nmt("attention", " ", f"run={finished}").code == 0
    nmt("attention", "ka " * 300, f"run={finished}", "target=ka").refused("at most 200")


def test_each_layer_of_a_deep_decoder_can_be_shown(nmt, tmp_path):
    model = tmp_path / "model"
    write_random_model(model, encoder_layers=1, decoder_layers=3)
    command = ("attention", SENTENCE, f"target={TARGET}", f"run={model}", "device=cpu")
    assert nmt(*command).code == 0
    text = Path("attention.html").read_text(encoding="utf-8")
    for layer in (1, 2, 3):
        assert f".pick-layer-{layer}:checked) .layer-{layer} " in text


def test_a_missing_run_is_not_taken_for_a_second_sentence(nmt):
    nmt("attention", "A dog.", "runs/latest").refused(
        "runs/latest: no such run; train a model first"
    )
    nmt("attention", "runs/mine", "A dog.").refused("runs/mine: no such file or folder; pass a run")
    nmt("attention", "A dog.", "A cat.").refused("pass one sentence and one run")
