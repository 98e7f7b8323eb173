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
    for words in (
        ["bare.zip"],
        ["full.zip", "text=true", "metrics=[bleu,chrf,ter,tokenized,split]"],
    ):
        words[0] = f"output={folder / words[0]}"
        cite(compose("cite", [str(finished), *SEARCH, *words]), Console(quiet=True))
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


def rewritten(change: Edit) -> None:
    """Write a folder with the files of full.zip, and change them and the statement; all check sums are right again."""
    files = contents(Path("full.zip"))
    del files["SHA256SUMS"]
    stated = json.loads(files["bundle.json"])
    change(files, stated)
    files["bundle.json"] = json.dumps(stated).encode()
    sums = "".join(f"{sha256(content)}  {name}\n" for name, content in files.items())
    Path("folder").mkdir()
    for name, content in {**files, "SHA256SUMS": sums.encode()}.items():
        (Path("folder") / name).write_bytes(content)


def results(out: str) -> dict[str, tuple[str, str]]:
    """What was checked -> the result and the detail."""
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


def test_scores_equal_sacrebleu_and_hashes_match_files(bundles, finished):
    files = contents(bundles / "bare.zip")
    assert sorted(files) == FILES
    stated, references = (
        json.loads(files["bundle.json"]),
        (bundles / "test.de").read_text().splitlines(),
    )
    hypotheses = files["hypotheses.de"].decode().splitlines()
    for score, scorer in zip(
        stated["scores"], (sacrebleu.BLEU(), sacrebleu.CHRF(), sacrebleu.TER()), strict=True
    ):
        assert score["value"] == scorer.corpus_score(hypotheses, [references]).score
        assert score["signature"] == str(scorer.get_signature())
    texts = {"source": "test.en", "reference": "test.de"}
    assert stated["texts"] == {
        kind: sha256((bundles / name).read_bytes()) for kind, name in texts.items()
    }
    names = ("model.safetensors", "config.json", "tokenizer.model")
    assert stated["model"] == {
        name: sha256((finished / "model" / name).read_bytes()) for name in names
    }
    assert files["config.yaml"] == (finished / "config.yaml").read_bytes()
    assert files["README.md"] == (finished / "model" / "README.md").read_bytes()
    assert (stated["decode"]["beam_size"], stated["lines"], stated["source"], stated["target"]) == (
        1,
        20,
        "en",
        "de",
    )


def test_bundle_is_reproducible_and_its_commands_work(nmt, bundles, finished):
    out, whole = (
        nmt("cite", str(finished), *SEARCH, "output=again.zip").out,
        (bundles / "bare.zip").read_bytes(),
    )
    assert Path("again.zip").read_bytes() == whole
    assert out.startswith(f"again.zip\nSHA-256 {sha256(whole)}\n")
    for score in json.loads(contents(bundles / "bare.zip")["bundle.json"])["scores"]:
        assert f"{score['name']} {score['value']:.2f} ({score['signature']})" in out
    assert f"bundle SHA-256 {sha256(whole)}." in out
    assert "@software{nmt," in out
    files = contents(bundles / "full.zip")
    stated = json.loads(files["bundle.json"])
    _, translate, score = (command.split() for command in stated["commands"])
    assert translate[-4:] == ["<", "source.en", ">", "hypotheses.de"]
    for name, content in files.items():
        (bundles / name).write_bytes(content)
    assert nmt(*translate[1:-4], "input=source.en", "output=again.de").code == 0
    assert Path("again.de").read_bytes() == files["hypotheses.de"]
    assert json.loads(nmt(*score[1:], "--json").out) == stated["scores"]


def test_bundle_verifies_without_the_run(bundles):
    """In a process that imports no torch, in a folder with the bundle alone."""
    elsewhere = bundles / "else/where"
    elsewhere.mkdir(parents=True)
    shutil.copy(bundles / "full.zip", elsewhere)
    program = "import sys; sys.modules['torch'] = None; from nmt.cli import main; main()"
    digest = sha256((bundles / "full.zip").read_bytes())
    command = [sys.executable, "-c", program, "verify", "full.zip", f"sha256={digest}"]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    scores = {"BLEU", "chrF2", "TER", "BLEU (tokenized)", "BLEU (tokenized, compounds split)"}
    assert (
        checked(done.stdout, "same")
        == {"bundle", "files", "config.json", "source", "reference"} | scores
    )
    assert checked(done.stdout, "unchecked") == {"translations"}


