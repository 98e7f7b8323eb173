"""Write a bundle that cites scores, and check an untrusted bundle. Torch is loaded only to translate.

A bundle is a zip archive whose bytes depend only on its files:

bundle.json                     the statement
hypotheses.TARGET               the translations
README.md, config.json          the model's card and description
config.yaml, environment.json   of the run, if there is one
source.SOURCE, reference.TARGET the test set, on request
SHA256SUMS                      of all other files, for `sha256sum -c`
"""

import hashlib
import io
import json
import math
import re
import shlex
import struct
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt import __version__, hardware, translation
from nmt.config import (
    BLEU_TOKENIZERS,
    LANGUAGE,
    DecodeConfig,
    TranslatorOptions,
    build,
    metric_names,
    require,
    shown,
)
from nmt.errors import NMTError, one_line
from nmt.evaluation import Score, score
from nmt.files import (
    MODEL_FILES,
    expected_search,
    parse_json,
    read_bytes,
    read_description,
    read_mapping,
    write_file,
)
from nmt.plugins.results.commands import CiteConfig, VerifyConfig, check_output
from nmt.plugins.results.test_set import (
    TestSet,
    cited_model,
    digests_of,
    read_test_set,
    search_keys,
)
from nmt.plugins.results.translating import (
    Computation,
    computation_of,
    device_of,
    missing_engine,
    open_translator,
    translate_lines,
    versions_with,
)
from nmt.text import decoded, read_texts

SOFTWARE = f"""@software{{nmt,
  author = {{{{The nmt authors}}}},
  title = {{nmt: Neural machine translation with the Transformer of ``Attention Is All You Need''}},
  version = {{{__version__}}}
}}"""
STATEMENT, SUMS = "bundle.json", "SHA256SUMS"
CARD, DESCRIPTION = "README.md", "config.json"
MODEL_AND_RUN = (CARD, DESCRIPTION, "config.yaml", "environment.json")
NAME = re.compile(
    "|".join(map(re.escape, (STATEMENT, SUMS, *MODEL_AND_RUN)))
    + rf"|(hypotheses|source|reference)\.{LANGUAGE.pattern}"
)
FORMAT_VERSION = 2
SAME, DIFFERS, UNCHECKED, MISSING = "same", "DIFFERS", "unchecked", "MISSING"
ANOTHER = "another environment"  # bits differ, but last bits may differ there
RESULT_WIDTH = max(map(len, (SAME, DIFFERS, UNCHECKED, MISSING, ANOTHER)))
Check = tuple[str, str, str]  # the result, what was checked, and details
MOST_THREADS_PER_CORE = 16
ROUNDING = 1e-12
"""The relative difference that rounding can make between two computations of a score, generously."""
UNPROVEN = (
    "run",
    "test_set",
    "commands",
    "device",
    "versions",
)  # keys of the statement that cannot be checked
PARTS = {
    "texts": ("source", "reference"),
    "model": MODEL_FILES,
    "decode": [key.name for key in fields(DecodeConfig)],
}


