"""`nmt preprocess`: from raw sentence pairs to a prepared corpus.

read -> clean and filter -> deduplicate, hold out -> train the tokenizer -> encode -> Arrow
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import regex

from nmt import files
from nmt.config import (
    DataConfig,
    ExperimentConfig,
    NMTError,
    difference,
    held_out_name,
    require,
    sources_of,
    to_tree,
    with_defaults,
)
from nmt.data import (
    IDS_SCHEMA,
    TOKENIZER,
    Manifest,
    check_ours,
    decisive,
    read_manifest,
    source_copies,
    transforms_for,
)
from nmt.preparation.arrow_files import arrow_writer
from nmt.preparation.characters import lacking_characters
from nmt.preparation.deduplication import EMPTY
from nmt.preparation.encoding import encode_block, usual_and_longest
from nmt.preparation.reading import HELD_OUT, Reading, Say, learn_vocabulary
from nmt.preparation.selection import nth_flagged, random_rows
from nmt.preparation.sources import corpus_for
from nmt.preparation.workers import map_in_order, worker_pool
from nmt.text import NORMALIZATIONS, SOURCE, Tokenizer, load_tokenizer, read_tokenizer

log = logging.getLogger(__name__)
SIDES = ("source", "target")
RECORDED_CHARACTERS = (
    20_000  # maximum per side; a corpus with more is assumed to contain every character
)
LEARNED = 50
"""A character spelled in bytes is assumed to be learned if it occurs at least this often in train."""
LETTER_OR_MARK = regex.compile(r"[\p{L}\p{M}]")


class Preparation:
    """One run of `nmt preprocess`, which writes to `folder`."""

    def __init__(
        self,
        config: ExperimentConfig,
        folder: Path,
        say: Say,
        pool: ProcessPoolExecutor,
        initial: Tokenizer | None,
    ) -> None:
        self.config, self.folder, self.say, self.pool, self.initial = (
            config,
            folder,
            say,
            pool,
            initial,
        )
        self.tokenizer_file, self.sources = folder / TOKENIZER, sources_of(config.data)
        self.counts: dict[str, Any] = {}
        self.characters: dict[str, str] | None = None  # see `Manifest`
        normalization = NORMALIZATIONS[config.tokenizer.normalization]
        self.readings = [
            Reading(
                source.data,
                config.seed,
                folder / f"text-{number}.arrow",
                say,
                self.map,
                normalization,
            )
            for number, source in enumerate(self.sources)
        ]

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Like `map`, but in the worker processes."""
        return map_in_order(self.pool, 2 * self.config.workers, function, items)

    def run(self, content: dict[str, Any]) -> Manifest:
        """Write everything except the manifest, and return the manifest."""
        self.for_each_source(Reading.read_held_out)
        given = [hashes for reading in self.readings for hashes in reading.given.values()]
        distinct = np.unique(np.concatenate([EMPTY, *given]))
        self.for_each_source(lambda reading: reading.read_train(distinct))
        self.compare_sources()
        # Check now what training would refuse: a source's share that is too small, a vocabulary unfit for a transform.
        sizes = [reading.pairs_left for reading in self.readings]
        source_copies(self.sources, sizes, self.config.data.temperature)
        validated = any(reading.held_out["valid"] for reading in self.readings)
        require(
            validated,
            "data.valid_size=0: training needs some pairs to validate on; pass data.valid",
        )
        (self.initial or self.learned()).save(self.tokenizer_file)
        transforms_for(self.tokenizer_file, self.sources, self.config.seed)
        self.write_ids("train")
        for split in HELD_OUT:
            self.write_texts(split)
            self.write_ids(split)
        for reading in self.readings:
            reading.text.unlink()
        versions = {
            name: version(name)
            for name in ("nmt-toolkit", "sentencepiece", "tokenizers", "pyarrow")
        }
        size, digest = (
            load_tokenizer(self.tokenizer_file).vocabulary_size,
            files.sha256(self.tokenizer_file),
        )
        return Manifest.of(content, self.counts, size, digest, versions, self.characters)

    def for_each_source(self, read: Callable[[Reading], None]) -> None:
        """Call `read` for each source; errors name the source if there are several."""
        for source, reading in zip(self.sources, self.readings, strict=True):
            try:
                read(reading)
            except NMTError as error:
                where = f"data.sources, {source.name}: " if self.config.data.sources else ""
                raise NMTError(f"{where}{error}") from error

    def compare_sources(self) -> None:
        """Drop pairs like other sources' held-out lines; count given held-out pairs found in train; sum all counts."""
        in_train = np.concatenate([reading.in_given for reading in self.readings])
        sources, targets = (
            set[str]().union(*(reading.drawn[side] for reading in self.readings)) for side in (0, 1)
        )
        for reading in self.readings:
            if len(self.readings) > 1 and (sources or targets):
                reading.drop_alike((sources, targets))
            reading.require_pairs(reading.pairs_left > 0)
            for split, hashes in reading.given.items():
                reading.counts[split]["in_train"] = int(np.isin(hashes, in_train).sum())
        for split in ("train", *HELD_OUT):
            counts = [reading.counts[split] for reading in self.readings]
            dropped = sum((count["dropped"] for count in counts), Counter[str]())
            self.counts[split] = {
                "read": sum(count["read"] for count in counts),
                "dropped": dropped,
            }
            if any("in_train" in count for count in counts):
                self.counts[split]["in_train"] = sum(count.get("in_train", 0) for count in counts)

    def learned(self) -> Tokenizer:
        config = self.config.tokenizer
        sizes = [reading.pairs_left for reading in self.readings]
        total = sum(sizes)
        numbers = random_rows(total, min(total, config.sample), self.config.seed)
        self.say(f"training a {config.kind} vocabulary on {len(numbers):,} pairs")
        begins = np.cumsum([0, *sizes])
        edges = np.searchsorted(numbers, begins)
        samples = [
            (reading.text, nth_flagged(reading.keep, numbers[edges[i] : edges[i + 1]] - begins[i]))
            for i, reading in enumerate(self.readings)
        ]
        entries = set[str]()
        structured = [reading for reading in self.readings if reading.corpus.structured]
        for reading in structured:
            targets = (
                target
                for block in reading.blocks_of("train")
                for target in block.column(1).to_pylist()
            )
            entries.update(entry for target in targets for entry in reading.corpus.entries(target))
        sides, tags = (
            (0,) if structured else (0, 1),
            {source.data.tag for source in self.sources if source.data.tag},
        )
        # Train in a worker process: the library ignores signals while training, and its memory is freed afterwards.
        return self.pool.submit(
            learn_vocabulary, samples, sides, config, sorted(entries), sorted(tags)
        ).result()

    def write_texts(self, split: str) -> None:
        """Write the raw lines of a held-out set, for the set as a whole and for each source."""
        data = self.config.data
        texts = [
            (split, data, [pair for reading in self.readings for pair in reading.held_out[split]])
        ]
        for number, (source, reading) in enumerate(zip(self.sources, self.readings, strict=True)):
            name = held_out_name(data, number, source, split)
            if data.sources and reading.held_out[split] and name != "all":
                texts.append((f"{split}.{name}", reading.data, reading.held_out[split]))
        for name, languages, pairs in texts:
            for side, language in enumerate((languages.source, languages.target)):
                # Strings from JSON may contain line breaks, but here each line must be one sentence.
                lines = "".join(re.sub(r"[\r\n]+", " ", pair[side]) + "\n" for pair in pairs)
                (self.folder / f"{name}.{language}").write_text(
                    lines, encoding="utf-8", newline="\n"
                )

    def write_ids(self, split: str) -> None:
        """Encode a split, write it, and count its pairs and tokens. A split without pairs gets no folder."""
        lengths, characters = [Counter[int](), Counter[int]()], [Counter[str](), Counter[str]()]
        file, counts, kept_of = self.folder / split / "pairs.arrow", self.counts[split], list[int]()
        file.parent.mkdir()
        with arrow_writer(file, IDS_SCHEMA) as write:
            for reading in self.readings:
                limit, before = (
                    reading.data.filters.max_tokens if split == "train" else None,
                    lengths[0].total(),
                )
                encode = partial(
                    encode_block,
                    tokenizer_file=self.tokenizer_file,
                    limit=limit,
                    tag=reading.data.tag,
                )
                for encoded in self.map(encode, reading.blocks_of(split)):
                    write(encoded.ids)
                    counts["dropped"] += Counter({"too long (tokens)": encoded.dropped})
                    for side in (0, 1):
                        lengths[side].update(encoded.lengths[side])
                        characters[side].update(encoded.characters[side])
                    self.say(f"encoded {lengths[0].total():,} {split} pairs")
                kept_of.append(lengths[0].total() - before)
        kept = sum(kept_of)
        if not kept:
            file.unlink()
            file.parent.rmdir()
        if split == "train":
            for reading, source_kept in zip(self.readings, kept_of, strict=True):
                reading.counts["train"]["dropped"] = counts["dropped"]
                reading.require_pairs(source_kept > 0)
            self.characters = self.recorded(characters)
            self.report_lacking(characters)
        # Each pair has one end symbol per side.
        tokens = [kept + sum(length * count for length, count in side.items()) for side in lengths]
        counts |= {"kept": kept, "tokens": dict(zip(SIDES, tokens, strict=True))}
        counts["lengths"] = dict(zip(SIDES, map(usual_and_longest, lengths), strict=True))
        if self.config.data.sources:
            counts["sources"] = dict(
                zip([source.name for source in self.sources], kept_of, strict=True)
            )

    def report_lacking(self, characters: list[Counter[str]]) -> None:
        """Report the characters that the vocabulary of the initial model lacks."""
        if not self.initial:
            return
        for side, counts in enumerate(characters):
            blocks = (block for reading in self.readings for block in reading.blocks_of("train"))
            notice = lacking_characters(self.initial, counts, side, blocks)
            if notice:
                log.warning(f"notice: init={self.config.init}: {notice}")

    def recorded(self, characters: list[Counter[str]]) -> dict[str, str] | None:
        """The characters that the model can learn, and the rare letters of sources; None if there are too many."""
        if max(map(len, characters)) > RECORDED_CHARACTERS:
            return None
        tokenizer = load_tokenizer(self.tokenizer_file)
        recorded = dict[str, str]()
        for number, counts in enumerate(characters):
            spelled = {" ", *"".join(tokenizer.vocabulary(number))}
            learned = {
                sign for sign, count in counts.items() if sign in spelled or count >= LEARNED
            }
            recorded[SIDES[number]] = "".join(sorted(learned))
            if number == SOURCE:
                letters = filter(LETTER_OR_MARK.match, counts.keys() - learned)
                recorded[files.RARE_LETTERS] = "".join(sorted(letters))
        return recorded


