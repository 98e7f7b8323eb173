"""`nmt synthesise`: a corpus of lines to pairs for training, by the blocks that `nmt translate --ray` has too.

parts/         Parquet files of translations and what decides whether a pair is kept, each whole or not there
train.LANGUAGE the pairs, as two files
summary.json   what was kept, and why the rest was not
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config import DecodeConfig, TranslateConfig, require
from nmt.errors import NMTError
from nmt.evaluation import bleu_tokenizer, sentence_scorer
from nmt.files import find_model_directory, read_description, remove_leftovers
from nmt.plugins.cluster import devices
from nmt.plugins.cluster.blocks import BlockTranslator, tell
from nmt.plugins.cluster.on_ray import require_ray, translate_blocks
from nmt.plugins.cluster.parquet import (
    DESCRIPTION,
    Block,
    check_complete,
    claim,
    cut,
    find_files,
    missing_blocks,
    read_block,
    write_block,
)
from nmt.plugins.synthesize.config import SynthesiseConfig
from nmt.plugins.synthesize.pairs import Summary, is_pair, write_pairs
from nmt.text import TARGET, not_parallel
from nmt.translation import (
    Translation,
    Translator,
    flagger,
    load_translator,
    model_hash,
    open_translator,
    score_pairs,
    target_language,
    warn,
    what_decides,
    with_engine,
)

if TYPE_CHECKING:
    from rich.console import Console

FREE = ("kind", "tag", "drop", "flagged", "reference", "reverse")
"""Keys that decide nothing in the parts, or are looked at in another way."""
PARTS = "parts"


@dataclass(frozen=True)
class Part(Block):
    """A block, with the place of its references if it has any."""

    reference: str = ""
    reference_number: int = 0
    reference_offset: int = 0

    def references(self) -> Block:
        return Block(self.reference, self.reference_number, self.first, self.count, self.reference_offset)


class PartSynthesiser(BlockTranslator):
    """Translates parts, chooses among several translations, and judges the pairs."""

    kind = Part
    config: SynthesiseConfig

    @cached_property
    def flags_of(self) -> Callable[[str, Translation], list[str]]:
        return flagger(self.config)

    @cached_property
    def reverse(self) -> Translator:
        """The model of the other direction."""
        decode = DecodeConfig(batch_tokens=self.config.decode.batch_tokens)
        return load_translator(
            TranslateConfig(self.config.reverse, engine="torch", device=self.config.device, decode=decode), warn
        )

    def write(self, block: Block, lines: list[str], found: list[list[Translation]]) -> None:
        assert isinstance(block, Part)
        chosen = self.closest(block, found) if block.reference else [best for best, *_ in found]
        scores = (self.by_reverse if self.config.reverse else self.by_teacher)(lines, chosen)
        more = [
            {"log_probability_per_token": score, "flags": self.flags_of(line, translation)}
            for line, translation, score in zip(lines, chosen, scores, strict=True)
        ]
        write_block(Path(self.config.output) / PARTS, block, lines, chosen, more)

    def closest(self, part: Part, found: list[list[Translation]]) -> list[Translation]:
        """Of each line's translations the one most like its reference; of equal ones, the likeliest."""
        references = read_block(part.references(), self.config.ray.column, self.notices.append)
        like = sentence_scorer(self.config.metric, bleu_tokenizer(None, target_language(self.config), references))
        return [
            max(several, key=lambda each: like(each.text, reference))
            for several, reference in zip(found, references, strict=True)
        ]

    def by_teacher(self, lines: list[str], translations: list[Translation]) -> list[float]:
        """log P per token of each translation, given its line; the end symbol is a token, too."""
        assert self.translator
        tokenizer = self.translator.tokenizer
        tokens = tokenizer.encode([tokenizer.clean(each.text) for each in translations], TARGET)
        return [each.log_probability / (len(ids) + 1) for each, ids in zip(translations, tokens, strict=True)]

    def by_reverse(self, lines: list[str], translations: list[Translation]) -> list[float]:
        """log P per token of each line, given its translation."""
        pairs = [(each.text, line) for line, each in zip(lines, translations, strict=True)]
        known = [index for index, pair in enumerate(pairs) if is_pair(*pair)]
        scores = [-math.inf] * len(pairs)
        for index, score in zip(known, score_pairs(self.reverse, [pairs[index] for index in known]), strict=True):
            scores[index] = score.log_probability / len(score.token_log_probabilities)
        return scores