def test_missing_text_is_reported_with_its_hash(nmt, bundles):
    outcome = nmt("verify", "bare.zip")
    assert outcome.code == 0, outcome.err
    missing, scores = {"bundle", "source", "reference", "translations"}, {"BLEU", "chrF2", "TER"}
    assert checked(outcome.out, "unchecked") == missing | scores
    for kind, name in (("source", "test.en"), ("reference", "test.de")):
        detail = results(outcome.out)[kind][1]
        assert (f"{kind}=FILE" in detail, sha256((bundles / name).read_bytes()) in detail) == (
            True,
            True,
        )
    (bundles / "crlf.de").write_bytes((bundles / "test.de").read_bytes().replace(b"\n", b"\r\n"))
    assert (
        checked(nmt("verify", "bare.zip", "reference=crlf.de").out, "same")
        >= {"reference"} | scores
    )


def test_translating_again_counts_and_shows_changed_lines(nmt, bundles, finished, checkpoint):
    def change(files: Files, stated: dict[str, Any]) -> None:
        lines = files["hypotheses.de"].decode().splitlines()
        lines[3], lines[7] = "ganz anders", "auch \x1b[31manders"
        files["hypotheses.de"] = "".join(f"{line}\n" for line in lines).encode()

    outcome = nmt("verify", "bare.zip", "source=test.en", "reference=test.de", f"run={finished}")
    assert outcome.code == 0, outcome.out + outcome.err
    assert results(outcome.out)["translations"] == ("same", "20 of 20 lines are the same")
    rewritten(change)
    outcome = nmt("verify", "folder", f"run={finished}")
    assert outcome.code == 1
    result, detail = results(outcome.out)["translations"]
    assert (result, detail[:28]) == ("DIFFERS", "18 of 20 lines are the same;")
    assert "line 4: 'ganz anders', here" in detail
    assert "line 8: " in detail
    assert "\x1b" not in outcome.out
    assert {"BLEU", "chrF2"} <= checked(outcome.out, "DIFFERS")
    outcome = nmt("verify", "full.zip", f"run={checkpoint}", "reference=test.en")
    assert (outcome.code, checked(outcome.out, "DIFFERS")) == (1, {"model", "reference"})
    assert results(outcome.out)["BLEU"][0] == "unchecked"


def test_verification_uses_the_stated_engine(nmt, bundles, finished, monkeypatch, tmp_path):
    """With its threads and blocks, which affect last digits; bundles without the record used torch."""
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    search = SEARCH[:2]
    assert (
        nmt(
            "translate",
            str(finished),
            "input=test.en",
            "output=out.de",
            "engine=ctranslate2",
            *search,
        ).code
        == 0
    )
    words = ["output=fast.zip", "text=true", "engine=ctranslate2", "threads=3", *search]
    assert "ctranslate2 float32" in nmt("cite", str(finished), *words).out
    stated = json.loads(contents(Path("fast.zip"))["bundle.json"])
    computation = {
        "engine": "ctranslate2",
        "precision": "float32",
        "threads": 3,
        "block_lines": 2000,
    }
    assert stated["computation"] == computation
    assert "ctranslate2" in stated["versions"]
    assert contents(Path("fast.zip"))["hypotheses.de"] == Path("out.de").read_bytes()
    outcome = nmt("verify", "fast.zip", f"run={finished}")
    assert results(outcome.out)["translations"] == ("same", "20 of 20 lines are the same"), (
        outcome.err
    )
    rewritten(lambda files, stated: stated.pop("computation"))
    assert results(nmt("verify", "folder", f"run={finished}").out)["translations"][0] == "same"


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
    rewritten(lambda files, stated: stated["computation"].update(computation))
    outcome = nmt("verify", "folder", f"run={finished}")
    assert problem in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


