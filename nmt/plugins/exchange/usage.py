"""The code in the README of an export to CTranslate2, which translates as `nmt translate` does.

It needs only ctranslate2 and sentencepiece. `translate_lines` runs it as a user would, in a
separate process.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.config import DecodeConfig, NMTError
from nmt.plugins.exchange.ctranslate2_ranking import hypotheses_to_find
from nmt.plugins.exchange.multilingual_vocabulary_export import sentencepiece_files
from nmt.text import (
    INVISIBLE,
    PRESENTATION_FORMS,
    MarianTokenizer,
    MultilingualTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
)
from nmt.translation import Segmenter

BEGIN = """
import re
import unicodedata

import ctranslate2
from sentencepiece import SentencePieceProcessor
"""
# nmt normalizes text before its vocabulary gets it (the vocabulary's own rule is the identity), so
# the code has to.
NORMALIZE = {
    "canonical": """
FOLDED = {ranges}
CODES = [code for first, last in FOLDED for code in range(first, last + 1)]
FORMS = {{code: unicodedata.normalize("NFKC", chr(code)) for code in CODES}}
FORMS = {{code: form for code, form in FORMS.items() if " " not in form}}
INVISIBLE = re.compile("[{invisible}]+")


def normalize(line):
    line = unicodedata.normalize("NFC", INVISIBLE.sub("", line))
    line = unicodedata.normalize("NFC", line.translate(FORMS))
    return " ".join(line.split()).translate(READ_AS)
""",
    "nfkc": """

def normalize(line):
    return " ".join(unicodedata.normalize("NFKC", line).split()).translate(READ_AS)
""",
    "none": """

def normalize(line):
    return " ".join(line.split()).translate(READ_AS)
""",
}
SPLIT_AND_JOIN = """

def pieces_of(line):
    line = line.strip()
    tag = next((tag for tag in TAGS if line.startswith(tag)), "")
    text = normalize(line.removeprefix(tag))
    text = text.replace("\\ue000", "\\ue0000").replace("\\u2581", "\\ue0001")
    pieces = SOURCE.encode(text, out_type=str)
    return [tag, *pieces] if tag and pieces else pieces


def join(pieces):
    text = TARGET.decode(pieces).replace("\\ue0001", "\\u2581").replace("\\ue0000", "\\ue000")
    return " ".join(text.split())
"""
SPLIT_AND_JOIN_OF_MARIAN = """

def pieces_of(line):
    line = line.strip()
    tag = next((tag for tag in TAGS if line.startswith(tag)), "")
    pieces = SOURCE.encode(normalize(line.removeprefix(tag)), out_type=str)
    return [tag, *pieces] if tag and pieces else pieces


def join(pieces):
    characters, spelled = [], b""
    for piece in [*pieces, ""]:
        if piece.startswith("<0x") and piece.endswith(">") and len(piece) == 6:
            spelled += bytes([int(piece[3:5], 16)])
            continue
        characters += [spelled.decode(errors="replace")] if spelled else []
        characters += [piece] if piece else []
        spelled = b""
    return " ".join(TARGET.decode_pieces(characters).replace("\\u2581", " ").split())
"""
SEARCH = '''

def search(pieces, **options):
    return MODEL.translate_batch(
        [pieces],
        beam_size={beam},
        num_hypotheses={count},
        patience={count} / {beam},
        length_penalty=0,
        return_scores=True,
        return_end_token=True,
        min_decoding_length=0,
        max_decoding_length=longest(pieces),
        max_input_length=0,
        **options,
    )[0]


def longest(pieces):
    if len(pieces) >= {positions}:
        problem = f"a line has {{len(pieces)}} subwords, but must have fewer than {positions}"
        raise ValueError(problem)
    return min(len(pieces) + {extra}, {positions} - 1)


def best(pieces, result, rescore=False):
    """The hypothesis with the highest log P / {formula}."""
    ranked = []
    for tokens, score in zip(result.hypotheses, result.scores):
        tokens = tokens[:-1] if tokens[-1:] == ["</s>"] else tokens
        if score <= -1e9:
            continue
        if rescore or len(tokens) == longest(pieces):
            [scored] = MODEL.score_batch([pieces], [tokens], max_input_length=0)
            score = sum(scored.log_probs)
        ranked.append((score / {penalty}, tokens))
    return max(ranked, key=lambda pair: pair[0], default=(0, ["<unk>"]))[1]


def text_of(pieces, result):
    if not pieces:
        return ""
    tokens = best(pieces, result)
    if {{"<pad>", "<s>", "<unk>"}} & set(tokens):
        symbols = [["<pad>"], ["<s>"], ["<unk>"]]
        tokens = best(pieces, search(pieces, suppress_sequences=symbols), rescore=True)
    return join(tokens)


pieces = pieces_of("A line.")
result = search(pieces)
print(text_of(pieces, result))
'''
LOOP = """
import json
import sys

for line in json.load(sys.stdin):
    print(json.dumps({expression}))
"""
TEXT_OR_NULL = """

def text_or_null(line):
    pieces = pieces_of(line)
    try:
        return text_of(pieces, search(pieces))
    except ValueError:
        return None