@dataclass
class Statement:
    """The content of `bundle.json`."""

    run: str
    test_set: str
    source: str  # a language
    target: str
    lines: int
    texts: dict[str, str]  # SHA-256
    model: dict[str, str]  # SHA-256
    decode: dict[str, Any]
    language_tag: str | None  # target= for a model with several target languages
    lowercase: bool
    scores: list[dict[str, Any]]
    commands: list[str]
    device: str
    versions: dict[str, str]
    files: list[str]  # except bundle.json and SHA256SUMS
    format_version: int = FORMAT_VERSION
    computation: Computation = field(default_factory=Computation)

    def __post_init__(self) -> None:
        require(
            self.format_version == FORMAT_VERSION,
            f"{STATEMENT}: wrong format; use the nmt version that wrote it",
        )
        for language in (self.source, self.target, self.language):  # they are part of file names
            require(bool(LANGUAGE.fullmatch(language)), f"{language[:40]!r} is not a language code")
        for key, names in PARTS.items():
            require(
                {*getattr(self, key)} == {*names},
                f"{STATEMENT}, {key}: must have {', '.join(names)}",
            )
        for key in ("lines", *UNPROVEN):
            require(bool(getattr(self, key)), f"{STATEMENT}, {key}: must not be empty")
        texts = (f"source.{self.source}", f"reference.{self.target}", f"hypotheses.{self.target}")
        extra = {*self.files} - {*MODEL_AND_RUN, *texts}
        require(
            not extra,
            f"{STATEMENT}, files: {shown(', '.join(sorted(extra)))}: do not belong in a bundle",
        )

    @property
    def language(self) -> str:
        return translation.language_of(self.language_tag or self.target)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pack(files: dict[str, bytes]) -> bytes:
    """An archive of these files; its bytes do not depend on the time or the machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer, "w"
    ) as archive:  # uncompressed, because compressors produce different bytes
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(name)  # dated 1980
            member.create_system, member.external_attr = (
                3,
                0o100644 << 16,
            )  # as on Unix, whatever the system
            archive.writestr(member, content)
    return buffer.getvalue()


def sums(files: dict[str, bytes]) -> bytes:
    return "".join(
        f"{digest(content)}  {name}\n" for name, content in sorted(files.items())
    ).encode()


def cite(config: CiteConfig, console: Console) -> tuple[Path, str, str]:
    """Translate the test set and write the bundle; return its path, its SHA-256 and a sentence that cites it."""
    folder = cited_model(config.run)
    run = (
        folder.parent
        if folder.name == "model" and (folder.parent / "config.yaml").is_file()
        else None
    )
    several = (
        not config.source
        and not config.translator.target
        and translation.find_models([config.run])[2].tags
    )
    require(
        not several,
        f"run={config.run} has several target languages; pass source=FILE reference=FILE target=CODE",
    )
    test = read_test_set(str(folder), config.source, config.reference, config.prepared)
    default = f"citation-{Path(config.source or 'test').name}.zip"
    output = check_output(Path(config.output or (run or Path()) / default), default)
    require(
        not output.exists(),
        f"{output} exists and may have been cited: pass output=FILE or remove it",
    )
    translator = open_translator(
        build(TranslatorOptions, {"run": [config.run]}, base=config.translator)
    )
    sources = test.sources or []
    console.print(f"translating {len(sources):,} lines")
    hypotheses = translate_lines(translator, sources, console)
    statement, files = state(config, folder, run, test, hypotheses, translator)
    files[STATEMENT] = (json.dumps(asdict(statement), indent=2) + "\n").encode()
    content = pack({**files, SUMS: sums(files)})
    write_file(output, content)
    figures = "; ".join(
        f"{s['name']} {s['value']:.2f} ({s['signature']})" for s in statement.scores
    )
    lines = (
        f"{statement.lines:,} lines of {statement.test_set}, {statement.source}-{statement.target}"
    )
    how = (
        f"beam {statement.decode['beam_size']}, length penalty {statement.decode['length_penalty']}"
    )
    how += f", {statement.computation.engine} {statement.computation.precision}"
    sentence = f"{figures}; {lines}, by {statement.run}, {how}, nmt {statement.versions['nmt']}"
    return output, digest(content), f"{sentence}, bundle SHA-256 {digest(content)}."


def state(
    config: CiteConfig,
    folder: Path,
    run: Path | None,
    test: TestSet,
    hypotheses: list[str],
    translator: translation.Translator,
) -> tuple[Statement, dict[str, bytes]]:
    """The statement of a bundle, and the bundle's other files."""
    description = read_description(folder)
    source, target, tag = description.source, description.target, config.translator.target
    language, decode = (
        translation.language_of(tag or target),
        expected_search(config.translator.decode, description),
    )
    texts = {"source": text_of(test.sources or []), "reference": text_of(test.references)}
    paths = [(run if index > 1 else folder, name) for index, name in enumerate(MODEL_AND_RUN)]
    files = {
        name: read_bytes(place / name) for place, name in paths if place and (place / name).exists()
    }
    record = run / "environment.json" if run and "environment.json" in files else None
    trained = read_mapping(record, parse_json).get("command") if record else None
    files[f"hypotheses.{target}"] = text_of(hypotheses)
    if config.text:
        files |= {f"source.{source}": texts["source"], f"reference.{target}": texts["reference"]}
    scores = score(
        hypotheses, test.references, config.metrics, language, config.lowercase, config.tokenize
    )
    computation = computation_of(translator)
    words = [f"run={run or folder}", f"engine={computation.engine}"]
    if computation.precision != "float32":
        words.append(f"precision={computation.precision}")
    words += [*([f"target={tag}"] if tag else []), *search_keys(decode)]
    keys = f"metrics=[{','.join(config.metrics)}] language={language}"
    keys += (
        f" tokenize={config.tokenize}" * bool(config.tokenize)
        + " lowercase=true" * config.lowercase
    )
    translating = f"nmt translate {shlex.join(words)} < source.{source} > hypotheses.{target}"
    scoring = f"nmt score hypotheses.{target} reference.{target} {keys}"
    statement = Statement(
        run=(run or folder).resolve().name,
        test_set=Path(config.source or "test").name,
        source=source,
        target=target,
        lines=len(test.references),
        texts={kind: digest(text) for kind, text in texts.items()},
        model=digests_of(folder),
        decode=asdict(decode),
        language_tag=tag,
        lowercase=config.lowercase,
        scores=[asdict(result) for result in scores],
        commands=[*([trained] if isinstance(trained, str) else []), translating, scoring],
        device=device_of(translator),
        versions=versions_with(computation.engine),
        files=sorted(files),
        computation=computation,
    )
    return statement, files


