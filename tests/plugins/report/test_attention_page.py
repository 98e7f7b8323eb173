"""`nmt attention`: the page holds each weight of each head, asks nothing of any other place, and runs no script."""

import base64
import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from nmt.config import BOS, EOS
from nmt.model import load_model
from nmt.plugins.report.attention_page import bands, picture
from nmt.search import model_attention
from nmt.text import read_tokenizer

SENTENCE, TARGET = "ka lo mi nu", "mi <lo> ka"


def opacity(address: str) -> np.ndarray:
    """The opacity of each pixel of a picture that its address holds."""
    with Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,")))) as image:
        assert image.mode == "RGBA"
        return np.asarray(image)[..., 3] / 255


def test_pictures_hold_the_weights_as_shares_of_the_greatest():
    weights = torch.rand(3, 5, generator=torch.Generator().manual_seed(1)).numpy() / 40
    assert np.abs(opacity(picture(weights, 212)) - weights / weights.max()).max() < 0.5 / 255 + 1e-6


def test_the_strongest_bands_of_each_token_are_drawn():
    weights = np.full((2, 8), 0.02, dtype=np.float32)
    weights[0, :3], weights[1] = (0.5, 0.25, 0.005), np.arange(1, 9) / 36
    drawn = bands(weights)
    assert [(q, k) for q, k, _ in drawn if q == 1] == [(1, 7), (1, 6), (1, 5), (1, 4), (1, 3)]
    assert [(k, pytest.approx(share)) for q, k, share in drawn if q == 0] == [(0, 1.0), (1, 0.5)]


@pytest.fixture
def page(nmt, finished, tmp_path) -> tuple[str, ElementTree.Element]:
    done = nmt("attention", SENTENCE, f"target={TARGET}", f"run={finished}", "device=cpu")
    assert (done.code, done.out) == (0, "attention.html\n"), done.err
    text = (tmp_path / "attention.html").read_text(encoding="utf-8")
    return text, ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def test_every_weight_of_every_head_is_on_the_page(page, finished):
    model, tokenizer = load_model(finished / "model"), read_tokenizer(finished / "model")
    source, target = tokenizer.encode([SENTENCE, TARGET])
    found = model_attention(model, torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))
    sections = page[1].findall(".//section")
    assert [s.find("h2").text for s in sections] == [
        "Cross-attention",
        "Encoder self-attention",
        "Decoder self-attention",
    ]
    for part, weights in zip(sections, (found.cross, found.encoder, found.decoder), strict=True):
        images = part.findall(".//image")
        assert len(images) == 1 + model.config.heads
        expected = [*weights[0, 0], weights[0, 0].mean(0)]
        for image, matrix in zip(images, expected, strict=True):
            held = opacity(image.get("href"))
            assert np.abs(held - (matrix / matrix.max()).numpy()).max() < 0.5 / 255 + 1e-5


def test_the_page_shows_sentence_translation_and_tokens(page, finished):
    text, tree = page
    shown = [node.text for node in tree.findall(".//dd")]
    assert shown == [SENTENCE, TARGET]
    tokenizer = read_tokenizer(finished / "model")
    ids = tokenizer.encode([TARGET])[0]
    cross = tree.findall(".//section")[0]
    titles = [node.text for node in cross.findall(".//title")]
    assert titles == [*tokenizer.subwords(ids), "</s>", *tokenizer.subwords(tokenizer.encode([SENTENCE])[0]), "</s>"]
    assert "&lt;lo&gt;" in text


def test_the_page_asks_nothing_of_any_other_place_and_runs_no_script(page):
    text, tree = page
    assert "<script" not in text
    assert not re.search(r"https?://|@import|url\(", text)
    assert "default-src 'none'" in tree.find(".//meta[@http-equiv]").get("content")
    ids = {node.get("id") for node in tree.iter()}
    for node in tree.iter():
        address = node.get("href", "data:")
        assert address.startswith("data:") or (node.tag == "use" and address[1:] in ids)


def test_one_choice_of_each_kind_is_made_at_first(page):
    chosen = [button.get("name") for button in page[1].iter("input") if button.get("checked")]
    assert sorted(chosen) == sorted({button.get("name") for button in page[1].iter("input")})


def test_without_a_target_the_model_translates_and_one_head_can_be_asked_for(nmt, finished, tmp_path):
    words = ["attention", "ka = lo / mi", f"run={finished}", "device=cpu", "layer=1", "head=2", "output=x.html"]
    assert nmt(*words).code == 0
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "translation by the model" in text
    assert "ka = lo / mi" in text
    assert "head-2" in text
    assert "head-1" not in text


def test_mistakes_are_one_line(nmt, finished):
    words = ["attention", SENTENCE, f"run={finished}", "device=cpu"]
    nmt(*words, "head=9").refused("head=9: the model has 2 heads")
    nmt(*words, "output=x.pdf").refused(".html")
    nmt("attention", "ka", "lo").refused("one sentence and one run")
    nmt("attention", " ").refused("sentence: is empty")
    nmt("attention", "ka " * 300, f"run={finished}", "target=ka").refused("at most 200")