def preprocess(config: ExperimentConfig, say: Say) -> tuple[Manifest, bool]:
    """Prepare the corpus of `config` in `config.prepared`. Return its manifest, and False if it already existed.

    Raise NMTError if another process is preparing it, or if the folder contains unrelated files or, unless
    `config.overwrite` is set, a corpus with another configuration.
    """
    corpora = [corpus_for(source.data) for source in sources_of(config.data)]
    fits = config.tokenizer.kind != "wordpiece" or not any(corpus.structured for corpus in corpora)
    require(
        fits,
        f"tokenizer.kind=wordpiece with data.kind={config.data.kind}: use tokenizer.kind=bpe or unigram",
    )
    folder = Path(config.prepared)
    existing_corpus(config)  # check before hashing the sources, which takes time
    tokenizer, init = initial_tokenizer(config)
    content = {
        **{
            "data": to_tree(config.data),
            "tokenizer": to_tree(config.tokenizer),
            "seed": config.seed,
        },
        **{
            "sources": {
                name: digest for corpus in corpora for name, digest in corpus.digests().items()
            },
            **init,
        },
    }
    with files.only_process(folder, "prepared", replaced=True):
        files.remove_leftovers(folder.parent, re.escape(folder.name))
        if manifest := existing_corpus(config, content):
            return manifest, False
        in_use = f"{folder}: a training run is using this corpus; wait until it finishes, or pass data.name=OTHER"
        with (
            files.locked_file(folder / TOKENIZER, True, in_use),
            files.whole_folder(folder) as temporary,
        ):
            try:
                with worker_pool(config.workers) as pool:
                    manifest = Preparation(config, temporary, say, pool, tokenizer).run(content)
            except BrokenProcessPool as error:
                advice = "try workers=1, or lower tokenizer.sample or tokenizer.vocabulary_size"
                raise NMTError(f"a worker process died, perhaps out of memory: {advice}") from error
            manifest.write(temporary)
            return manifest, True


