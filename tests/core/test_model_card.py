"""The model card tells what the corpus and its languages are called, whatever that is."""

import re
from dataclasses import asdict

from nmt.config import ModelConfig
from nmt.files import ModelDescription, model_card

NAME = "<script>a|b`c\n# d"
MODEL = ModelConfig(name="m", encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, heads=2)


def test_names_stay_words():
    training = {
        "updates": 3,
        "averaged": [1, 3],
        "tokens": 7000,
        "seconds": 60.0,
        "devices": NAME,
        "versions": {"nmt": NAME},
        "score": {"metric": NAME, "name": NAME, "value": 1.0, "sentences": 4, "signature": "nrefs:1|case:mixed"},
        "corpus": NAME,
        "config": {"data": {"name": NAME, "kind": NAME}, "tokenizer": {"kind": NAME}, "seed": NAME},
    }
    text = model_card(ModelDescription(asdict(MODEL), 300, NAME, NAME, NAME, training), parameters=12_345)
    assert re.findall(r"^#.*", text.split("```")[0], flags=re.M) == [text.splitlines()[0]]
    inline = re.sub(r"(?<!\\)(`+)[^`].*?\1", "", text.split("\n```\n")[0])
    assert not re.search(r"(?<!\\)[<`]", inline)
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 3, line
    for words in (
        "7,000 target tokens",
        "seconds on",
        "updates 1, 3",
        "1.00 on 4 sentences, `nrefs:1",
        "12,345",
    ):
        assert words in text
    del training["score"]
    assert "| Quality | not measured |" in model_card(ModelDescription(asdict(MODEL), 300, "a", "b", "", training), 1)