def read_bundle(path: Path) -> tuple[dict[str, bytes], str, dict[str, str]]:
    """The files of a packed or unpacked bundle, the SHA-256 of its archive, and the problems found, by file name.

    Checksums cover the files; the rest of the archive must match what `pack` writes.
    """
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir())
        files = {name: read_bytes(path / name) for name in names if NAME.fullmatch(name)}
        archive = pack(files)
    else:
        archive = read_bytes(path)
        members = list(read_members(path, archive))
        names, files = [name for name, _ in members], dict(members)
    changed = {name: "not a file of a bundle" for name in names if not NAME.fullmatch(name)}
    if not changed and pack(files) != archive:
        changed["archive"] = "not as written by `nmt cite`"
    require(STATEMENT in files, f"{path}: not a bundle from `nmt cite` (no {STATEMENT})")
    summed = {name: content for name, content in files.items() if name != SUMS}
    for line in {*files.get(SUMS, b"").split(b"\n")} ^ {*sums(summed).split(b"\n")}:
        changed |= {
            line.decode(errors="replace").split("  ")[-1]: f"does not match {SUMS}",
            SUMS: "does not match",
        }
    return files, digest(archive), dict(sorted(changed.items()))


def read_members(path: Path, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each member of an uncompressed archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        struct.error,
        OverflowError,
        OSError,
    ) as error:
        raise NMTError(
            f"{path}: not a bundle from `nmt cite`, or damaged ({one_line(error)})"
        ) from error
    stored = sum(member.file_size for member in members) <= len(content)
    require(
        stored,
        f"{path}: not a bundle from `nmt cite`, or compressed; unpack it and verify the folder",
    )
    for member in members:
        start = (
            member.header_offset + 30 + len(member.filename.encode())
        )  # the name follows a 30-byte header
        yield member.filename, content[start : start + member.file_size]


def check_of(same: bool, what: str, detail: str) -> Check:
    return (SAME if same else DIFFERS), what, detail


def text_of(lines: Iterable[str]) -> bytes:
    """The lines in UTF-8, each ending in LF, whatever line endings their file has."""
    return "".join(f"{line}\n" for line in lines).encode()


def has_same_value(score: Score, other: Score) -> bool:
    """Whether two values are the same but for rounding.

    sacreBLEU adds logarithms with `sum`, which rounds less since Python 3.12, and the C libraries of
    operating systems compute logarithms with other last bits.
    """
    return math.isclose(score.value, other.value, rel_tol=ROUNDING)


