"""`nmt cite` and `nmt verify`: bundles are reproducible, and each changed byte is detected."""

import hashlib
import json
import random
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import yaml
from rich.console import Console

import nmt as nmt_package

Files = dict[str, bytes]
Edit = Callable[[Files, dict[str, Any]], object]
SEARCH = ("decode=greedy", "decode.max_extra_length=5", "engine=torch")
FILES = [
    "README.md",
    "SHA256SUMS",
    "bundle.json",
    "config.json",
    "config.yaml",
    "environment.json",
    "hypotheses.de",
]


@pytest.fixture(scope="module")
def cited(finished, toy, tmp_path_factory) -> Path:
    """A folder with two bundles of the finished run, and the test set's files beside them."""
    from nmt.commands import compose
    from nmt.plugins.results.citation import cite

    folder = tmp_path_factory.mktemp("cited")
    metrics = "metrics=[bleu,chrf,ter,tokenized,split]"
    options = {"bare.zip": [], "full.zip": ["text=true", metrics]}
    for name, words in options.items():
        words = [str(finished), *SEARCH, f"output={folder / name}", *words]
        cite(compose("cite", words), Console(quiet=True))
    prepared = Path(toy[-1].removeprefix("prepared="))
    for name in ("test.en", "test.de"):
        shutil.copy(prepared / name, folder)
    return folder


@pytest.fixture
def bundles(cited, tmp_path) -> Path:
    """A folder with both bundles and the files of the test set."""
    shutil.copytree(cited, tmp_path, dirs_exist_ok=True)
    return tmp_path


def contents(bundle: Path) -> Files:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def statement_of(bundle: Path) -> dict[str, Any]:
    """The content of bundle.json."""
    return json.loads(contents(bundle)["bundle.json"])


def rewritten(edit: Edit) -> None:
    """Write a folder with the files of full.zip after an edit, with the right checksums."""
    files = contents(Path("full.zip"))
    del files["SHA256SUMS"]
    statement = json.loads(files["bundle.json"])
    edit(files, statement)
    files["bundle.json"] = json.dumps(statement).encode()
    sums = "".join(f"{sha256(content)}  {name}\n" for name, content in files.items())
    files["SHA256SUMS"] = sums.encode()
    folder = Path("folder")
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def results(out: str) -> dict[str, tuple[str, str]]:
    """The result and the detail of each check, by what was checked."""
    rows = {}
    for line in out.splitlines():
        result, row = re.split("  +", line, maxsplit=1)
        what, detail = row.split(": ", 1)
        rows[what] = (result, detail)
    return rows


def checked(out: str, result: str) -> set[str]:
    """What was checked with this result."""
    return {what for what, row in results(out).items() if row[0] == result}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_scores_of_a_bundle_equal_sacrebleu(bundles):
    files = contents(bundles / "bare.zip")
    assert sorted(files) == FILES
    references = (bundles / "test.de").read_text().splitlines()
    hypotheses = files["hypotheses.de"].decode().splitlines()
    scorers = [sacrebleu.BLEU(), sacrebleu.CHRF(), sacrebleu.TER()]
    scores = json.loads(files["bundle.json"])["scores"]
    for score, scorer in zip(scores, scorers, strict=True):
        assert score["value"] == scorer.corpus_score(hypotheses, [references]).score
        assert score["signature"] == str(scorer.get_signature())


def test_statement_and_files_of_a_bundle_match_the_run(bundles, finished):
    files = contents(bundles / "bare.zip")
    statement = json.loads(files["bundle.json"])
    model = finished / "model"
    assert statement["texts"] == {
        "source": sha256((bundles / "test.en").read_bytes()),
        "reference": sha256((bundles / "test.de").read_bytes()),
    }
    assert statement["model"] == {
        "model.safetensors": sha256((model / "model.safetensors").read_bytes()),
        "config.json": sha256((model / "config.json").read_bytes()),
        "tokenizer.model": sha256((model / "tokenizer.model").read_bytes()),
    }
    assert files["config.yaml"] == (finished / "config.yaml").read_bytes()
    assert files["README.md"] == (model / "README.md").read_bytes()
    assert statement["decode"]["beam_size"] == 1
    assert statement["lines"] == 20
    assert statement["source"] == "en"
    assert statement["target"] == "de"


