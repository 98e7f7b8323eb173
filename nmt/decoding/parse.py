"""`nmt parse`: a stream of sentences to a stream of trees (section 6.3)."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from operator import itemgetter

from rich.status import Status

from nmt.config import ParseConfig, TranslateConfig
from nmt.decoding.devices import DeviceTranslator
from nmt.decoding.model_directory import find_model_directory, is_parser, read_description
from nmt.decoding.translate import console, input_lines, open_files, open_translator, remembered, warn
from nmt.decoding.translator import Translation, Translator
from nmt.errors import NMTError
from nmt.text.treebank import model_sentence
from nmt.text.trees import Tree, escape, read_linear


def check_parsers(names: list[str]) -> None:
    """NMTError for a model that was not trained on a treebank."""
    for name in names:
        description = read_description(find_model_directory(name))
        if not is_parser(description):
            raise NMTError(
                f"checkpoint={name}: translates from {description.source} to {description.target}, and parses nothing; "
                "use `nmt translate`, or name a model that was trained with data=treebank"
            )


def choose_tree(translations: list[Translation], line: str) -> tuple[Tree, int]:
    """Of a line's trees the one that needs the least mending, the best of equals; and how much it needs."""
    words = escape(line).split()
    return min((read_linear(translation.text, words) for translation in translations), key=itemgetter(1))


def parse_lines(translator: Translator, lines: list[str]) -> list[tuple[Tree, int]]:
    """The tree of each line, and how much of it had to be mended."""
    found = translator.translate([model_sentence(line) for line in lines])
    return [choose_tree(translations, line) for translations, line in zip(found, lines, strict=True)]


def parse_stream(
    translator: Translator | DeviceTranslator, lines: Iterator[str], buffer: int
) -> Iterator[tuple[Tree, int]]:
    """The tree of each line, and how much of it had to be mended."""
    read = deque[str]()
    sentences = map(model_sentence, remembered(lines, read))
    for translations in translator.stream(sentences, buffer):
        yield choose_tree(translations, read.popleft())


def translation_config(config: ParseConfig) -> TranslateConfig:
    """How a parser translates sentences to linear trees: never in pieces."""
    return TranslateConfig(**vars(config), split="never", format="tsv")


def parse(config: ParseConfig) -> None:
    """Parse `config.input` to `config.output` (section 6.3), in order, as lines arrive."""
    check_parsers(config.checkpoint)
    with ExitStack() as stack:
        inner = translation_config(config)
        translator = open_translator(inner, stack)
        source, target = open_files(inner, stack)
        if source.isatty():
            print("nmt: type sentences, with blanks between words and punctuation; Ctrl-D ends", file=sys.stderr)
        status = stack.enter_context(Status("parsing", console=console(target)))
        mended = number = 0
        for number, (tree, mends) in enumerate(parse_stream(translator, input_lines(source), config.buffer), 1):
            target.write((tree.bracketed() + "\n").encode())
            target.flush()
            mended += mends > 0
            status.update(f"parsed {number:,} lines")
    if mended:
        warn(f"{mended:,} of {number:,} trees had to be mended: brackets or words were missing, or too many")