def method(score: Score) -> list[str]:
    """How a score was computed, disregarding library versions."""
    versions = ("version", "sacrebleu", "sacremoses")
    return [
        score.name,
        *(part for part in score.signature.split("|") if part.split(":")[0] not in versions),
    ]


@dataclass
class Verification:
    config: VerifyConfig
    files: dict[str, bytes]
    stated: Statement
    console: Console

    def checks(self) -> Iterator[Check]:
        stated, name = self.stated, f"hypotheses.{self.stated.target}"
        files = {*self.files} - {STATEMENT, SUMS}
        for key in sorted({CARD, *stated.files} - files):
            yield MISSING, shown(key), "a file of the bundle"
        if not stated.scores:
            yield MISSING, "scores", f"{STATEMENT} states no score"
        for key in sorted(files - {*stated.files}):
            yield DIFFERS, shown(key), f"{STATEMENT} does not list this file"
        same = digest(self.files.get(DESCRIPTION, b"")) == stated.model[DESCRIPTION]
        yield check_of(same, DESCRIPTION, f"{'' if same else 'not '}of the stated model")
        if (hypotheses := self.lines(name)) is None:
            raise NMTError(f"{self.config.bundle}: has no {name}, so there is nothing to score")
        if len(hypotheses) != stated.lines:
            yield (
                DIFFERS,
                "hypotheses",
                f"{len(hypotheses):,} lines, but {stated.lines:,} are stated",
            )
            return
        sources = yield from self.text("source", stated.source, self.config.source)
        references = yield from self.text("reference", stated.target, self.config.reference)
        for before in [build(Score, tree, f"{STATEMENT}, scores") for tree in stated.scores]:
            yield self.score_again(before, hypotheses, references)
        yield from self.translations(hypotheses, sources)

    def lines(self, name: str) -> list[str] | None:
        if name not in self.files:
            return None
        lines = self.files[name].removesuffix(b"\n").split(b"\n") if self.files[name] else []
        return list(decoded(lines, f"{self.config.bundle}, {name}, "))

    def text(
        self, kind: str, language: str, given: str | None
    ) -> Generator[Check, None, list[str] | None]:
        """The source or reference lines, from a given file or the bundle; None unless they match the statement."""
        name, sha256 = given or f"{kind}.{language}", self.stated.texts[kind]
        lines = list(read_texts(given)) if given else self.lines(name)
        if lines is None:
            yield UNCHECKED, kind, f"not in the bundle; pass {kind}=FILE with SHA-256 {sha256[:64]}"
            return None
        same = digest(text_of(lines)) == sha256 and len(lines) == self.stated.lines
        yield check_of(
            same,
            kind,
            f"{name} is {'' if same else 'not '}the {kind} of {shown(self.stated.test_set)}",
        )
        return lines if same else None

    def score_again(
        self, before: Score, hypotheses: list[str], references: list[str] | None
    ) -> Check:
        stated, metric, names = self.stated, before.metric, metric_names("text")
        require(
            metric in names,
            f"{STATEMENT}, scores: unknown metric {metric[:40]!r}; use {', '.join(names)}",
        )
        in_full = f"{before.value!r}  {before.signature}"
        if references is None:
            return UNCHECKED, before.name, f"{in_full}; needs the reference"
        tokenizer = re.search(rf"\|tok:({'|'.join(BLEU_TOKENIZERS)})(?![^|-])", before.signature)
        tokenize = tokenizer[1] if tokenizer and metric == "bleu" else None
        [again] = score(
            hypotheses, references, [metric], stated.language, stated.lowercase, tokenize
        )
        here = (
            ""
            if again == before
            else f"; computed here {again.name} {again.value!r}  {again.signature}"
        )
        same = has_same_value(again, before) and method(again) == method(before)
        return check_of(same, before.name, in_full + here)

    def translations(self, hypotheses: list[str], sources: list[str] | None) -> Iterator[Check]:
        stated, run = self.stated, self.config.run
        if not run or sources is None:
            weights = stated.model["model.safetensors"][:64]
            yield (
                UNCHECKED,
                "translations",
                f"needs the source, and run=RUN whose weights have SHA-256 {weights}",
            )
        if not run:
            return
        same = digests_of(cited_model(run)) == stated.model
        yield check_of(same, "model", f"{run} is {'' if same else 'not '}the stated model")
        if not same or sources is None:
            return
        problem = missing_engine(stated.computation)
        if problem:
            yield UNCHECKED, "translations", problem
            return
        yield self.translate_again(hypotheses, sources)

    def translate_again(self, hypotheses: list[str], sources: list[str]) -> Check:
        """Repeat the computation that the bundle states, on this machine, and compare all lines."""
        stated = self.stated
        translator = open_translator(self.options_of_translator())
        self.console.print(f"translating {len(sources):,} lines")
        again = translate_lines(
            translator, sources, self.console, block_lines=stated.computation.block_lines
        )
        lines = enumerate(zip(hypotheses, again, strict=True), 1)
        changed = [
            f"line {number:,}: {one!r}, here {two!r}" for number, (one, two) in lines if one != two
        ]
        details = [
            f"{len(again) - len(changed):,} of {len(again):,} lines are the same",
            *changed[:3],
        ]
        if changed:
            here = versions_with(stated.computation.engine)
            libraries = [
                f"{name} {stated.versions.get(name)}, here {new}" for name, new in here.items()
            ]
            device = f"{stated.device}, here {device_of(translator)}"
            details.append(
                f"made with engine={stated.computation.engine} on {', '.join([device, *libraries])}"
            )
        return check_of(not changed, "translations", "; ".join(details))

    def options_of_translator(self) -> TranslatorOptions:
        """The stated options, with the number of threads, which determines the order of sums on a CPU."""
        stated, computation = self.stated, self.stated.computation
        most = MOST_THREADS_PER_CORE * hardware.usable_cores()
        threads = f"{STATEMENT}, computation: threads={computation.threads}"
        fits = computation.threads is None or computation.threads <= most
        require(fits, f"{threads}: for more than {most}, use a machine with more cores")
        decode = build(DecodeConfig, stated.decode, f"{STATEMENT}, decode")
        keys = {
            "run": [self.config.run],
            "device": self.config.device,
            "target": stated.language_tag,
            "engine": computation.engine,
            "precision": computation.precision,
            "threads": computation.threads,
        }
        return build(
            TranslatorOptions,
            keys,
            f"{STATEMENT}, computation",
            base=TranslatorOptions(decode=decode),
        )


