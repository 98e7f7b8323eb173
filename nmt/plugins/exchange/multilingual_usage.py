"""The code in the README of a multilingual model's export to CTranslate2.

It translates as `nmt translate` does, and needs only ctranslate2 and sentencepiece.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from nmt.config import DecodeConfig
from nmt.plugins.exchange.ctranslate2_ranking import hypotheses_to_find
from nmt.plugins.exchange.multilingual_vocabulary import SENTENCEPIECE
from nmt.plugins.exchange.multilingual_vocabulary_export import files_of_new_languages
from nmt.plugins.exchange.usage import length_formula, length_in_code, run_code
from nmt.text import MultilingualTokenizer
from nmt.translation import Line, untagged

CODE = '''import json

import ctranslate2
from sentencepiece import SentencePieceProcessor

MODEL = ctranslate2.Translator(".")
SENTENCEPIECE = SentencePieceProcessor(model_file="{sentencepiece}")
{encoders}LANGUAGES = {languages}
with open("shared_vocabulary.json", encoding="utf-8") as file:
    ENTRIES = json.load(file)
PIECES = {{SENTENCEPIECE.id_to_piece(id) for id in range(len(SENTENCEPIECE))}}
# Without <pad>, <s>, </s>, <unk> and the tags of languages.
TEXT = PIECES.intersection(ENTRIES[4:]).difference(LANGUAGES.values())


def translate({parameters}):
    pieces = {encoder}.encode(" ".join(line.split()), out_type=str)
    if not pieces:
        return ""
    source_pieces = [LANGUAGES[{first}]]
    source_pieces += [piece if piece in TEXT else "<unk>" for piece in pieces]
    start = {start}
    tokens = best(source_pieces, start)
    if {{"<pad>", "<s>", "<unk>"}} & set(tokens):
        symbols = [["<pad>"], ["<s>"], ["<unk>"]]
        tokens = best(source_pieces, start, rescore=True, suppress_sequences=symbols)
    text = SENTENCEPIECE.decode_pieces([token for token in tokens if token in TEXT])
    return " ".join(text.replace("\\u2581", " ").split())


def best(pieces, start, rescore=False, **options):
    """The hypothesis with the highest log P / {formula}; |Y| counts the tag of the target."""
    if len(pieces) >= {positions}:
        problem = f"a line has {{len(pieces)}} subwords, but must have fewer than {positions}"
        raise ValueError(problem)
    longest = min(len(pieces) + {extra}, {positions} - 1)
    [result] = MODEL.translate_batch(
        [pieces],
        target_prefix=[start],
        beam_size={beam},
        num_hypotheses={count},
        patience={count} / {beam},
        length_penalty=0,
        return_scores=True,
        return_end_token=True,
        min_decoding_length=0,
        max_decoding_length=longest,
        max_input_length=0,
        **options,
    )
    ranked = []
    for tokens, score in zip(result.hypotheses, result.scores):
        tokens = tokens[:-1] if tokens[-1:] == ["</s>"] else tokens
        if score <= -1e9:
            continue
        if rescore or len(tokens) == longest:
            [scored] = MODEL.score_batch([pieces], [tokens], max_input_length=0)
            score = sum(scored.log_probs[len(start) :])
        ranked.append((score / {penalty}, tokens))
    return max(ranked, key=lambda pair: pair[0], default=(0, ["<unk>"]))[1]


print(translate("A line.", {example}))
'''
ENCODERS = """\
# Only the languages that were added later have the newest subwords.
OLD = SentencePieceProcessor(model_file="{base}")
NEW = {{code: SentencePieceProcessor(model_file=file) for code, file in {files}.items()}}
"""
"""The part of CODE for a vocabulary that `nmt extend` extended."""
EXPLANATION = """
The code below translates like `nmt translate split=never protect=none`: one line as a whole, with
the same search and length penalty. By default, `nmt translate` also splits lines into sentences and
protects items such as URLs. In any case, it copies lines without letters.
"""
TEXT_OR_NULL = """

def text_or_null(line):
    try:
        return translate(*line)
    except ValueError:
        return None

"""
"""Translates a line and its languages to a string, or to null if it is too long."""


def code_for(
    tokenizer: MultilingualTokenizer,
    decode: DecodeConfig,
    positions: int,
    example: tuple[str, str],
) -> str:
    """The code for a model with this vocabulary, search and number of positions.

    `example` are the languages of an example.
    """
    languages = {code: tokenizer.entries[id] for code, id in tokenizer.languages.items()}
    if tokenizer.has_target_tags:
        sides = {
            "parameters": "line, source, target",
            "first": "source",
            "start": "[LANGUAGES[target]]",
            "example": f'"{example[0]}", "{example[1]}"',
        }
    else:
        sides = {
            "parameters": "line, target",
            "first": "target",
            "start": "[]",
            "example": f'"{example[1]}"',
        }
    files = files_of_new_languages(tokenizer)
    if files:
        encoders = {
            # The newest model has the pieces of all others.
            "sentencepiece": [*files.values()][-1],
            "encoders": ENCODERS.format(base=SENTENCEPIECE, files=ascii(files)),
            "encoder": "NEW.get(source, OLD)",
        }
    else:
        encoders = {
            "sentencepiece": SENTENCEPIECE,
            "encoders": "",
            "encoder": "SENTENCEPIECE",
        }
    return CODE.format(
        languages=ascii(languages),
        beam=decode.beam_size,
        count=hypotheses_to_find(decode),
        positions=positions,
        extra=decode.max_extra_length,
        formula=length_formula(decode),
        penalty=length_in_code(decode),
        **sides,
        **encoders,
    )


def translate_lines(
    folder: Path, code: str, tokenizer: MultilingualTokenizer, lines: Sequence[str]
) -> list[str | None]:
    """Translate tagged lines as a user of an exported folder would.

    None for lines that are too long, or without languages.
    """
    calls = dict[int, list[str]]()
    for index, text in enumerate(lines):
        line = untagged(text, tokenizer)
        if isinstance(line, Line) and line.tag:
            calls[index] = [line.text, *languages_of(line.tag, tokenizer)]
    results = run_code(folder, code + TEXT_OR_NULL, "text_or_null(line)", [*calls.values()])
    texts = dict(zip(calls, results, strict=True))
    return [texts.get(index) for index in range(len(lines))]


def languages_of(tag: str, tokenizer: MultilingualTokenizer) -> list[str]:
    """The codes that a line's tag names: those of both languages, or only that of the target."""
    if tokenizer.has_target_tags:
        return [*tokenizer.languages_of(tag.strip())]
    return re.findall(r"<2(.*)>", tag)
