"""The model card tells what the corpus and its languages are called, whatever that is."""

import re

from nmt.config import ModelConfig
from nmt.model import Transformer
from nmt.model_directory.card import model_card

NAME = "<script>a|b`c\n# d"


def test_names_stay_words():
    config = {"data": {"name": NAME, "kind": NAME}, "tokenizer": {"kind": NAME}, "seed": NAME}
    about = {"config": config, "source": NAME, "target": NAME, "corpus": NAME, "vocabulary_size": 300}
    meters = {"seconds": 60.0, "tokens": 7, "devices": NAME}
    checkpoint = {"nmt": about, "callbacks": {"MetricsCallback": meters}, "global_step": 3}
    model = Transformer(ModelConfig(name="m", encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, heads=2), 300)
    score = "validation BLEU 1.00 on 4 sentences, `nrefs:1|case:mixed`"
    text = model_card(model, checkpoint, [3], score)
    assert re.findall(r"^#.*", text.split("```")[0], flags=re.M) == [text.splitlines()[0]]
    inline = re.sub(r"(?<!\\)(`+)[^`].*?\1", "", text.split("\n```\n")[0])
    assert not re.search(r"(?<!\\)[<`]", inline)
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 3, line
    assert "1 minute on \\<script\\>a\\|b\\`c # d" in text