def fabricate(files: Files, stated: dict[str, Any]) -> None:
    """References that are the translations, their digest, and scores of these."""
    files["reference.de"] = files["hypotheses.de"]
    stated["texts"]["reference"] = sha256(files["reference.de"])
    lines, best = files["hypotheses.de"].decode().splitlines(), sacrebleu.BLEU()
    stated["scores"][:] = [stated["scores"][0] | {"value": best.corpus_score(lines, [lines]).score}]


def score(key: str, change: Callable[[Any], Any]) -> Edit:
    return lambda files, stated: stated["scores"][0].update({key: change(stated["scores"][0][key])})


def other_source(files: Files, stated: dict[str, Any]) -> None:
    files["source.en"] = files["source.en"].replace(b"a", b"o", 1)
    stated["texts"]["source"] = sha256(files["source.en"])


EDITS: dict[str, tuple[Edit, str]] = {
    # Found with a bundle that contains the test set.
    "a better score": (score("value", lambda value: value * (1 + 1e-11)), "alone"),
    "a signature": (
        score("signature", lambda text: text.replace("case:mixed", "case:lc")),
        "alone",
    ),
    "a version of sacrebleu": (
        score("signature", lambda text: text.replace(sacrebleu.__version__, "1.5.0")),
        "sha256",
    ),
    "a score's metric": (lambda files, stated: stated["scores"][0].update(metric="chrf"), "alone"),
    "fewer lines": (lambda files, stated: stated.update(lines=19), "alone"),
    "no digest of the reference": (lambda files, stated: stated["texts"].pop("reference"), "alone"),
    "one more file": (lambda files, stated: files.update({"reference.fr": b"x\n"}), "alone"),
    "a reference": (
        lambda files, stated: files.update({"reference.de": files["hypotheses.de"]}),
        "alone",
    ),
    "no translations": (lambda files, stated: files.pop("hypotheses.de"), "alone"),
    # Found with the files of the test set.
    "a source with its digest": (other_source, "given"),
    "references with digest and scores": (fabricate, "given"),
    # Found with the model.
    "the digest of the weights": (
        lambda files, stated: stated["model"].update({"model.safetensors": "0" * 64}),
        "run",
    ),
    "the search": (
        lambda files, stated: stated["decode"].update(beam_size=3),
        "unproven",
    ),  # 20 lines stay the same
    # Found by the published SHA-256 alone.
    "the device": (lambda files, stated: stated.update(device="cuda:0, H200"), "sha256"),
    "a score left out": (lambda files, stated: stated["scores"].pop(), "sha256"),
}
"""Edits after which all check sums are made right again, and what it takes to find them."""


@pytest.mark.parametrize("name", EDITS)
def test_edit_is_detected_or_reported_as_unproven(nmt, bundles, finished, name):
    edit, found_by = EDITS[name]
    rewritten(edit)
    alone = nmt("verify", "folder")
    assert (alone.code != 0) == (found_by == "alone"), alone.out
    if alone.code == 0:
        assert alone.out.splitlines()[-1].startswith("unchecked            bundle: ")
    files = ("source=test.en", "reference=test.de")
    if found_by in ("given", "run"):
        assert nmt("verify", "folder", *files).code == int(found_by == "given")
    if found_by == "run":
        assert nmt("verify", "folder", *files, f"run={finished}").code == 1
    if found_by == "sha256":
        assert (
            nmt("verify", "folder", f"sha256={sha256((bundles / 'full.zip').read_bytes())}").code
            == 1
        )


def test_scores_may_differ_by_rounding(nmt, bundles):
    """Python 3.12 adds the logarithms of BLEU with less rounding, and C libraries round logarithms otherwise."""
    rewritten(score("value", lambda value: value * (1 + 2**-50)))
    outcome = nmt("verify", "folder")
    assert outcome.code == 0, outcome.out
    stated, computed = results(outcome.out)["BLEU"][1].split("; computed here BLEU ")
    assert stated != computed
    assert float(stated.split()[0]) == pytest.approx(float(computed.split()[0]), rel=1e-14)


