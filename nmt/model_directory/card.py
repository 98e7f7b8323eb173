"""The model card: README.md of a model directory."""

import math
from typing import Any

from nmt import __version__
from nmt.model import Transformer
from nmt.storage.markdown import block, cell, code, plain


def model_card(model: Transformer, checkpoint: dict[str, Any], updates: list[int], score: str | None) -> str:
    """Data, size, training, cost and quality of a model, in Markdown."""
    about = checkpoint["nmt"]
    config, meters = about["config"], checkpoint["callbacks"]["MetricsCallback"]
    m = model.config
    parameters = sum(parameter.numel() for parameter in model.parameters())
    hours = meters["seconds"] / 3600
    minutes = math.ceil(meters["seconds"] / 60)
    time = f"{hours:.1f} hours" if hours >= 1 else f"{minutes} minute{'s' if minutes > 1 else ''}"
    steps = ", ".join(f"{update:,}" for update in updates)
    data, kind = plain(config["data"]["name"]), plain(config["data"]["kind"])
    size = f"{m.encoder_layers} + {m.decoder_layers} layers, d_model {m.d_model}, d_ff {m.d_ff}, {m.heads} heads"
    source, target = plain(about["source"]), plain(about["target"])
    parses = config["data"]["kind"] == "treebank"
    does = "parses sentences" if parses else f"translates from {source} to {target}"
    command = f"nmt {'parse' if parses else 'translate'} run=THIS_FOLDER < input.{about['source']}"
    return f"""# {data}, {plain(m.name)}: {source}-{target}

A Transformer (Vaswani et al. 2017) that {does}.
Trained with nmt {__version__}.

| | |
|---|---|
| Corpus | {data} ({kind}), fingerprint {cell(code(about["corpus"][:16]))} |
| Vocabulary | {about["vocabulary_size"]:,} ({plain(config["tokenizer"]["kind"])}, joint) |
| Model | {size}, {m.norm}-norm; {parameters:,} parameters |
| Training | {checkpoint["global_step"]:,} updates, {meters["tokens"]:,} target tokens, seed {plain(config["seed"])} |
| Cost | {time} on {plain(meters["devices"])} |
| Weights | mean of the checkpoints at updates {steps} |
| Quality | {cell(score or "not measured")} |

{block(command)}
"""
