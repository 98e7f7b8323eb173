"""Small random models in the formats of M2M-100, NLLB, SMaLL-100 and mBART-50, by transformers."""

import json
import random
import shutil
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import torch

from nmt.model import load_model
from nmt.plugins.exchange.certificate import LOCALES as NAMES_OF_LOCALES, names_in
from nmt.plugins.exchange.importing import ImportConfig, run_import
from nmt.text import direction_tag, read_tokenizer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "multilingual"
LOCALES = NAMES_OF_LOCALES.split()
STEPS = 150
"""Training steps after which most translations end."""
LEARNING_RATE = 5e-3
COPIED = 60
"""The number of tokens that trained models copy."""
PAIRS = {
    "nllb": ("eng_Latn", "rus_Cyrl"),
    "m2m": ("en", "ru"),
    "small100": ("en", "ru"),
    "mbart": ("en_XX", "ru_RU"),
}
"""A source and a target language of each kind of model."""
MORE_LANGUAGES = {
    "nllb": ("deu_Latn", "fra_Latn"),
    "m2m": ("de", "fr"),
    "small100": ("de", "fr"),
    "mbart": ("de_DE", "fr_XX"),
}
"""Languages that trained models know in addition."""


def lines_in_many_scripts(count: int, seed: int) -> list[str]:
    """Lines of a few names each; line i is in language i of LOCALES, which repeat."""
    rng = random.Random(seed)
    lines = []
    for index in range(count):
        names = names_in(LOCALES[index % len(LOCALES)])
        words = [rng.choice(names) for _ in range(rng.randint(1, 6))]
        # A joiner at the end becomes a blank, which sentencepiece removes and transformers 5 keeps.
        names_of_line = " ".join(words).rstrip("\u200b\u200c\u200d")
        lines.append(names_of_line + rng.choice([".", "!", " ?", "", " ２½ ﬁ"]))
    return lines


def sentencepiece_model(kind: str) -> bytes:
    """A sentencepiece model, bpe or unigram, with the normalization of NLLB.

    It has 4,000 pieces, and was trained on 8,000 of these lines (`seed=1`, a character coverage of
    0.9995 and `normalization_rule_name="nmt_nfkc"`).
    """
    return (FIXTURES / f"{kind}.model").read_bytes()


def parsed(kind: str) -> Any:
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_model(kind))