def verify(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Check everything possible and report what other checks need; NMTError if this is not a bundle."""
    path = Path(config.bundle or "") / STATEMENT
    files, sha256, changed = read_bundle(path.parent)
    if config.sha256 is not None:
        yield check_of(config.sha256.lower() == sha256, "bundle", f"SHA-256 {sha256}")
    for name, problem in changed.items():
        yield DIFFERS, shown(name), problem
    if not changed:
        yield SAME, "files", f"all {len(files)} match {SUMS}"
    confirmed, tree = set[str](), None
    with suppress(ValueError):
        tree = parse_json(files[STATEMENT])
    try:
        stated = build(Statement, tree, str(path))
        for check in Verification(config, files, stated, console).checks():
            confirmed |= {check[1]} if check[0] == SAME else set()
            yield check
    except NMTError as error:
        if not changed:
            raise
        yield DIFFERS, "the rest", f"cannot be checked: {error}"
    if config.sha256 is None:  # edits to these parts cannot be detected
        unproven = [name for name in MODEL_AND_RUN if name in files and name != DESCRIPTION]
        unproven += [
            f"the {', '.join(UNPROVEN)} in {STATEMENT}",
            "that no score or file was left out",
        ]
        kinds = ("source", "reference")
        unproven += [
            f"the {kind}" for kind in kinds if not getattr(config, kind) or kind not in confirmed
        ]
        if "translations" not in confirmed:
            unproven.append("the model, the search and the translations")
        needed = f"SHA-256 {sha256}; pass sha256=DIGEST as published"
        yield UNCHECKED, "bundle", f"{needed}; not proven without it: {', '.join(unproven)}"
