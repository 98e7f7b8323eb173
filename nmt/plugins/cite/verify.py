"""What a bundle states, and the check of it: files, scores, and with the model translations. No torch before those."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt.config import (
    LANGUAGE,
    Compute,
    DecodeConfig,
    TranslatorOptions,
    build,
    metric_names,
    require,
    shown,
    with_plugin_defaults,
)
from nmt.errors import NMTError, one_line
from nmt.evaluation import Score, score, signature_tokenizer
from nmt.files import (
    MODEL_FILES,
    ModelDescription,
    check_version,
    find_model_directory,
    is_exported,
    is_parser,
    parse_json,
    printable,
    read_description,
    sha256,
)
from nmt.hardware import versions
from nmt.plugins.cite.bundle import CARD, DESCRIPTION, MODEL_AND_RUN, STATEMENT, SUMS, digest, read_bundle
from nmt.plugins.cite.command import VerifyConfig
from nmt.text import decoded, read_texts
from nmt.translation import language_of

FORMAT_VERSION = 2
SAME, DIFFERS, UNCHECKED, MISSING = "same", "DIFFERS", "unchecked", "MISSING"
UNPROVEN = ("run", "test_set", "commands", "device", "versions")
"""Keys of the statement that nothing can show again."""
PARTS = {
    "texts": ("source", "reference"),
    "model": MODEL_FILES,
    "decode": tuple(field.name for field in fields(DecodeConfig)),
}
"""The keys in each mapping of the statement."""
VERSION_FIELDS = ("version", "sacrebleu", "sacremoses")
"""Fields of a signature that name the version of a library."""
SHOWN_LINES = 3
"""Lines shown of those with another translation."""


@dataclass
class Statement:
    """`bundle.json`."""

    run: str
    """Name of the run, or of the model directory."""
    test_set: str
    source: str
    """Source language."""
    target: str
    """Target language."""
    lines: int
    texts: dict[str, str]
    """SHA-256 of source and reference, as the digest of `text_of` their lines."""
    model: dict[str, str]
    """SHA-256 of each file that decides what the model translates."""
    decode: dict[str, Any]
    """The search, all of its keys."""
    language_tag: str | None
    """`target=` of a model for several languages."""
    lowercase: bool
    scores: list[dict[str, Any]]
    """Of each Score its fields, with all digits of the value."""
    commands: list[str]
    """Shell commands for the same."""
    device: str
    versions: dict[str, str]
    files: list[str]
    """The other files of the bundle, without SHA256SUMS."""
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        for language in (self.source, self.target, self.language):
            require(bool(LANGUAGE.fullmatch(language)), f"{language[:40]!r} is not a language code")  # they name files
        for key in self.decode:
            require(key in PARTS["decode"], f"{STATEMENT}, decode: unknown key {key[:40]!r}")

    @property
    def language(self) -> str:
        """The language of the translations."""
        return language_of(self.language_tag or self.target)

    def missing(self) -> list[str]:
        """The keys that `nmt cite` writes and that have no value here."""
        inside = [f"{key}.{name}" for key, names in PARTS.items() for name in names if name not in getattr(self, key)]
        return [*inside, *(key for key in ("lines", *UNPROVEN) if not getattr(self, key))]


def text_of(lines: Iterable[str]) -> bytes:
    """Lines as the bytes of a file, in UTF-8 with LF; its digest does not depend on how a file ends its lines."""
    return "".join(f"{line}\n" for line in lines).encode()


def model_to_cite(run: str) -> tuple[Path, ModelDescription]:
    """The model directory of a run or model; NMTError unless it is a model of ours that translates."""
    path = Path(run)
    if path.is_symlink():  # runs/latest is another run tomorrow
        path = path.parent / path.readlink()
    folder = find_model_directory(str(path))
    require(not is_exported(folder), f"run={run}: exported for another program; pass the run or model directory")
    description = read_description(folder)
    if is_parser(description):
        raise NMTError(f"run={run}: a parser; nmt cite is for translations, `nmt score metrics=[brackets]` for trees")
    return folder, description


def model_digests(folder: Path) -> dict[str, str]:
    return {name: sha256(folder / name) for name in MODEL_FILES}


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
    """The files of a bundle, their statement, and what the user gives to check them."""

    config: VerifyConfig
    files: dict[str, bytes]
    changed: dict[str, str]
    stated: Statement
    console: Console

    def checks(self) -> Iterator[Check]:
        """The checks of everything that is stated, and of nothing being left out."""
        stated = self.stated
        yield from self.completeness()
        same = digest(self.files.get(DESCRIPTION, b"")) == stated.model.get(DESCRIPTION)
        yield Check(SAME if same else DIFFERS, DESCRIPTION, f"{'' if same else 'not '}of the model that is stated")
        name = f"hypotheses.{stated.target}"
        if (hypotheses := self.lines(name)) is None:
            raise NMTError(f"{self.config.bundle}: it holds no {name}: there is nothing to score")
        if len(hypotheses) != stated.lines:
            yield Check(DIFFERS, "hypotheses", f"{len(hypotheses):,} lines, but {stated.lines:,} are stated")
            return
        sources = yield from self.text("source", stated.source, self.config.source)
        references = yield from self.text("reference", stated.target, self.config.reference)
        yield from self.scores(hypotheses, references)
        yield from self.translations(hypotheses, sources)

    def completeness(self) -> Iterator[Check]:
        """The files and keys that `nmt cite` writes and that are missing, and files that are not stated."""
        stated, files = self.stated, {*self.files} - {STATEMENT, SUMS}
        missing = dict.fromkeys(sorted({CARD, *stated.files} - files), "a file of the bundle")
        missing |= dict.fromkeys(stated.missing(), f"not stated in {STATEMENT}")
        if not stated.scores:
            missing["unscored"] = f"{STATEMENT} states no score"
        for name, reason in missing.items():
            if name not in self.config.allow:
                yield Check(MISSING, shown(name), f"{reason}; allow={shown(name)} accepts that")
        texts = {f"source.{stated.source}", f"reference.{stated.target}", f"hypotheses.{stated.target}"}
        for name in sorted(files - ({*stated.files} & {*MODEL_AND_RUN, *texts}) - {*self.changed}):
            yield Check(DIFFERS, name, f"not a file that {STATEMENT} names")

    def lines(self, name: str) -> list[str] | None:
        """The lines of a text in the bundle; None where it does not hold the text."""
        if name not in self.files:
            return None
        lines = self.files[name].removesuffix(b"\n").split(b"\n") if self.files[name] else []
        return list(decoded(lines, f"{self.config.bundle}, {name}, "))

    def text(self, kind: str, language: str, given: str | None) -> Generator[Check, None, list[str] | None]:
        """The source or reference, given or in the bundle, if it is that of the test set; None if not."""
        name, sha256 = given or f"{kind}.{language}", self.stated.texts.get(kind, "")
        lines = list(read_texts(given)) if given else self.lines(name)
        if lines is None:
            yield Check(UNCHECKED, kind, f"not in the bundle; pass {kind}=FILE with SHA-256 {sha256[:64]}")
            return None
        same = digest(text_of(lines)) == sha256 and len(lines) == self.stated.lines
        test_set = shown(self.stated.test_set)
        yield Check(SAME if same else DIFFERS, kind, f"{name} is {'' if same else 'not '}the {kind} of {test_set}")
        return lines if same else None

    def scores(self, hypotheses: list[str], references: list[str] | None) -> Iterator[Check]:
        """Each score, computed again."""
        stated = self.stated
        if not stated.scores:
            yield Check(UNCHECKED, "scores", "none is stated")
        names = metric_names("text")
        for before in [build(Score, tree, f"{STATEMENT}, scores") for tree in stated.scores]:
            metric = before.metric
            require(metric in names, f"{STATEMENT}, scores: metric {metric[:40]!r} is none of {', '.join(names)}")
            in_full = f"{before.value!r}  {before.signature}"
            if references is None:
                yield Check(UNCHECKED, before.name, f"{in_full}; needs the reference")
                continue
            tokenize = signature_tokenizer(before.signature) if metric == "bleu" else None
            [again] = score(hypotheses, references, [metric], stated.language, stated.lowercase, tokenize)
            if again.value == before.value and method(again) == method(before):
                other = "" if again.signature == before.signature else f"; computed here with {again.signature}"
                yield Check(SAME, before.name, in_full + other)
            else:
                here = f"computed here {again.name} {again.value!r}  {again.signature}"
                yield Check(DIFFERS, before.name, f"stated {in_full}; {here}")

    def translations(self, hypotheses: list[str], sources: list[str] | None) -> Iterator[Check]:
        """The sources, translated again by a model that must be the stated one."""
        stated, run = self.stated, self.config.run
        if run:
            digests = model_digests(model_to_cite(run)[0])
            if other := [name for name, sha256 in digests.items() if sha256 != stated.model.get(name)]:
                yield Check(DIFFERS, "model", f"{run} is not the model that is stated: another {', '.join(other)}")
                return
            yield Check(SAME, "model", f"{run} is the model that is stated")
        if not run or sources is None:
            weights = stated.model.get("model.safetensors", "")[:64]
            needed = ["the source"] * (sources is None)
            needed += [f"run=RUN with model.safetensors of SHA-256 {weights}"] * (not run)
            yield Check(UNCHECKED, "translations", f"needs {' and '.join(needed)}")
            return
        from nmt.translation import load_translator, translate_lines, warn

        decode, compute = (
            build(DecodeConfig, stated.decode, f"{STATEMENT}, decode"),
            Compute("torch", device=self.config.device),
        )
        options = TranslatorOptions([run], compute, target=stated.language_tag, decode=decode)
        self.console.print(f"translating {len(sources):,} lines")
        again = translate_lines(load_translator(with_plugin_defaults(options), warn), sources, self.console)
        lines = enumerate(zip(hypotheses, again, strict=True), 1)
        changed = [f"line {number:,}: {one!r}, here {two!r}" for number, (one, two) in lines if one != two]
        details = [f"{len(again) - len(changed):,} of {len(again):,} lines are the same", *changed[:SHOWN_LINES]]
        if changed:
            old = stated.versions
            libraries = [
                f"{name} {old.get(name)}, here {new}" for name, new in versions().items() if old.get(name) != new
            ]
            details.append(f"made on {', '.join([stated.device, *libraries])}")
        yield Check(DIFFERS if changed else SAME, "translations", "; ".join(details))


def verify(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Everything that can be checked with what is given, and what is missing for the rest; NMTError for no bundle."""
    path = Path(config.bundle) / STATEMENT
    files, sha256, changed = read_bundle(path.parent)
    if config.sha256 == sha256:
        yield Check(SAME, "bundle", f"SHA-256 {sha256}, as it was published")
    elif config.sha256 is not None:
        yield Check(DIFFERS, "bundle", f"not the one that was published: SHA-256 {sha256}")
    for name, problem in changed.items():
        yield Check(DIFFERS, shown(name), problem)
    if not changed:
        yield Check(SAME, "files", f"all {len(files)} as {SUMS} lists them")
    confirmed = set[str]()
    try:
        try:
            tree = parse_json(files[STATEMENT])
        except ValueError as error:
            raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
        if isinstance(tree, dict):
            check_version(path, tree.get("format_version"), FORMAT_VERSION)
        stated = build(Statement, tree, str(path))
        for check in Verification(config, files, changed, stated, console).checks():
            confirmed |= {check.what} if check.result == SAME else set()
            yield check
    except NMTError as error:
        if not changed:
            raise
        yield Check(DIFFERS, "the rest", f"cannot be checked: {error}")
    if config.sha256 is None:  # whoever edits a bundle can change this unseen
        unproven = [name for name in MODEL_AND_RUN if name in files and name != DESCRIPTION]
        unproven += [f"the {', '.join(UNPROVEN)} in {STATEMENT}", "that no score and no file was left out"]
        given = {"source": config.source, "reference": config.reference}
        unproven += [f"the {kind}" for kind, name in given.items() if not name or kind not in confirmed]
        if "translations" not in confirmed:
            unproven.append("the model, the search and the translations")
        needed = f"SHA-256 {sha256}; pass sha256=DIGEST as it was published"
        yield Check(UNCHECKED, "bundle", f"{needed}; not proven without it: {', '.join(unproven)}")


def method(score: Score) -> list[str]:
    """What a score and its signature say of how it is computed, without the versions of libraries."""
    return [score.name, *(part for part in score.signature.split("|") if part.split(":")[0] not in VERSION_FIELDS)]
