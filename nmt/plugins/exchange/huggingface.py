"""Export a model directory for Hugging Face's transformers, including the tokenizer.

The classes are those of transformers that compute what our models compute:

MarianMTModel                     post-norm, with the paper's sinusoids
PegasusForConditionalGeneration   pre-norm, with any table of positions: the file contains it
M2M100ForConditionalGeneration,
MBartForConditionalGeneration     imported multilingual models; see multilingual_export.py

AutoModelForSeq2SeqLM and AutoTokenizer load the export, whose logits equal ours up to rounding.
Differences:

- For a model trained by Marian, transformers uses the paper's sinusoids and an epsilon of 1e-5, and
  its softmax includes <pad>, the decoder's start token (in nmt, BOS). So the log P of a token
  differs by about 1e-4.
- Models have a length limit, here max(SHORTEST_LIMIT, max_positions), and biases: zeros if our
  model has none.
- transformers' search divides log P(Y|X) by |Y|^beta, as Marian does, instead of by
  ((5 + |Y|) / 6)^alpha. With the exported beta, both grow equally fast at a typical length. A
  forced end symbol adds nothing to log P.

An imported model gets its MarianTokenizer back. Other tokenizers become a pipeline of the
tokenizers library.
"""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from nmt.config import BOS, DecodeConfig, ModelConfig
from nmt.files import (
    EMBEDDINGS,
    ModelDescription,
    expected_search,
    read_description,
    tied,
    whole_folder,
)
from nmt.model import Transformer, load_model, sinusoids
from nmt.plugins.exchange import multilingual_export
from nmt.plugins.exchange.exporting import ExportConfig, heading, settings_of_model
from nmt.plugins.exchange.hub_weights import Weights
from nmt.plugins.exchange.huggingface_settings import (
    HubExport,
    exported_penalty,
    marian_table,
    position_count,
    settings,
)
from nmt.plugins.exchange.huggingface_tokenizer import fast_tokenizer
from nmt.plugins.exchange.marian import HUB_BIAS, HUB_EMBEDDINGS, HUB_SHARED
from nmt.plugins.exchange.marian_vocabulary import rows_of
from nmt.plugins.exchange.multilingual_hub import POSITIONS
from nmt.plugins.exchange.parameters import exported_layers, halves
from nmt.plugins.exchange.supported import HUGGINGFACE
from nmt.text import MarianTokenizer, MultilingualTokenizer, Tokenizer, read_tokenizer

USAGE = """
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

model = AutoModelForSeq2SeqLM.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")


def translate(line):
    source = tokenizer(line, return_tensors="pt")
    length = source["input_ids"].shape[1]
    if length == 1:  # only the end symbol
        return ""
    longest = min(length + {extra} + 1, {positions})
    [tokens] = model.generate(**source, max_length=longest)
    return " ".join(tokenizer.decode(tokens, skip_special_tokens=True).split())


print(translate({example!r}))
```
{note}
`translate` works like `nmt translate split=never protect=none`, except that

- transformers compares hypotheses by log P(Y|X) / |Y|^{beta:.3g}, nmt by log P(Y|X) / {penalty}
- transformers always finds an end at the maximum length and does not count its log P
- nmt copies lines without letters, and characters that the training data lacks
- nmt reads some such characters as similar ones, such as an uppercase letter as the lowercase one
- transformers fails for lines of {positions} or more subwords, nmt reports them

By default, `nmt translate` also splits lines into sentences and protects items such as URLs.
"""
NOTE_ON_TAGS = """
A line begins with a tag: {tags}. In transformers, a tag in the middle of a line is a tag, too; in
nmt, it is text like any other.
"""


def write(folder: Path, output: Path) -> None:
    """Export a model directory for transformers, replacing any folder.

    NMTError if no class of transformers can express the model.
    """
    description = read_description(folder)
    tokenizer = read_tokenizer(folder)
    # First, so that a model that does not fit leaves no partial export.
    HUGGINGFACE.check(settings_of_model(description, tokenizer))
    if isinstance(tokenizer, MultilingualTokenizer):
        exported = multilingual_export.export_of(folder, description, tokenizer)
    else:
        exported = export_of(folder, description, tokenizer)
    files = {
        "README.md": (heading(description, "transformers") + exported.usage).encode(),
        "model.safetensors": save(exported.weights, {"format": "pt"}),
        **exported.files,
    }
    for name, tree in exported.trees.items():
        # A vocabulary has up to a million entries, which nobody reads.
        indent = None if name in ("tokenizer.json", "vocab.json") else 2
        files[name] = (json.dumps(tree, ensure_ascii=False, indent=indent) + "\n").encode()
    with whole_folder(output) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)


