"""What `nmt learn` does: sift corrections, train, test, and deliver the model or not."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files, hardware, translation
from nmt.commands import talker
from nmt.config import MULTIPLE, NMTError, TranslatorOptions
from nmt.files import ModelDescription, read_description, write_file
from nmt.plugins.learn.command import LearnConfig
from nmt.plugins.learn.comparison import loss_per_token, sift_by_model
from nmt.plugins.learn.division import Division, check_kinds, divide, normalized
from nmt.plugins.learn.history import report_lost
from nmt.plugins.learn.probabilities import calibrate_again
from nmt.plugins.learn.reading import Correction, Languages, Rejected, read_corrections
from nmt.plugins.learn.rejection import Sifted, TextRules, without_conflicts, without_surplus
from nmt.plugins.learn.replay import open_replay
from nmt.plugins.learn.reporting import (
    add_to_card,
    digest_of,
    report_sifted,
    report_verdict,
    rows_of,
    rows_of_rejected,
)
from nmt.plugins.learn.store import IDENTITY, WEIGHTS, Record, Store, identity_of
from nmt.plugins.learn.texts import (
    count_tokens,
    has_news,
    pairs_in,
    validation_of,
    write_texts,
)
from nmt.plugins.learn.training import Course, fine_tune, updates_for, write_candidates
from nmt.plugins.learn.trial import CandidateLosses, Rules, choose, judge
from nmt.translation import Translator

if TYPE_CHECKING:
    from rich.console import Console

NOT_DELIVERED = 1
"""The exit code if the new model is not better."""
MOST_TOKENS = 256
"""The longest side of a correction in subwords, as in data.filters.max_tokens."""
FORMAT = 2
"""Part of the identity; change it whenever the same command would learn other weights."""


def learn(config: LearnConfig) -> int:
    """Learn from corrections; returns the exit code.

    Raises NMTError if there are too few usable corrections.
    """
    console = talker()
    store = Store(config.run)
    with files.only_process(store.home, "run"):
        files.remove_leftovers(store.model.parent, "model")
        attempt = Attempt(config, store, console)
        return attempt.run()


class Attempt:
    """One command's way from corrections to a model."""

    def __init__(self, config: LearnConfig, store: Store, console: "Console") -> None:
        self.config = config
        self.store = store
        self.console = console
        self.description = read_description(store.model)
        self.languages = languages_of(self.description, config.run)
        self.pair = (self.languages.source, self.languages.target)
        self.replay = open_replay(store.model, self.description, config.replay)
        self.translator = self.load(store.model)
        self.rules = Rules(
            metric=config.metric,
            alpha=config.alpha,
            margin=config.margin,
            seed=config.seed or 1,
            language=self.languages.target,
        )

    def translator_options(self, folder: Path) -> TranslatorOptions:
        options = replace(self.config.translator, run=[str(folder)])
        return translation.with_engine(options, lambda text: None)

    def load(self, folder: Path) -> Translator:
        return translation.load_translator(self.translator_options(folder), lambda text: None)

    def run(self) -> int:
        for path in self.store.unreadable():
            self.console.print(f"{path}: unreadable; its corrections are not mixed in again")
        sifted = self.sift()
        if not has_news(self.store, sifted.usable):
            self.console.print(f"{self.store.model} has learned from all of them already")
            return 0
        division = divide(sifted.usable)
        if not division.training:
            # Chance may hold out nearly all of a few kinds.
            raise NMTError("no corrections are left to train on: nothing changed; collect more")
        parent = self.store.current()
        identity = self.identity(sifted.usable, parent)
        record = self.record_of(identity)
        # `prune=true` may have removed its model.
        if record and record.delivered and self.store.folder_of(record.model).exists():
            return self.deliver(record)
        folder = self.open_attempt(identity, sifted, division)
        self.store.keep(self.store.model)
        strength, candidate = self.train(folder, division, parent)
        with self.console.status("testing"):
            test = self.replay.test.beginning(self.config.general_lines)
            new = self.load(candidate)
            verdict = judge(self.translator, new, division.held_out, test, self.rules)
        report_verdict(verdict, self.config.metric, folder, self.console)
        record = Record(
            number=int(folder.name),
            identity=identity,
            parent=parent,
            model=files.sha256(candidate / WEIGHTS),
            delivered=not verdict.problem,
            verdict=verdict.problem or "better",
            strength=strength,
            corrections=self.facts_of_corrections(sifted, division),
            tests=verdict.as_tree(),
            settings=self.settings(),
            versions=hardware.versions(),
        )
        if record.delivered:
            add_to_card(candidate, record)
            self.store.keep(candidate)
        # Before the model changes: a command that is killed in between can be repeated.
        self.store.write(record)
        for path in folder.glob("strength-*"):
            shutil.rmtree(path)
        if verdict.problem:
            self.console.print(f"nothing changed: {verdict.problem}; {verdict.advice}")
            return NOT_DELIVERED
        return self.deliver(record)

    def sift(self) -> Sifted:
        """The usable and the rejected corrections; NMTError if too few are usable."""
        skipped = Counter[str]()
        malformed: Rejected = []
        corrections = [
            *read_corrections(self.config.corrections, self.languages, skipped, malformed)
        ]
        by_text = Sifted(rejected=malformed)
        by_text.sift(corrections, self.text_rules().reason)
        by_source = without_conflicts(by_text.usable)
        with self.console.status("comparing with the model"):
            by_model = sift_by_model(self.translator, by_source.usable, self.pair)
        by_kind = without_surplus(by_model.usable)
        rejected = [
            *by_text.rejected,
            *by_source.rejected,
            *by_model.rejected,
            *by_kind.rejected,
        ]
        # So that the order of the files does not change the weights.
        usable = sorted(by_kind.usable, key=lambda item: (item.source, item.target))
        sifted = Sifted(usable, rejected)
        self.store.open()
        report_sifted(sifted, skipped, self.store.home / "rejected.tsv", self.console)
        check_kinds(by_model.usable, self.config.least)
        return sifted

    def text_rules(self) -> TextRules:
        held_back = set[str]()
        for general in (self.replay.valid, self.replay.test):
            held_back.update(map(normalized, general.sources))
        return TextRules(self.languages, self.translator.tokenizer, MOST_TOKENS, held_back)

    def identity(self, usable: Sequence[Correction], parent: str) -> str:
        """The SHA-256 of everything that the new weights and the verdict depend on."""
        content = {
            "format": FORMAT,
            "parent": parent,
            "corrections": digest_of(usable),
            "replay": self.replay.corpus.manifest.fingerprint,
            "settings": self.settings(),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def settings(self) -> dict[str, Any]:
        keys = (
            "share",
            "passes",
            "learning_rate",
            "general_lines",
            "metric",
            "alpha",
            "margin",
            "seed",
        )
        return {key: getattr(self.config, key) for key in keys}

    def record_of(self, identity: str) -> Record | None:
        """The record of the same command, whose model may have been undone since."""
        for record in reversed(self.store.records()):
            if record.identity == identity:
                return record
        return None

    def open_attempt(self, identity: str, sifted: Sifted, division: Division) -> Path:
        """The folder of this attempt, which a killed command may have begun."""
        self.store.remove_unfinished(but=identity)
        numbers = [0]
        for path in self.store.home.iterdir():
            if not path.name.isdecimal():
                continue
            numbers.append(int(path.name))
            if identity_of(path) == identity:
                return path
        folder = self.store.home / str(max(numbers) + 1)
        folder.mkdir()
        write_file(folder / "rejected.tsv", rows_of_rejected(sifted.rejected))
        write_file(folder / "held-out.tsv", rows_of(division.held_out))
        write_file(folder / "tuning.tsv", rows_of(division.tuning))
        write_file(folder / "training.tsv", rows_of(division.training))
        # Last: a folder without it is incomplete, and the next command begins another one.
        write_file(folder / IDENTITY, identity)
        return folder

    def train(self, folder: Path, division: Division, parent: str) -> tuple[float, Path]:
        """Train, and choose the strength; returns it and the folder of its model."""
        config = self.config
        tokenizer = self.translator.tokenizer
        pairs = pairs_in(division.training)
        tokens = count_tokens(tokenizer, pairs)
        updates = updates_for(tokens, config.passes, config.share)
        course = Course(updates, config.share, config.seed, config.learning_rate)
        self.console.print(
            f"learning from {len(pairs):,} corrections, {len(division.tuning):,} choose the "
            f"strength, {len(division.held_out):,} test it; {updates:,} updates"
        )
        write_texts(folder, division, self.store, self.replay, tokenizer, course, self.pair)
        kept = self.store.folder_of(parent)
        trained = fine_tune(folder, kept, self.pair, course)
        candidates = write_candidates(kept, trained, folder)
        with self.console.status("choosing the strength"):
            chosen = self.choose(candidates, division)
        self.console.print(f"strength: {chosen.strength:g}")
        return chosen.strength, chosen.path

    def choose(self, candidates: dict[float, Path], division: Division) -> CandidateLosses:
        """Choose the strength by the tuning corrections and general validation text."""
        sources = [item.source for item in division.tuning]
        targets = [item.target for item in division.tuning]
        valid = validation_of(self.replay)
        general = (valid.sources, valid.references)
        measured = list[CandidateLosses]()
        for strength, path in candidates.items():
            model = self.load(path)
            tuning_loss = loss_per_token(model, sources, targets)
            general_loss = loss_per_token(model, *general)
            measured.append(CandidateLosses(strength, path, tuning_loss, general_loss))
        parent_loss = loss_per_token(self.translator, *general)
        return choose(measured, parent_loss, self.config.margin)

    def facts_of_corrections(self, sifted: Sifted, division: Division) -> dict[str, Any]:
        return {
            "files": {name: files.sha256(Path(name)) for name in self.config.corrections},
            "usable": digest_of(sifted.usable),
            "training": len(division.training),
            "tuning": len(division.tuning),
            "held_out": len(division.held_out),
            "rejected": dict(sorted(sifted.counts().items())),
        }

    def deliver(self, record: Record) -> int:
        """Put the model of a record in use."""
        kept = self.store.folder_of(record.model)
        options = self.translator_options(self.store.model)
        # Before the model is exchanged, so that a server never loses its probabilities.
        problem = calibrate_again(self.store.model, kept, options, self.console)
        exports = self.store.use(record.model)
        if problem:
            self.console.print(
                f"notice: the new model has no probabilities: {problem}; "
                f"run `nmt calibrate {self.config.run}`"
            )
        report_lost(exports, self.console)
        megabytes = self.store.disk_bytes() / 1e6
        self.console.print(
            f"delivered: {self.store.model} has learned; `nmt learn {self.config.run} undo=true` "
            f"brings the model before back (kept models: {megabytes:,.0f} MB in {self.store.home})"
        )
        return 0


def languages_of(description: ModelDescription, run: str) -> Languages:
    """The direction of a model; NMTError unless it has one."""
    source = description.source
    target = description.target
    if files.is_parser(description):
        raise NMTError(f"run={run}: is a parser, which has no translations to correct")
    if MULTIPLE in (source, target) or not target or description.model["target_tags"]:
        raise NMTError(
            f"run={run}: translates between several languages; learn adapts only one pair"
        )
    return Languages(source, target)