def random_model(kind: str, size: int) -> Any:
    """A random model with `size` entries."""
    import transformers

    is_mbart = kind == "mbart"
    options = {
        "vocab_size": size,
        "d_model": 32,
        "encoder_layers": 3,
        "decoder_layers": 2,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "max_position_embeddings": 64,
        "scale_embedding": True,
        "init_std": 0.2,
        "decoder_start_token_id": 2,
        "activation_function": "gelu" if is_mbart else "relu",
    }
    name = "MBartForConditionalGeneration" if is_mbart else "M2M100ForConditionalGeneration"
    model_class = getattr(transformers, name)
    config = model_class.config_class(**options)
    if is_mbart:
        # As in the files of mBART-50.
        config.normalize_before = True
        config.add_final_layer_norm = True
        config.tokenizer_class = "MBart50Tokenizer"
    torch.manual_seed(1)
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def train_to_copy(model: Any, tags: list[int], has_target_tags: bool, steps: int) -> None:
    """Train a model to copy random tokens; sources and, if so, targets begin with any of the tags.

    After a few seconds, its translations differ and end, unlike those of random weights, which
    repeat a token forever.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    generator = torch.Generator().manual_seed(2)
    for step in range(steps):
        # The rate falls, so that the model is certain at the end.
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - step / steps)
        tokens = torch.randint(4, 4 + COPIED, (32, 12), generator=generator)
        lengths = torch.randint(2, 12, (32, 1), generator=generator)
        places = torch.arange(12)
        end = torch.where(places == lengths, 2, 1)
        tokens = torch.where(places < lengths, tokens, end)
        drawn = torch.randint(len(tags), (2, 32, 1), generator=generator)
        source_tags, target_tags = torch.tensor(tags)[drawn]
        sources = torch.cat((source_tags, tokens), dim=1)
        targets = torch.cat((target_tags, tokens), dim=1) if has_target_tags else tokens
        loss = model(
            input_ids=sources,
            attention_mask=(sources != 1).long(),
            labels=targets.masked_fill(targets == 1, -100),
        ).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def write_folder(folder: Path, kind: str, steps: int = 0) -> tuple[Any, Any]:
    """Write a model, trained for some steps, with its tokenizer as transformers does; return both.

    The tokenizer of SMaLL-100 is not part of transformers; that of M2M-100, with which it shares
    its vocabulary, is returned instead.
    """
    import transformers

    source, target = PAIRS[kind]
    languages = {"src_lang": source, "tgt_lang": target}
    if kind == "nllb":
        tokenizer = nllb_tokenizer(**languages)
        size = len(tokenizer) + 2
    elif kind == "mbart":
        model = parsed("unigram")
        tokenizer = transformers.MBart50Tokenizer(
            vocab=[(piece.piece, piece.score) for piece in model.pieces],
            _spm_precompiled_charsmap=model.normalizer_spec.precompiled_charsmap,
            **languages,
        )
        size = len(tokenizer)
    else:
        folder.mkdir()
        pieces = [piece.piece for piece in parsed("bpe").pieces[3:]]
        entries = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
        numbers = {entry: number for number, entry in enumerate(entries)}
        (folder / "vocab.json").write_text(json.dumps(numbers))
        (folder / "sentencepiece.bpe.model").write_bytes(sentencepiece_model("bpe"))
        tokenizer = transformers.M2M100Tokenizer(
            str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"), **languages
        )
        # The entries after the languages are not used.
        size = tokenizer.get_lang_id("zu") + 9
    tokenizer.save_pretrained(folder)
    if kind == "small100":
        settings = folder / "tokenizer_config.json"
        tree = json.loads(settings.read_text())
        tree["tokenizer_class"] = "SMALL100Tokenizer"
        settings.write_text(json.dumps(tree))
    model = random_model(kind, size)
    codes = [*PAIRS[kind], *MORE_LANGUAGES[kind]]
    if kind in ("m2m", "small100"):
        tags = [tokenizer.get_lang_id(code) for code in codes]
    else:
        tags = tokenizer.convert_tokens_to_ids(codes)
    train_to_copy(model, tags, kind != "small100", steps)
    model.save_pretrained(folder)
    return model, tokenizer


def nllb_tokenizer(**options: str) -> Any:
    import transformers
    from transformers.tokenization_utils_sentencepiece import SentencePieceExtractor

    model = parsed("bpe")
    pieces = [piece.piece for piece in model.pieces[3:]]
    entries = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
    with NamedTemporaryFile(suffix=".model") as file:
        file.write(sentencepiece_model("bpe"))
        file.flush()
        extractor = SentencePieceExtractor(file.name)
        _, _, merges = extractor.extract(transformers.NllbTokenizer.model)
    return transformers.NllbTokenizer(
        vocab={entry: number for number, entry in enumerate(entries)},
        merges=merges,
        _spm_precompiled_charsmap=model.normalizer_spec.precompiled_charsmap,
        **options,
    )


def as_stored_in_2022(folder: Path, output: Path) -> None:
    """Copy a folder of NLLB as older versions of transformers wrote it.

    It has a sentencepiece model instead of tokenizer.json, and weights in PyTorch's format.
    """
    from safetensors.torch import load_file

    tree = json.loads((folder / "tokenizer.json").read_text())
    special = [token["content"] for token in tree["added_tokens"]]
    codes = [token for token in special if "_" in token]
    output.mkdir()
    shutil.copy(folder / "config.json", output)
    (output / "sentencepiece.bpe.model").write_bytes(sentencepiece_model("bpe"))
    (output / "special_tokens_map.json").write_text(
        json.dumps({"eos_token": "</s>", "additional_special_tokens": codes})
    )
    torch.save(load_file(folder / "model.safetensors"), output / "pytorch_model.bin")


class Case(NamedTuple):
    """A model by transformers, trained for STEPS, and the same model imported by nmt."""

    kind: str
    folder: Path
    theirs: Any
    their_tokenizer: Any
    ours: Any
    tokenizer: Any

    @property
    def model(self) -> Path:
        """The imported model's directory."""
        return self.folder.parent / "model"

    @property
    def tag(self) -> str:
        source, target = PAIRS[self.kind]
        return f"<2{target}>" if self.kind == "small100" else direction_tag(source, target)

    def encode(self, lines: list[str]) -> list[list[int]]:
        return self.tokenizer.encode([self.tag + self.tokenizer.clean(line) for line in lines])

    @property
    def target_tag(self) -> list[int]:
        return self.tokenizer.target_start(self.tag)


def make_case(kind: str, parent: Path) -> Case:
    """A model of this kind in the folder parent/hub, imported to parent/model."""
    folder = parent / "hub"
    theirs, their_tokenizer = write_folder(folder, kind, STEPS)
    output = parent / "model"
    run_import(ImportConfig(path=str(folder), output=str(output), verify=False))
    return Case(kind, folder, theirs, their_tokenizer, load_model(output), read_tokenizer(output))


def renumbered(ids: list[int]) -> list[int]:
    """Ids of fairseq as ours, and the reverse: the numbers of <s> and <pad> are exchanged."""
    return [{0: 1, 1: 0}.get(id, id) for id in ids]


def change(path: Path, **values: Any) -> None:
    """Change keys in a JSON file."""
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, **values}))