def test_bundle_is_reproducible(nmt, bundles, finished):
    bundle = (bundles / "bare.zip").read_bytes()
    out = nmt("cite", str(finished), *SEARCH, "output=again.zip").out
    assert Path("again.zip").read_bytes() == bundle
    assert out.startswith(f"again.zip\nSHA-256 {sha256(bundle)}\n")
    for score in statement_of(bundles / "bare.zip")["scores"]:
        assert f"{score['name']} {score['value']:.2f} ({score['signature']})" in out
    assert f"bundle SHA-256 {sha256(bundle)}." in out
    assert "@software{nmt," in out


def test_commands_in_a_bundle_repeat_its_translations_and_scores(nmt, bundles):
    files = contents(bundles / "full.zip")
    statement = json.loads(files["bundle.json"])
    _, translate, score = (command.split() for command in statement["commands"])
    assert translate[-4:] == ["<", "source.en", ">", "hypotheses.de"]
    for name, content in files.items():
        (bundles / name).write_bytes(content)
    assert nmt(*translate[1:-4], "input=source.en", "output=again.de").code == 0
    assert Path("again.de").read_bytes() == files["hypotheses.de"]
    assert json.loads(nmt(*score[1:], "--json").out) == statement["scores"]


@pytest.mark.slow
def test_bundle_verifies_without_the_run(bundles):
    """In a process that cannot import torch, in a folder that contains only the bundle."""
    elsewhere = bundles / "else/where"
    elsewhere.mkdir(parents=True)
    shutil.copy(bundles / "full.zip", elsewhere)
    program = "import sys; sys.modules['torch'] = None; from nmt.cli import main; main()"
    digest = sha256((bundles / "full.zip").read_bytes())
    command = [sys.executable, "-c", program, "verify", "full.zip", f"sha256={digest}"]
    process = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    files = {"bundle", "files", "config.json", "source", "reference"}
    scores = {"BLEU", "chrF2", "TER", "BLEU (tokenized)", "BLEU (tokenized, compounds split)"}
    assert checked(process.stdout, "same") == files | scores
    assert checked(process.stdout, "unchecked") == {"translations"}


SCORES = {"BLEU", "chrF2", "TER"}


def test_missing_texts_are_reported_with_their_hashes(nmt, bundles):
    outcome = nmt("verify", "bare.zip")
    assert outcome.code == 0, outcome.err
    missing = {"bundle", "source", "reference", "translations"}
    assert checked(outcome.out, "unchecked") == missing | SCORES
    for kind, name in {"source": "test.en", "reference": "test.de"}.items():
        _, detail = results(outcome.out)[kind]
        assert f"{kind}=FILE" in detail
        assert sha256((bundles / name).read_bytes()) in detail


def test_line_ends_of_a_reference_do_not_matter(nmt, bundles):
    content = (bundles / "test.de").read_bytes()
    (bundles / "crlf.de").write_bytes(content.replace(b"\n", b"\r\n"))
    outcome = nmt("verify", "bare.zip", "reference=crlf.de")
    assert checked(outcome.out, "same") >= {"reference"} | SCORES


def test_unchanged_translations_are_counted(nmt, bundles, finished):
    outcome = nmt("verify", "bare.zip", "source=test.en", "reference=test.de", f"run={finished}")
    assert outcome.code == 0, outcome.out + outcome.err
    assert results(outcome.out)["translations"] == ("same", "20 of 20 lines are the same")


def change_translations(files: Files, statement: dict[str, Any]) -> None:
    lines = files["hypotheses.de"].decode().splitlines()
    lines[3] = "ganz anders"
    lines[7] = "auch \x1b[31manders"
    files["hypotheses.de"] = "".join(f"{line}\n" for line in lines).encode()


def test_changed_translations_are_counted_and_shown(nmt, bundles, finished):
    rewritten(change_translations)
    outcome = nmt("verify", "folder", f"run={finished}")
    assert outcome.code == 1
    result, detail = results(outcome.out)["translations"]
    assert result == "DIFFERS"
    assert detail.startswith("18 of 20 lines are the same;")
    assert "line 4: 'ganz anders', here" in detail
    assert "line 8: " in detail
    assert "\x1b" not in outcome.out
    assert checked(outcome.out, "DIFFERS") >= {"BLEU", "chrF2"}