def existing_corpus(
    config: ExperimentConfig, content: dict[str, Any] | None = None
) -> Manifest | None:
    """The manifest of a corpus to keep, or None; NMTError if `content` differs or the folder has unrelated files."""
    folder = Path(config.prepared)
    if config.overwrite or not (folder / "manifest.json").is_file():
        files.check_replaceable(folder)
        if folder.exists():
            check_ours(folder)
        return None
    manifest = read_manifest(folder)
    if content is not None:
        # A configuration built in Python may lack plugins' keys, which `read_manifest` adds.
        content = {**content, "data": with_defaults(DataConfig, content["data"])}
    if content is not None and manifest.content != content:
        old, new = (
            {**tree, "data": decisive(tree["data"])} for tree in (manifest.content, content)
        )
        advice = "pass overwrite=true to replace it, or data.name=OTHER to keep both"
        changed = f"{folder} was prepared with another configuration ({difference(old, new)})"
        require(old == new, f"{changed}: {advice}")
        manifest.content = content  # the contents differ only in keys that do not affect the corpus
        manifest.write(folder)
    return manifest


def initial_tokenizer(config: ExperimentConfig) -> tuple[Tokenizer | None, dict[str, Any]]:
    """The tokenizer of the model `config.init`, and its manifest record; NMTError if these do not suit `config`."""
    if config.init is None:
        require(
            config.tokenizer.kind != "marian",
            "tokenizer.kind=marian: cannot be trained; pass init=MODEL",
        )
        return None, {}
    folder, where = files.find_model_directory(config.init, "init"), f"init={config.init}"
    description = files.read_description(folder)
    same_task = files.is_parser(description) == corpus_for(config.data).structured
    require(
        same_task,
        f"{where}: a parser cannot be trained further on translations, nor a translator on trees",
    )
    changed = difference(
        files.tokenizer_settings(description), {**asdict(config.tokenizer), "sample": None}
    )
    require(not changed, f"{where} has another vocabulary ({changed}): omit the tokenizer keys")
    files.check_direction(where, description, config.data.source, config.data.target)
    tokenizer = read_tokenizer(folder)
    missing = {
        tag
        for source in sources_of(config.data)
        if (tag := source.data.tag) and tag not in tokenizer.tags
    }
    tags = f"the vocabulary of {where} has {', '.join(tokenizer.tags) or 'no tags'}"
    require(
        not missing,
        f"tag {', '.join(sorted(missing))}: {tags}; omit the tag, or use a model that has it",
    )
    return tokenizer, {"init": {"tokenizer": description.tokenizer}}