"""
"""Translates a line to a string, or to null if it is too long."""
EXPLANATION = """
The code below translates like `nmt translate split=never protect=none`: one line as a whole, with
the same normalization, search and length penalty. By default, `nmt translate` also splits lines
into sentences and protects items such as URLs. In any case, it copies lines without letters, and
characters that the training data lacks.

To translate, use `text_of(pieces, search(pieces))`.
"""

WITHOUT_CODE = """
The vocabulary, tokenizer.model, consists of word pieces, which sentencepiece cannot read. Translate
with `nmt translate run=MODEL engine=ctranslate2`, where MODEL is the original model directory.
"""


def names_of(tokenizer: Tokenizer) -> dict[str, bytes]:
    """The names and contents of the vocabulary's files in an export."""
    if isinstance(tokenizer, MultilingualTokenizer):
        return sentencepiece_files(tokenizer)
    if isinstance(tokenizer, MarianTokenizer):
        source, target = tokenizer.models
        return {"source.spm": source, "target.spm": target}
    return {"tokenizer.model": tokenizer.content}


def has_code(tokenizer: Tokenizer) -> bool:
    """Whether the code can use a vocabulary."""
    kinds = SentencePieceTokenizer | MarianTokenizer | MultilingualTokenizer
    return isinstance(tokenizer, kinds)


def letters_read_as(segmenter: Segmenter) -> dict[str, str]:
    """The characters for which a model reads other ones, because it has learned only those."""
    table = {chr(code): plain for code, plain in segmenter.plain_signs.items()}
    # A character that was learned is read as it is.
    learned = segmenter.learned
    for character in map(chr, range(0x110000)):
        if character in learned:
            continue
        if character.lower() in learned or character.upper() in learned:
            table[character] = segmenter.in_learned_case(character)
    return table


def code_for(
    tokenizer: Tokenizer,
    segmenter: Segmenter,
    decode: DecodeConfig,
    positions: int,
) -> str:
    """The code for a model with this vocabulary, search and number of positions."""
    vocabularies = [*names_of(tokenizer)]
    constants = [
        'MODEL = ctranslate2.Translator(".")',
        f'SOURCE = SentencePieceProcessor(model_file="{vocabularies[0]}")',
        f'TARGET = SentencePieceProcessor(model_file="{vocabularies[-1]}")',
        f"TAGS = {[*tokenizer.tags]!a}",
        f"READ_AS = str.maketrans({letters_read_as(segmenter)!a})",
    ]
    ranges = [f"(0x{first:X}, 0x{last:X})" for first, last in PRESENTATION_FORMS]
    normalize = NORMALIZE[tokenizer.normalization.name].format(
        ranges=f"[{', '.join(ranges)}]",
        # The text becomes part of a string literal in the code.
        invisible=ascii(INVISIBLE)[1:-1],  # without quotation marks
    )
    search = SEARCH.format(
        beam=decode.beam_size,
        count=hypotheses_to_find(decode),
        positions=positions,
        extra=decode.max_extra_length,
        formula=length_formula(decode),
        penalty=length_in_code(decode),
    )
    is_marian = isinstance(tokenizer, MarianTokenizer)
    split_and_join = SPLIT_AND_JOIN_OF_MARIAN if is_marian else SPLIT_AND_JOIN
    head = BEGIN.lstrip() + "\n" + "\n".join(constants)
    return head + normalize + split_and_join + search


def length_formula(decode: DecodeConfig) -> str:
    """The length penalty as a formula for readers."""
    is_marian = decode.length_penalty_kind == "marian"
    length = "|Y|" if is_marian else "((5 + |Y|) / 6)"
    return f"{length}^{decode.length_penalty}"


def length_in_code(decode: DecodeConfig) -> str:
    """The length penalty of `tokens`, which have no end symbol, as code."""
    is_marian = decode.length_penalty_kind == "marian"
    length = "(len(tokens) + 1)" if is_marian else "((6 + len(tokens)) / 6)"
    return f"{length} ** {decode.length_penalty}"


def translate_lines(folder: Path, code: str, lines: Sequence[str]) -> list[str | None]:
    """Translate as a user of an exported folder would; None for lines that are too long."""
    return run_code(folder, code + TEXT_OR_NULL, "text_or_null(line)", lines)


def run_code(folder: Path, code: str, expression: str, lines: Sequence[Any]) -> list[Any]:
    """Run a README's code in an exported folder; return an expression's value for each `line`.

    A line is a value that JSON can express.
    """
    done = subprocess.run(
        [sys.executable, "-c", code + LOOP.format(expression=expression)],
        cwd=folder,
        # JSON, because a line may contain any character, even characters that end lines.
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        messages = done.stderr.strip().splitlines()
        # The last line of a traceback names the error.
        problem = messages[-1] if messages else f"exit code {done.returncode}"
        raise NMTError(f"{folder}: the code in its README fails ({problem[:200]})")
    # The first line is the translation of the code's example.
    results = done.stdout.split("\n")[-1 - len(lines) : -1]
    return [json.loads(result) for result in results]