def test_missing_scores_and_files_are_reported(nmt, bundles):
    rewritten(lambda files, stated: (stated["scores"].clear(), files.pop("README.md")))
    outcome = nmt("verify", "folder")
    assert (outcome.code, checked(outcome.out, "MISSING")) == (1, {"scores", "README.md"})


def test_unpacked_bundle_verifies_and_sha256sum_reads_its_sums(nmt, bundles):
    with zipfile.ZipFile("bare.zip") as archive:
        archive.extractall("unpacked")
    digest = sha256((bundles / "bare.zip").read_bytes())
    assert nmt("verify", "unpacked", f"sha256={digest}", "reference=test.de").code == 0
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd="unpacked", check=True)


def test_each_flipped_bit_is_detected(nmt, bundles):
    """Also in names, checksums and dates of the archive itself, and without sha256=."""
    from nmt.errors import NMTError
    from nmt.plugins.results.checks import DIFFERS
    from nmt.plugins.results.options import VerifyConfig
    from nmt.plugins.results.verify import verify

    draw, whole, flipped = random.Random(1), Path("bare.zip").read_bytes(), Path("flipped.zip")

    def difference(place: int) -> str:
        flipped.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :]
        )
        try:
            checks = list(verify(VerifyConfig(str(flipped)), Console(quiet=True)))
        except NMTError as error:
            return f"error: {error}"
        return ", ".join(what for result, what, _ in checks if result == DIFFERS)

    index = whole.index(b"PK\x01\x02")
    for number in range(120):
        place = draw.randrange(index if number % 2 else 0, len(whole))
        problem = difference(place)
        assert problem, place
        # A bit makes it no bundle at all only in the archive's list of its files.
        assert place >= index or not problem.startswith("error"), (place, problem)
    for name, content in contents(Path("bare.zip")).items():
        start = whole.index(content)
        assert all(
            name in difference(start + draw.randrange(len(content))).split(", ") for _ in range(4)
        )
    outcome = nmt("verify", "flipped.zip")
    assert (outcome.code, name in checked(outcome.out, "DIFFERS")) == (1, True)


def test_extra_bytes_are_detected(nmt, bundles):
    whole = (bundles / "bare.zip").read_bytes()
    for content in (b"x" + whole, whole + b"x", whole[:-2] + b"\x01\x00x"):
        Path("bare.zip").write_bytes(content)
        assert nmt("verify", "bare.zip").code != 0
    Path("bare.zip").write_bytes(whole)
    with zipfile.ZipFile("bare.zip", "a") as archive:
        archive.writestr("../outside.txt", "theirs")
    assert "../outside.txt" in checked(nmt("verify", "bare.zip").out, "DIFFERS")
    assert not Path("../outside.txt").exists()


def test_latest_run_is_cited_by_its_own_name(nmt, bundles, finished):
    shutil.copytree(finished, "runs/mine", ignore=shutil.ignore_patterns("checkpoints"))
    Path("runs/latest").symlink_to("mine")
    assert nmt("cite", *SEARCH, "metrics=[bleu]").out.startswith("runs/mine/citation-test.zip\n")
    stated = json.loads(contents(Path("runs/mine/citation-test.zip"))["bundle.json"])
    assert (stated["run"], stated["commands"][1].count("run=runs/mine")) == ("mine", 1)
    refused = nmt("cite", *SEARCH)
    refused.failed("runs/mine/citation-test.zip exists", "output=FILE")
    assert refused.err.startswith("nmt: runs/latest is runs/mine\n")
    Path("runs/mine/environment.json").write_text(f'{{"processor": {2**63}}}')
    outcome = nmt("cite", *SEARCH, "output=other.zip")
    assert (outcome.code, outcome.err.count("environment.json: cannot be read")) == (2, 1)


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
    assert (file["version"], file["license"]) == (nmt_package.__version__, project["license"])
    assert file["keywords"] == project["keywords"]
    assert f"author = {{{{{file['authors'][0]['name']}}}}}" in SOFTWARE
    assert f"title = {{{file['title']}}}".replace(' "', " ``").replace('"}', "''}") in SOFTWARE
    assert SOFTWARE in (root / "README.md").read_text(encoding="utf-8")
