"""Check an untrusted bundle, as `nmt verify` does. Torch is loaded only to translate."""

import math
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt import hardware
from nmt.config import (
    BLEU_TOKENIZERS,
    DecodeConfig,
    TranslatorOptions,
    build,
    metric_names,
    shown,
)
from nmt.errors import NMTError
from nmt.evaluation import Score, score
from nmt.files import parse_json
from nmt.plugins.results.bundle import (
    CARD,
    DESCRIPTION,
    OF_RUN,
    STATEMENT,
    SUMS,
    UNPROVEN,
    Bundle,
    Statement,
    digest,
    read_bundle,
    text_of,
)
from nmt.plugins.results.checks import (
    DIFFERS,
    MISSING,
    MOST_THREADS_PER_CORE,
    SAME,
    UNCHECKED,
    Check,
    check_of,
)
from nmt.plugins.results.options import VerifyConfig
from nmt.plugins.results.test_set import cited_model, digests_of
from nmt.plugins.results.translating import (
    device_of,
    missing_engine,
    open_translator,
    translate_lines,
    versions_with,
)
from nmt.text import decoded, read_texts

ROUNDING = 1e-12
"""The relative difference that rounding can make between two computations of a score."""
TOKENIZER = re.compile(rf"\|tok:({'|'.join(BLEU_TOKENIZERS)})(?![^|-])")
"""The BLEU tokenizer in a signature; a version may follow it after a hyphen."""
VERSIONS = ("version", "sacrebleu", "sacremoses")
"""The parts of a signature that name library versions."""
SHOWN_CHANGES = 3
"""How many lines with another translation a check quotes."""