def test_another_model_and_reference_are_detected(nmt, bundles, checkpoint):
    outcome = nmt("verify", "full.zip", f"run={checkpoint}", "reference=test.en")
    assert outcome.code == 1
    assert checked(outcome.out, "DIFFERS") == {"model", "reference"}
    result, _ = results(outcome.out)["BLEU"]
    assert result == "unchecked"


def test_verification_uses_the_recorded_engine(nmt, bundles, finished, monkeypatch, tmp_path):
    """It also uses the recorded threads and blocks, which affect the last digits.

    Bundles without the record used torch.
    """
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = ["engine=ctranslate2", "decode=greedy", "decode.max_extra_length=5"]
    run = str(finished)
    assert nmt("translate", run, "input=test.en", "output=out.de", *options).code == 0
    outcome = nmt("cite", run, "output=fast.zip", "text=true", "threads=3", *options)
    assert "ctranslate2 float32" in outcome.out
    bundle = Path("fast.zip")
    statement = statement_of(bundle)
    assert statement["computation"] == {
        "engine": "ctranslate2",
        "precision": "float32",
        "threads": 3,
        "block_lines": 2000,
    }
    assert "ctranslate2" in statement["versions"]
    assert contents(bundle)["hypotheses.de"] == Path("out.de").read_bytes()
    outcome = nmt("verify", "fast.zip", f"run={run}")
    expected = ("same", "20 of 20 lines are the same")
    assert results(outcome.out)["translations"] == expected, outcome.err
    rewritten(lambda files, statement: statement.pop("computation"))
    result, _ = results(nmt("verify", "folder", f"run={run}").out)["translations"]
    assert result == "same"


@pytest.mark.parametrize(
    ("computation", "problem"),
    [
        (
            {"engine": "abacus"},
            "unchecked            translations: needs the plugin that adds engine=abacus",
        ),
        ({"engine": "torch", "precision": "int8"}, "precision=int8: pass engine=ctranslate2"),
        ({"threads": 4000}, "threads=4000: for more than"),
        ({"threads": 0}, "threads=0: must be a whole number"),
        ({"block_lines": 0}, "block_lines=0: must be a whole number"),
    ],
)
def test_computation_that_cannot_be_repeated_is_reported(
    nmt, bundles, finished, computation, problem
):
    rewritten(lambda files, statement: statement["computation"].update(computation))
    outcome = nmt("verify", "folder", f"run={finished}")
    assert problem in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


def fabricate(files: Files, statement: dict[str, Any]) -> None:
    """Replace the references by the translations, and the digest and the scores accordingly."""
    translations = files["hypotheses.de"]
    files["reference.de"] = translations
    statement["texts"]["reference"] = sha256(translations)
    lines = translations.decode().splitlines()
    bleu = statement["scores"][0]
    bleu["value"] = sacrebleu.BLEU().corpus_score(lines, [lines]).score
    statement["scores"] = [bleu]


def change_score(key: str, change: Callable[[Any], Any]) -> Edit:
    def edit(files: Files, statement: dict[str, Any]) -> None:
        score = statement["scores"][0]
        score[key] = change(score[key])

    return edit


def change_source(files: Files, statement: dict[str, Any]) -> None:
    files["source.en"] = files["source.en"].replace(b"a", b"o", 1)
    statement["texts"]["source"] = sha256(files["source.en"])


def change_reference(files: Files, statement: dict[str, Any]) -> None:
    files["reference.de"] = files["hypotheses.de"]


def add_file(files: Files, statement: dict[str, Any]) -> None:
    files["reference.fr"] = b"x\n"


def change_weights(files: Files, statement: dict[str, Any]) -> None:
    statement["model"]["model.safetensors"] = "0" * 64


def improve(value: float) -> float:
    return value * (1 + 1e-11)


def change_case(signature: str) -> str:
    return signature.replace("case:mixed", "case:lc")


def change_version(signature: str) -> str:
    return signature.replace(sacrebleu.__version__, "1.5.0")