@cache
def worker() -> PartSynthesiser:
    """That of a process on one of several devices."""
    assert isinstance(devices.worker_config, SynthesiseConfig)
    own = PartSynthesiser(devices.worker_config)
    own.translator = devices.worker_translator()
    return own


def synthesise_part(row: dict[str, Any]) -> dict[str, Any]:
    """In a process of the pool: write a part."""
    return worker()(row)


def written_here(config: SynthesiseConfig, parts: Sequence[Part], stack: ExitStack) -> Iterator[dict[str, Any]]:
    """Write parts on this machine; gives the row of each one."""
    rows = map(asdict, parts)
    if config.devices > 1:
        pool = stack.enter_context(devices.on_devices(config, devices.device_names(config)))
        return pool.run(synthesise_part, rows)
    own, translator = PartSynthesiser(config), open_translator(config, stack)
    assert isinstance(translator, Translator)
    own.translator = translator
    return map(own, rows)


def find_parts(config: SynthesiseConfig) -> tuple[list[Part], dict[str, Any]]:
    """The parts of the input, and the SHA-256 of all texts; NMTError where the references are not parallel."""
    blocks, hashes = cut(find_files(config.input), config.lines, config.ray.column)
    if config.reference is None:
        return [Part(**asdict(block)) for block in blocks], {"input": [*hashes.values()], "reference": None}
    others, of_references = cut(find_files(config.reference, "reference"), config.lines, config.ray.column)
    counts = [sum(block.count for block in side) for side in (blocks, others)]
    if [(block.first, block.count) for block in blocks] != [(block.first, block.count) for block in others]:
        raise not_parallel((config.input, config.reference), counts)
    parts = [
        Part(**asdict(block), reference=other.file, reference_number=other.number, reference_offset=other.offset)
        for block, other in zip(blocks, others, strict=True)
    ]
    found = {"input": [*hashes.values()], "reference": [config.metric, *of_references.values()]}
    return parts, found


def write_parts(config: SynthesiseConfig, parts: Sequence[Part], console: "Console") -> None:
    if config.ray.enabled:
        translate_blocks(config, parts, console, PartSynthesiser)
    else:
        with ExitStack() as stack, console.status("loading") as status:
            notice = lambda words: console.print(f"nmt: {words}")  # noqa: E731
            tell(written_here(config, parts, stack), status.update, notice)


def disclaim(folder: Path) -> None:
    """Leave a folder without parts to other commands."""
    (folder / PARTS).rmdir()
    (folder / DESCRIPTION).unlink()


def synthesise(config: SynthesiseConfig, console: "Console") -> Summary:
    """Write the pairs of `config.input` to the folder `config.output`.

    Parts that are there stay: the same command goes on after a kill, and other values of FREE keys translate nothing.
    """
    config.check_paths()
    config = with_engine(config, warn)
    if config.ray.enabled:
        require_ray()
    folder = Path(config.output).absolute()
    with console.status("reading the input"):
        parts, hashes = find_parts(config)
        require(bool(parts), f"input={config.input}: it is empty")
        models = [find_model_directory(name).resolve() for name in config.run]
        reverse = find_model_directory(config.reverse, "reverse").resolve() if config.reverse else None
        if reverse:
            forth, back = map(read_description, (models[0], reverse))
            if (back.source, back.target) != (forth.target, forth.source):
                raise NMTError(
                    f"reverse={config.reverse}: it translates {back.source} to {back.target}; pass a model from "
                    f"{forth.target} to {forth.source}, the other direction"
                )
        decides = {key: value for key, value in what_decides(config).items() if key not in (*FREE, "metric")}
        claim(Path(config.output), {**decides, **hashes, "reverse": reverse and model_hash(reverse)})
        (folder / PARTS).mkdir(exist_ok=True)
        remove_leftovers(folder / PARTS)
    own = replace(config, run=[*map(str, models)], reverse=str(reverse) if reverse else None, output=str(folder))
    if missing := missing_blocks(parts, folder / PARTS, console):
        try:
            write_parts(own, missing, console)
        except NMTError:
            if len(missing) == len(parts) and not any((folder / PARTS).iterdir()):
                disclaim(folder)
            raise
    check_complete(parts, folder / PARTS)
    with console.status("choosing pairs"):
        return write_pairs(config, [folder / PARTS / part.name for part in parts], folder)
