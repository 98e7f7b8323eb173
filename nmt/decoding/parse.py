"""`nmt parse`: a stream of sentences to a stream of trees (section 6.3)."""

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from operator import itemgetter

from nmt.config import ParseConfig, TranslateConfig
from nmt.decoding.devices import DeviceTranslator
from nmt.decoding.job import open_job, remembered, warn
from nmt.decoding.model_directory import find_model_directory, is_parser, read_description
from nmt.decoding.translate import open_translator
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
        job = open_job(inner, {"command": "parse"}, stack)
        counts = job.output.counts
        for number, _, (tree, mends) in job.run(lambda lines: parse_stream(translator, lines, config.buffer)):
            counts["mended"] += mends > 0
            job.output.write(tree.bracketed() + "\n", number)
    if counts["mended"]:
        mended, number = counts["mended"], job.output.done
        warn(f"{mended:,} of {number:,} trees had to be mended: brackets or words were missing, or too many")