def export_of(folder: Path, description: ModelDescription, tokenizer: Tokenizer) -> HubExport:
    """The export of a model with a vocabulary of nmt or Marian."""
    trees = settings(description, tokenizer)
    files = dict[str, bytes]()
    if isinstance(tokenizer, MarianTokenizer):
        table = marian_table(tokenizer)
        trees["vocab.json"] = {entry: number for number, entry in enumerate(table)}
        files["source.spm"], files["target.spm"] = tokenizer.models
    else:
        files["tokenizer.json"] = fast_tokenizer(tokenizer).to_str().encode()
    weights = weights_of(load_model(folder), tokenizer)
    return HubExport(weights, trees, files, usage_of(description, tokenizer))


def export(
    folder: Path,
    output: Path,
    config: ExportConfig,
    status: Callable[[str], None],
) -> list[str]:
    """Write the export with `write`; returns no comparison."""
    write(folder, output)
    return []


def usage_of(description: ModelDescription, tokenizer: Tokenizer) -> str:
    """The part of README.md on how to translate, and how the results differ from nmt's."""
    decode = expected_search(DecodeConfig(), description)
    is_marian = decode.length_penalty_kind == "marian"
    length = "|Y|" if is_marian else "((5 + |Y|) / 6)"
    example = "A line of text."
    note = ""
    if tokenizer.tags:
        tags = [*tokenizer.tags]
        example = f"{tags[0]} {example}"
        # MarianTokenizer recognizes them only at the beginning, as nmt does.
        if not isinstance(tokenizer, MarianTokenizer):
            note = NOTE_ON_TAGS.format(tags=", ".join(tags))
    return USAGE.format(
        example=example,
        note=note,
        extra=decode.max_extra_length,
        positions=position_count(ModelConfig(**description.model)),
        beta=exported_penalty(decode),
        penalty=f"{length}^{decode.length_penalty:.3g}",
    )


def weights_of(model: Transformer, tokenizer: Tokenizer) -> Weights:
    """The weights, keyed by their transformers names, with the rows in the order of the export."""
    config = model.config
    ours = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    if config.norm == "pre":
        order_D = torch.arange(config.d_model)
        positions = position_tables(config, ours)
    else:
        # transformers computes the positions of Marian's models, with sines and cosines in halves;
        # nmt alternates them, see parameters.py.
        order_D = torch.from_numpy(halves(config.d_model))
        positions = {}
    weights = exported_layers(config, ours, order_D) | positions
    order_N = torch.tensor(exported_order(tokenizer))

    def in_order(vocabulary: Tensor) -> Tensor:
        if config.zero_start:
            # transformers starts decoding from the start symbol's row.
            vocabulary = vocabulary.index_fill(0, torch.tensor([BOS]), 0)
        return vocabulary[order_N]

    bias_N = ours.get("output.bias", torch.zeros(model.vocabulary_size))
    # [1, N] in transformers.
    weights[HUB_BIAS] = in_order(bias_N)[None]
    # transformers stores a matrix that all three share under a separate name.
    if len(tied(config)) == len(EMBEDDINGS):
        names = {HUB_SHARED: EMBEDDINGS[-1]}
    else:
        names = dict(zip(HUB_EMBEDDINGS, EMBEDDINGS, strict=True))
        if config.norm == "pre":
            # Never used then, but Pegasus has it.
            names[HUB_SHARED] = EMBEDDINGS[0]
    for theirs, name in names.items():
        weights[theirs] = in_order(ours[name])[:, order_D]
    # safetensors refuses tensors that share memory, such as the parts of one matrix.
    return {name: weight.clone() for name, weight in weights.items()}


def position_tables(config: ModelConfig, ours: Weights) -> Weights:
    """The positions of encoder and decoder, by Pegasus's names."""
    length = position_count(config)
    sines = sinusoids(length, config.d_model, config.first_position, config.positions)
    tables = Weights()
    for stack, name in (("encoder", "source_embedding"), ("decoder", "target_embedding")):
        tables[POSITIONS.format(stack=stack)] = ours.get(f"{name}.positions.table", sines)
    return tables


def exported_order(tokenizer: Tokenizer) -> list[int]:
    """Our id for each id of the export."""
    if not isinstance(tokenizer, MarianTokenizer):
        return list(range(tokenizer.vocabulary_size))
    # Marian's tables have their own order, so the export has the ids of the original.
    rows = rows_of(marian_table(tokenizer), has_padding=True)
    # PAD and BOS share the row of <pad>, which gets the weights of BOS: the decoder starts with it.
    id_of_row = {row: id for id, row in enumerate(rows)}
    return [id_of_row[row] for row in range(len(id_of_row))]