EDITS: list[tuple[str, Edit]] = [
    # Detected with a bundle that contains the test set.
    ("alone", change_score("value", improve)),
    ("alone", change_score("signature", change_case)),
    ("alone", change_score("metric", lambda metric: "chrf")),
    ("alone", lambda files, statement: statement.update(lines=19)),
    ("alone", lambda files, statement: statement["texts"].pop("reference")),
    ("alone", add_file),
    ("alone", change_reference),
    ("alone", lambda files, statement: files.pop("hypotheses.de")),
    # Detected with the files of the test set.
    ("texts", change_source),
    ("texts", fabricate),
    # Detected with the model.
    ("run", change_weights),
    # Detected only with the published SHA-256.
    ("sha256", change_score("signature", change_version)),
    ("sha256", lambda files, statement: statement.update(device="cuda:0, H200")),
    ("sha256", lambda files, statement: statement["scores"].pop()),
    # Not detected, because 20 lines stay the same.
    ("nothing", lambda files, statement: statement["decode"].update(beam_size=3)),
]
"""Edits that also correct all checksums, and what detects them."""
NAMES_OF_EDITS = [
    "a better score",
    "a signature",
    "a score's metric",
    "fewer lines",
    "no digest of the reference",
    "an additional file",
    "a reference",
    "no translations",
    "a source with its digest",
    "references with digest and scores",
    "the digest of the weights",
    "a version of sacrebleu",
    "the device",
    "a missing score",
    "the search",
]


@pytest.mark.slow
@pytest.mark.parametrize(("detected_with", "edit"), EDITS, ids=NAMES_OF_EDITS)
def test_edit_is_detected_or_reported_as_unproven(nmt, bundles, finished, detected_with, edit):
    rewritten(edit)
    alone = nmt("verify", "folder")
    if detected_with == "alone":
        assert alone.code != 0, alone.out
    else:
        assert alone.code == 0, alone.out
        assert alone.out.splitlines()[-1].startswith("unchecked            bundle: ")
    texts = ("source=test.en", "reference=test.de")
    if detected_with == "texts":
        assert nmt("verify", "folder", *texts).code == 1
    elif detected_with == "run":
        assert nmt("verify", "folder", *texts).code == 0
        assert nmt("verify", "folder", *texts, f"run={finished}").code == 1
    elif detected_with == "sha256":
        digest = sha256((bundles / "full.zip").read_bytes())
        assert nmt("verify", "folder", f"sha256={digest}").code == 1


def remove_an_option(files: Files, statement: dict[str, Any]) -> None:
    del statement["decode"]["no_repeat_ngram_size"]


def test_bundle_verifies_if_it_lacks_a_search_option_that_was_added_later(nmt, bundles, finished):
    rewritten(remove_an_option)
    outcome = nmt("verify", "folder", "source=test.en", "reference=test.de", f"run={finished}")
    assert outcome.code == 0, outcome.out


def test_scores_may_differ_by_rounding(nmt, bundles):
    """Python 3.12 adds the logarithms of BLEU with less rounding, and C libraries differ."""
    rewritten(change_score("value", lambda value: value * (1 + 2**-50)))
    outcome = nmt("verify", "folder")
    assert outcome.code == 0, outcome.out
    _, detail = results(outcome.out)["BLEU"]
    recorded, computed = detail.split("; computed here BLEU ")
    assert recorded != computed
    assert float(recorded.split()[0]) == pytest.approx(float(computed.split()[0]), rel=1e-14)


def remove_scores_and_readme(files: Files, statement: dict[str, Any]) -> None:
    statement["scores"].clear()
    del files["README.md"]


def test_missing_scores_and_files_are_reported(nmt, bundles):
    rewritten(remove_scores_and_readme)
    outcome = nmt("verify", "folder")
    assert outcome.code == 1
    assert checked(outcome.out, "MISSING") == {"scores", "README.md"}


def test_unpacked_bundle_verifies_and_sha256sum_reads_its_sums(nmt, bundles):
    with zipfile.ZipFile("bare.zip") as archive:
        archive.extractall("unpacked")
    digest = sha256((bundles / "bare.zip").read_bytes())
    assert nmt("verify", "unpacked", f"sha256={digest}", "reference=test.de").code == 0
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd="unpacked", check=True)


