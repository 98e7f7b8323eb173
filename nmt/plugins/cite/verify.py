"""Checking a bundle: its files, its scores, and with the model its translations. No torch before it translates."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from nmt.config import Compute, TranslatorOptions, shown, with_plugin_defaults
from nmt.errors import NMTError
from nmt.evaluation import Score, score, signature_tokenizer
from nmt.files import printable
from nmt.hardware import versions
from nmt.plugins.cite.bundle import STATEMENT, SUMS, Bundle, digest, read_bundle
from nmt.plugins.cite.command import VerifyConfig
from nmt.plugins.cite.statement import Statement, find_cited, lines_of, read_statement, text_digest
from nmt.text import read_texts

SAME, DIFFERS, UNCHECKED, MISSING = "same", "DIFFERS", "unchecked", "MISSING"
CARD, DESCRIPTION = "README.md", "config.json"
MODEL_AND_RUN = (CARD, DESCRIPTION, "config.yaml", "environment.json")
ONLY_STATED = ("run", "test_set", "commands", "device", "versions")
"""Fields of the statement that nothing can show again."""
VERSION_FIELDS = ("version", "sacrebleu", "sacremoses")
"""Fields of a signature that name the version of a library."""
SHOWN_LINES = 3
"""Lines shown of those that are translated otherwise."""


@dataclass
class Check:
    """One thing that was checked, or that could not be."""

    result: str
    """same, DIFFERS, unchecked, or MISSING."""
    what: str
    detail: str

    def __str__(self) -> str:
        return printable(f"{self.result:9}  {self.what}: {self.detail}")


@dataclass
class Verification:
    """A bundle, what it states, and what is given to check that."""

    config: VerifyConfig
    bundle: Bundle
    stated: Statement
    console: Console

    def checks(self) -> Iterator[Check]:
        """The checks of everything that is stated, and of nothing being left out."""
        stated, files = self.stated, self.bundle.files
        yield from self.nothing_missing()
        same = digest(files.get(DESCRIPTION, b"")) == stated.model.get(DESCRIPTION)
        yield Check(SAME if same else DIFFERS, DESCRIPTION, f"{'' if same else 'not '}of the model that is stated")
        hypotheses = self.lines(f"hypotheses.{stated.target}")
        if hypotheses is None:
            raise NMTError(f"{self.config.bundle}: it holds no hypotheses.{stated.target}: there is nothing to score")
        if len(hypotheses) != stated.lines:
            yield Check(DIFFERS, "hypotheses", f"{len(hypotheses):,} lines, but {stated.lines:,} are stated")
            return
        sources = yield from self.text("source", stated.source, self.config.source)
        references = yield from self.text("reference", stated.target, self.config.reference)
        yield from self.scores(hypotheses, references)
        yield from self.translations(hypotheses, sources)

    def nothing_missing(self) -> Iterator[Check]:
        """What is not there, though `nmt cite` writes it; and files that the statement does not name."""
        stated, files = self.stated, {*self.bundle.files} - {STATEMENT, SUMS}
        missing = dict.fromkeys(sorted({CARD, *stated.files} - files), "a file of the bundle")
        missing |= dict.fromkeys(stated.missing(), f"not stated in {STATEMENT}")
        if not stated.scores:
            missing["unscored"] = f"{STATEMENT} states no score"
        for name, reason in missing.items():
            if name not in self.config.allow:
                yield Check(MISSING, shown(name), f"{reason}; allow={shown(name)} accepts that")
        texts = {f"source.{stated.source}", f"reference.{stated.target}", f"hypotheses.{stated.target}"}
        named = {*stated.files} & {*MODEL_AND_RUN, *texts}
        for name in sorted(files - {*named, *self.bundle.changed}):
            yield Check(DIFFERS, name, f"not a file that {STATEMENT} names")

    def lines(self, name: str) -> list[str] | None:
        """The lines of a text in the bundle; None where it does not hold it."""
        return lines_of(self.bundle.files[name], f"{self.config.bundle}, {name}") if name in self.bundle.files else None

    def text(self, kind: str, language: str, given: str | None) -> Generator[Check, None, list[str] | None]:
        """The source or reference, given or in the bundle, if it is that of the test set; None if not."""
        name, sha256 = given or f"{kind}.{language}", self.stated.texts.get(kind, "")
        lines = list(read_texts(given)) if given else self.lines(name)
        if lines is None:
            yield Check(UNCHECKED, kind, f"not in the bundle; pass {kind}=FILE with SHA-256 {sha256[:64]}")
            return None
        same = text_digest(lines) == sha256 and len(lines) == self.stated.lines
        test_set = shown(self.stated.test_set)
        yield Check(SAME if same else DIFFERS, kind, f"{name} is {'' if same else 'not '}the {kind} of {test_set}")
        return lines if same else None

    def scores(self, hypotheses: list[str], references: list[str] | None) -> Iterator[Check]:
        """Each score, computed again."""
        stated = self.stated
        if not stated.scores:
            yield Check(UNCHECKED, "scores", "none is stated")
        for before in stated.stated_scores():
            if references is None:
                yield Check(UNCHECKED, before.name, f"{in_full(before)}; needs the reference")
                continue
            tokenize = signature_tokenizer(before.signature) if before.metric == "bleu" else None
            options = ([before.metric], stated.language, stated.lowercase, tokenize)
            [again] = score(hypotheses, references, *options)
            if again.value == before.value and method(again) == method(before):
                other = "" if again.signature == before.signature else f"; computed here with {again.signature}"
                yield Check(SAME, before.name, in_full(before) + other)
            else:
                here = f"computed here {again.name} {in_full(again)}"
                yield Check(DIFFERS, before.name, f"stated {in_full(before)}; {here}")

    def translations(self, hypotheses: list[str], sources: list[str] | None) -> Iterator[Check]:
        """The sources, translated again by a model that must be the stated one."""
        stated, run = self.stated, self.config.run
        if run:
            digests = find_cited(run).digests
            other = [name for name, sha256 in digests.items() if sha256 != stated.model.get(name)]
            if other:
                yield Check(DIFFERS, "model", f"{run} is not the model that is stated: another {', '.join(other)}")
                return
            yield Check(SAME, "model", f"{run} is the model that is stated")
        if not run or sources is None:
            sha256 = stated.model.get("model.safetensors", "")
            model = [] if run else [f"run=RUN with model.safetensors of SHA-256 {sha256[:64]}"]
            source = [] if sources is not None else ["the source"]
            yield Check(UNCHECKED, "translations", f"needs {' and '.join([*source, *model])}")
            return
        from nmt.translation import load_translator, translate_lines, warn

        compute = Compute("torch", device=self.config.device)
        options = TranslatorOptions([run], compute, target=stated.language_tag, decode=stated.search)
        self.console.print(f"translating {len(sources):,} lines")
        again = translate_lines(load_translator(with_plugin_defaults(options), warn), sources, self.console)
        pairs = enumerate(zip(hypotheses, again, strict=True), 1)
        changed = [f"line {number:,}: {one!r}, here {two!r}" for number, (one, two) in pairs if one != two]
        count = f"{len(again) - len(changed):,} of {len(again):,} lines are the same"
        if not changed:
            yield Check(SAME, "translations", count)
            return
        old, here = stated.versions, versions()
        libraries = [f"{name} {old.get(name)}, here {value}" for name, value in here.items() if old.get(name) != value]
        origin = f"made on {', '.join([stated.device, *libraries])}"
        yield Check(DIFFERS, "translations", "; ".join([count, *changed[:SHOWN_LINES], origin]))


def verify(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Everything that can be checked with what is given, and what is missing for the rest; NMTError for no bundle."""
    path = Path(config.bundle)
    bundle = read_bundle(path)
    if config.sha256 == bundle.sha256:
        yield Check(SAME, "bundle", f"SHA-256 {config.sha256}, as it was published")
    elif config.sha256 is not None:
        yield Check(DIFFERS, "bundle", f"not the one that was published: SHA-256 {bundle.sha256}")
    for name, problem in bundle.changed.items():
        yield Check(DIFFERS, shown(name), problem)
    if not bundle.changed:
        yield Check(SAME, "files", f"all {len(bundle.files)} as {SUMS} lists them")
    confirmed = set[str]()
    try:
        statement = read_statement(bundle.files[STATEMENT], path)
        for check in Verification(config, bundle, statement, console).checks():
            confirmed |= {check.what} if check.result == SAME else set()
            yield check
    except NMTError as error:
        if not bundle.changed:
            raise
        yield Check(DIFFERS, "the rest", f"cannot be checked: {error}")
    if config.sha256 is None:
        unproven = ", ".join(only_stated(config, bundle, confirmed))
        needed = f"SHA-256 {bundle.sha256}; pass sha256=DIGEST as it was published"
        yield Check(UNCHECKED, "bundle", f"{needed}; not proven without it: {unproven}")


def only_stated(config: VerifyConfig, bundle: Bundle, confirmed: set[str]) -> Iterator[str]:
    """What whoever edits a bundle can change unseen, as nothing that was given shows it again."""
    yield from (name for name in MODEL_AND_RUN if name in bundle.files and name != DESCRIPTION)
    yield f"the {', '.join(ONLY_STATED)} in {STATEMENT}"
    yield "that no score and no file was left out"
    for kind, given in (("source", config.source), ("reference", config.reference)):
        if not given or kind not in confirmed:
            yield f"the {kind}"
    if "translations" not in confirmed:
        yield "the model, the search and the translations"


def in_full(score: Score) -> str:
    """A score with all its digits."""
    return f"{score.value!r}  {score.signature}"


def method(score: Score) -> list[str]:
    """What a score and its signature say of how it is computed, without the versions of libraries."""
    return [score.name, *(part for part in score.signature.split("|") if part.split(":")[0] not in VERSION_FIELDS)]