def verify(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Check everything possible and report what other checks need.

    NMTError if this is not a bundle.
    """
    path = Path(config.bundle or "")
    bundle = read_bundle(path)
    if config.sha256 is not None:
        # First, because it covers everything below.
        same = config.sha256.lower() == bundle.sha256
        yield check_of(same, "bundle", f"SHA-256 {bundle.sha256}")
    for name, problem in bundle.problems.items():
        yield Check(DIFFERS, shown(name), problem)
    if not bundle.problems:
        yield Check(SAME, "files", f"all {len(bundle.files)} match {SUMS}")
    confirmed = set()
    tree = None
    # A damaged statement is reported by `build`, which gets None.
    with suppress(ValueError):
        tree = parse_json(bundle.files[STATEMENT])
    try:
        stated = build(Statement, tree, str(path / STATEMENT))
        # Checks are yielded as they finish, since later ones take longer.
        for check in Verification(config, bundle.files, stated, console).checks():
            if check.result == SAME:
                # What has been recomputed needs no published SHA-256.
                confirmed.add(check.what)
            yield check
    except NMTError as error:
        # A damaged bundle has been reported already; otherwise, this is the first problem.
        if not bundle.problems:
            raise
        yield Check(DIFFERS, "the rest", f"cannot be checked: {error}")
    if config.sha256 is None:
        yield origin_unknown(config, bundle, confirmed)


def origin_unknown(config: VerifyConfig, bundle: Bundle, confirmed: set[str]) -> Check:
    """The parts that only the published SHA-256 proves: their editor can edit SHA256SUMS, too."""
    unproven = [name for name in (CARD, *OF_RUN) if name in bundle.files]
    unproven += [f"the {', '.join(UNPROVEN)} in {STATEMENT}", "that no score or file was left out"]
    # Texts inside the bundle prove nothing, because their hashes are inside it, too.
    if not config.source or "source" not in confirmed:
        unproven.append("the source")
    if not config.reference or "reference" not in confirmed:
        unproven.append("the reference")
    if "translations" not in confirmed:
        unproven.append("the model, the search and the translations")
    needed = f"SHA-256 {bundle.sha256}; pass sha256=DIGEST as published"
    return Check(UNCHECKED, "bundle", f"{needed}; not proven without it: {', '.join(unproven)}")


def has_same_value(score: Score, other: Score) -> bool:
    """Whether two values are the same but for rounding.

    sacreBLEU adds logarithms with `sum`, which rounds less since Python 3.12, and the C libraries
    of operating systems compute logarithms with other last bits.
    """
    return math.isclose(score.value, other.value, rel_tol=ROUNDING)


def method(score: Score) -> list[str]:
    """How a score was computed, disregarding library versions."""
    parts = [score.name]
    for part in score.signature.split("|"):
        # What counts is whether the values agree, not which version computed them.
        key, _, _ = part.partition(":")
        if key not in VERSIONS:
            parts.append(part)
    return parts


@dataclass
class Verification:
    """The checks of what a bundle states."""

    config: VerifyConfig
    files: dict[str, bytes]
    stated: Statement
    console: Console

    def checks(self) -> Iterator[Check]:
        stated = self.stated
        yield from self.list_of_files()
        same = digest(self.files.get(DESCRIPTION, b"")) == stated.model[DESCRIPTION]
        detail = "of the stated model" if same else "not of the stated model"
        yield check_of(same, DESCRIPTION, detail)
        hypotheses = self.lines(stated.hypotheses)
        # Without translations, no other check is possible.
        if hypotheses is None:
            problem = f"has no {stated.hypotheses}, so there is nothing to score"
            raise NMTError(f"{self.config.bundle}: {problem}")
        if len(hypotheses) != stated.lines:
            detail = f"{len(hypotheses):,} lines, but {stated.lines:,} are stated"
            yield Check(DIFFERS, "hypotheses", detail)
            return
        sources = yield from self.text("source", stated.source, self.config.source)
        references = yield from self.text("reference", stated.target, self.config.reference)
        # All scores are read before the first is computed again.
        # A malformed score would otherwise be found after minutes of computation.
        scores = [build(Score, tree, f"{STATEMENT}, scores") for tree in stated.scores]
        for stated_score in scores:
            yield self.score_again(stated_score, hypotheses, references)
        yield from self.translations(hypotheses, sources)

    def list_of_files(self) -> Iterator[Check]:
        """The files and scores that are missing, and the files that are not listed."""
        files = set(self.files) - {STATEMENT, SUMS}
        listed = set(self.stated.files)
        for name in sorted({CARD, *listed} - files):
            yield Check(MISSING, shown(name), "a file of the bundle")
        if not self.stated.scores:
            yield Check(MISSING, "scores", f"{STATEMENT} states no score")
        for name in sorted(files - listed):
            yield Check(DIFFERS, shown(name), f"{STATEMENT} does not list this file")

    def lines(self, name: str) -> list[str] | None:
        """The lines of a file in the bundle; None if it is missing."""
        if name not in self.files:
            return None
        content = self.files[name]
        # Not `splitlines`, which would also split at a carriage return.
        lines = content.removesuffix(b"\n").split(b"\n") if content else []
        return list(decoded(lines, f"{self.config.bundle}, {name}, "))

    def text(
        self, kind: str, language: str, path: str | None
    ) -> Generator[Check, None, list[str] | None]:
        """The source or reference lines, from a file of the user or the bundle.

        None unless they match the statement.
        """
        stated = self.stated
        sha256 = stated.texts[kind]
        name = path or f"{kind}.{language}"
        lines = list(read_texts(path)) if path else self.lines(name)
        if lines is None:
            # The statement is untrusted: its digest may have any length.
            advice = f"pass {kind}=FILE with SHA-256 {sha256[:64]}"
            yield Check(UNCHECKED, kind, f"not in the bundle; {advice}")
            return None
        # The digest of the lines, so that a user's file may have other line endings.
        same = digest(text_of(lines)) == sha256 and len(lines) == stated.lines
        verb = "is" if same else "is not"
        yield check_of(same, kind, f"{name} {verb} the {kind} of {shown(stated.test_set)}")
        return lines if same else None

    def score_again(
        self, stated_score: Score, hypotheses: list[str], references: list[str] | None
    ) -> Check:
        """Compare a stated score with the score of the stated translations."""
        name = stated_score.name
        metric = stated_score.metric
        # The name comes from the bundle, and decides which code computes the score.
        names = metric_names("text")
        if metric not in names:
            problem = f"unknown metric {metric[:40]!r}; use {', '.join(names)}"
            raise NMTError(f"{STATEMENT}, scores: {problem}")
        detail = f"{stated_score.value!r}  {stated_score.signature}"
        if references is None:
            return Check(UNCHECKED, name, f"{detail}; needs the reference")
        tokenize = None
        if metric == "bleu":
            # With the tokenizer that the score was made with, also where nmt now recommends another
            # one.
            tokenizer = TOKENIZER.search(stated_score.signature)
            tokenize = tokenizer[1] if tokenizer else None
        language = self.stated.language
        lowercase = self.stated.lowercase
        [again] = score(hypotheses, references, [metric], language, lowercase, tokenize)
        # Also if only the rounding or a version differs, so that users can judge for themselves.
        if again != stated_score:
            detail += f"; computed here {again.name} {again.value!r}  {again.signature}"
        same_method = method(again) == method(stated_score)
        return check_of(has_same_value(again, stated_score) and same_method, name, detail)

    def translations(self, hypotheses: list[str], sources: list[str] | None) -> Iterator[Check]:
        """Check that the model in the user's run, if any, makes these translations.

        `sources` is None without the stated source. Yields a check of the run's model, and one of
        the translations unless the model is another one.
        """
        stated = self.stated
        run = self.config.run
        if not run or sources is None:
            weights = stated.model["model.safetensors"][:64]
            needed = f"needs the source, and run=RUN whose weights have SHA-256 {weights}"
            yield Check(UNCHECKED, "translations", needed)
        if not run:
            return
        # The model can be checked even without the source.
        is_stated_model = digests_of(cited_model(run)) == stated.model
        verb = "is" if is_stated_model else "is not"
        yield check_of(is_stated_model, "model", f"{run} {verb} the stated model")
        if not is_stated_model or sources is None:
            return
        # Another engine would compute something else, and a difference would prove nothing.
        problem = missing_engine(stated.computation)
        if problem:
            yield Check(UNCHECKED, "translations", problem)
            return
        yield self.translate_again(hypotheses, sources)

    def translate_again(self, hypotheses: list[str], sources: list[str]) -> Check:
        """Repeat the computation that the bundle states, on this machine, and compare all lines."""
        translator = open_translator(self.stated_options())
        self.console.print(f"translating {len(sources):,} lines")
        block_lines = self.stated.computation.block_lines
        again = translate_lines(translator, sources, self.console, block_lines=block_lines)
        changes = []
        for number, (stated, here) in enumerate(zip(hypotheses, again, strict=True), 1):
            if here != stated:
                # `repr`, because lines may differ in invisible characters.
                changes.append(f"line {number:,}: {stated!r}, here {here!r}")
        same = len(again) - len(changes)
        details = [f"{same:,} of {len(again):,} lines are the same", *changes[:SHOWN_CHANGES]]
        if changes:
            details.append(self.environments(device_of(translator)))
        return check_of(not changes, "translations", "; ".join(details))

    def environments(self, device: str) -> str:
        """The engine, the device and the libraries of the bundle, beside those of this machine."""
        stated = self.stated
        engine = stated.computation.engine
        parts = [f"{stated.device}, here {device}"]
        for library, version in versions_with(engine).items():
            parts.append(f"{library} {stated.versions.get(library)}, here {version}")
        return f"made with engine={engine} on {', '.join(parts)}"

    def stated_options(self) -> TranslatorOptions:
        """The stated options to translate with, but the user's run and device.

        They include the number of threads, because it determines the order of sums on a CPU.
        """
        stated = self.stated
        computation = stated.computation
        most = MOST_THREADS_PER_CORE * hardware.usable_cores()
        if computation.threads is not None and computation.threads > most:
            advice = f"for more than {most}, use a machine with more cores"
            raise NMTError(f"{STATEMENT}, computation: threads={computation.threads}: {advice}")
        decode = build(DecodeConfig, stated.decode, f"{STATEMENT}, decode")
        keys: dict[str, Any] = {
            "run": [self.config.run],
            "device": self.config.device,
            "target": stated.language_tag,
            "engine": computation.engine,
            "precision": computation.precision,
            "threads": computation.threads,
        }
        base = TranslatorOptions(decode=decode)
        return build(TranslatorOptions, keys, f"{STATEMENT}, computation", base=base)