def with_flipped_bit(content: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def differences_of(bundle: Path) -> list[str]:
    """What differs in a bundle, or the error."""
    from nmt.errors import NMTError
    from nmt.plugins.results.checks import DIFFERS
    from nmt.plugins.results.options import VerifyConfig
    from nmt.plugins.results.verify import verify

    try:
        checks = list(verify(VerifyConfig(str(bundle)), Console(quiet=True)))
    except NMTError as error:
        return [f"error: {error}"]
    return [what for result, what, _ in checks if result == DIFFERS]


def test_each_flipped_bit_is_detected(bundles):
    """Also in names, checksums and dates of the archive itself, and without `sha256=`."""
    draw = random.Random(1)
    bundle = (bundles / "bare.zip").read_bytes()
    flipped = bundles / "flipped.zip"
    index = bundle.index(b"PK\x01\x02")
    for number in range(120):
        first = 0 if number % 2 == 0 else index
        place = draw.randrange(first, len(bundle))
        flipped.write_bytes(with_flipped_bit(bundle, place, draw.randrange(8)))
        differences = differences_of(flipped)
        assert differences, place
        # Only a bit in the archive's index can make the file unreadable as a bundle.
        if place < index:
            assert not differences[0].startswith("error"), (place, differences)


def test_flipped_bit_is_reported_with_the_name_of_its_file(nmt, bundles):
    draw = random.Random(1)
    bundle = Path("bare.zip").read_bytes()
    flipped = Path("flipped.zip")
    for name, content in contents(Path("bare.zip")).items():
        start = bundle.index(content)
        for _ in range(4):
            place = start + draw.randrange(len(content))
            flipped.write_bytes(with_flipped_bit(bundle, place, draw.randrange(8)))
            assert name in differences_of(flipped)
    outcome = nmt("verify", "flipped.zip")
    assert outcome.code == 1
    assert name in checked(outcome.out, "DIFFERS")


def test_extra_bytes_are_detected(nmt, bundles):
    bundle = (bundles / "bare.zip").read_bytes()
    # The last content declares the extra byte as a comment of the archive.
    for content in (b"x" + bundle, bundle + b"x", bundle[:-2] + b"\x01\x00x"):
        Path("bare.zip").write_bytes(content)
        assert nmt("verify", "bare.zip").code != 0


def test_extra_files_are_detected(nmt, bundles):
    with zipfile.ZipFile("bare.zip", "a") as archive:
        archive.writestr("../outside.txt", "theirs")
    assert "../outside.txt" in checked(nmt("verify", "bare.zip").out, "DIFFERS")
    assert not Path("../outside.txt").exists()


def test_latest_run_is_cited_by_its_own_name(nmt, bundles, finished):
    shutil.copytree(finished, "runs/mine", ignore=shutil.ignore_patterns("checkpoints"))
    Path("runs/latest").symlink_to("mine")
    bundle = Path("runs/mine/citation-test.zip")
    assert nmt("cite", *SEARCH, "metrics=[bleu]").out.startswith(f"{bundle}\n")
    statement = statement_of(bundle)
    assert statement["run"] == "mine"
    assert statement["commands"][1].count("run=runs/mine") == 1
    outcome = nmt("cite", *SEARCH)
    outcome.failed(f"{bundle} exists", "output=FILE")
    assert outcome.err.startswith("nmt: runs/latest is runs/mine\n")
    Path("runs/mine/environment.json").write_text(f'{{"processor": {2**63}}}')
    outcome = nmt("cite", *SEARCH, "output=other.zip")
    assert outcome.code == 2
    assert outcome.err.count("environment.json: cannot be read") == 1


def test_mistakes_are_one_line(nmt, bundles, finished, checkpoint):
    nmt("cite", checkpoint).refused("does not record its corpus", "source=FILE reference=FILE")
    nmt("cite", str(finished), "source=test.en").refused("source, reference: pass both")
    nmt("verify", "test.en").refused("test.en: not a bundle from `nmt cite`")
    nmt("verify", "bare.zip", "sha256=abc").refused("sha256=abc", "64")
    with zipfile.ZipFile("packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents(Path("bare.zip")).items():
            archive.writestr(name, content)
    nmt("verify", "packed.zip").refused("compressed", "unpack it")


def test_software_citation_is_the_same_everywhere():
    from nmt.plugins.results.citation import SOFTWARE

    root = Path(__file__).parents[3]
    file = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert file["version"] == nmt_package.__version__
    assert file["license"] == project["license"]
    assert file["keywords"] == project["keywords"]
    author = file["authors"][0]["name"]
    assert f"author = {{{{{author}}}}}" in SOFTWARE
    title = f"title = {{{file['title']}}}"
    assert title.replace(' "', " ``").replace('"}', "''}") in SOFTWARE
    assert SOFTWARE in (root / "README.md").read_text(encoding="utf-8")
