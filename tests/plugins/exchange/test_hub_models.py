"""hub:ORG/NAME wherever a run is named, with the huggingface_hub library and a local server."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nmt.files import read_description
from tests.conftest import Outcome, save_model
from tests.helpers.hub_commands import run_commands, user_environment
from tests.helpers.hub_server import FakeHub, fake_hub

MODEL = "someone/words"
SENTENCE = "ka lo mi nu"
CARD = "---\nlicense: cc-by-4.0\n---\n# Words\n"


@pytest.fixture(scope="module")
def hub(word_model, tmp_path_factory) -> Iterator[FakeHub]:
    """A hub with a model directory of nmt, beside files that nmt must not download."""
    folder = tmp_path_factory.mktemp("published") / "model"
    shutil.copytree(word_model, folder)
    (folder / "README.md").write_text(CARD)
    (folder / "run.py").write_text("raise SystemExit('code of a stranger')")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "ctranslate2-float32").mkdir()
    (folder / "ctranslate2-float32/model.bin").write_bytes(b"an export")
    with fake_hub() as hub:
        hub.add(MODEL, folder)
        yield hub


@pytest.fixture(scope="module")
def environment(hub, tmp_path_factory) -> dict[str, str]:
    return user_environment(tmp_path_factory.mktemp("home"), hub.url)


@pytest.fixture(scope="module")
def place(tmp_path_factory, word_model) -> Path:
    """A working directory with a test set and a local copy of the model."""
    place = tmp_path_factory.mktemp("place")
    shutil.copytree(word_model, place / "local")
    lines = "".join(f"ka {word} lo mi\n" for word in ("nu", "pe", "ri", "so", "tu"))
    (place / "test.en").write_text(lines)
    (place / "test.de").write_text(lines)
    return place


TEST_SET = ["source=test.en", "reference=test.de"]
COMMANDS = {
    "local": ["translate", SENTENCE, "run=local"],
    "translate": ["translate", SENTENCE, f"run=hub:{MODEL}"],
    "positional": ["translate", SENTENCE, f"hub:{MODEL}"],
    "branch": ["translate", SENTENCE, f"hub:{MODEL}@main"],
    "ensemble": ["translate", SENTENCE, f"hub:{MODEL}", "local"],
    "list": ["translate", SENTENCE, f"run=[hub:{MODEL},local]"],
    "file": ["translate", "test.en", f"hub:{MODEL}", "output=test.out"],
    "score": ["score", f"run=hub:{MODEL}", "source=test.en", "hypothesis=test.de"],
    "score local": ["score", "run=local", "source=test.en", "hypothesis=test.de"],
    "compare": ["compare", f"hub:{MODEL}", "local", *TEST_SET, "resamples=100", "trials=100"],
    "named": ["compare", f"a=hub:{MODEL}", "b=local", *TEST_SET, "resamples=100", "trials=100"],
    "export": ["export", f"hub:{MODEL}", "format=huggingface", "output=exported"],
    "attention": ["attention", SENTENCE, f"hub:{MODEL}"],
    "config": ["config", f"hub:{MODEL}"],
    "cite": ["cite", f"hub:{MODEL}", *TEST_SET, "output=citation-test.zip", "text=true"],
    "verify": ["verify", "citation-test.zip", f"run=hub:{MODEL}"],
    "synthesize": ["synthesize", "test.en", f"hub:{MODEL}", "output=synthetic"],
    "no output": ["export", f"hub:{MODEL}", "format=huggingface"],
    "parse": ["parse", SENTENCE, f"hub:{MODEL}"],
    "extend": ["extend", f"hub:{MODEL}", "output=more", "languages=[it]", "like=[de]"],
    "serve": ["serve", f"hub:{MODEL}", "host=0.0.0.0"],
    "import": ["import", f"hub:{MODEL}", "output=imported"],
}


@pytest.fixture(scope="module")
def outcomes(hub, environment, place) -> dict[str, Outcome]:
    outcomes = run_commands([*COMMANDS.values()], place, environment)
    return dict(zip(COMMANDS, outcomes, strict=True))


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("translate", "local"),
        ("positional", "local"),
        ("branch", "local"),
        ("ensemble", "local"),
        ("list", "local"),
        ("score", "score local"),
    ],
)
def test_a_model_of_the_hub_works_like_a_folder(name, same, outcomes):
    assert outcomes[name].code == 0, outcomes[name].err
    assert outcomes[name].out == outcomes[same].out != ""


@pytest.mark.parametrize(
    "name",
    ["file", "compare", "named", "export", "attention", "config", "cite", "verify", "synthesize"],
)
def test_commands_that_name_a_model(name, outcomes):
    assert outcomes[name].code == 0, outcomes[name].err


def test_the_commit_is_reported(outcomes, hub):
    commit = hub.branches[MODEL, "main"]
    first, second = (outcomes[name].err.splitlines() for name in ("translate", "positional"))
    assert first[0].startswith("downloading ")
    assert first[1] == second[0] == f"hub:{MODEL} is commit {commit}"
    assert "downloading" not in outcomes["positional"].err


def test_only_the_files_of_a_model_directory_are_downloaded_once(outcomes, hub):
    names = ["config.json", "tokenizer.model", "model.safetensors", "README.md"]
    assert hub.names_requested() == names


def test_a_bundle_names_the_commit(outcomes, hub, place):
    commit = hub.branches[MODEL, "main"]
    with zipfile.ZipFile(place / "citation-test.zip") as archive:
        statement = json.loads(archive.read("bundle.json"))
    assert statement["run"] == f"hub:{MODEL}@{commit}"
    assert f"run=hub:{MODEL}@{commit}" in statement["commands"][0]
    assert "same" in outcomes["verify"].out


def test_an_export_is_not_written_into_the_cache(outcomes, hub, environment, place):
    outcomes["no output"].failed("output: name a folder")
    commit = hub.branches[MODEL, "main"]
    cached = Path(environment["XDG_CACHE_HOME"]) / "nmt/hub" / MODEL / commit
    visible = sorted(path.name for path in cached.iterdir() if not path.name.startswith("."))
    assert visible == ["README.md", "config.json", "model.safetensors", "tokenizer.model"]
    assert (place / "exported/config.json").is_file()


def test_a_command_that_refuses_a_model_names_it(outcomes):
    outcomes["parse"].failed(f"run=hub:{MODEL}: translates")
    outcomes["extend"].failed("has no tags")
    outcomes["import"].failed(f"hub:{MODEL}: is a model of nmt", f"run=hub:{MODEL}")
    outcomes["serve"].refused("without a key")


@pytest.mark.slow
def test_offline_the_cache_is_used(outcomes, hub, environment, place):
    commit = hub.branches[MODEL, "main"]
    hub.requests.clear()
    offline = {**environment, "HF_HUB_OFFLINE": "1"}
    commands = [COMMANDS["translate"], ["translate", SENTENCE, f"hub:{MODEL}@{commit}"]]
    branch, exact = run_commands(commands, place, offline)
    assert branch.out == exact.out == outcomes["local"].out
    assert f"using commit {commit}" in branch.err
    assert "is commit" not in branch.err + exact.err
    assert hub.requests == []


@pytest.mark.slow
def test_a_partial_translation_resumes_only_with_the_same_model(outcomes, hub, environment, place):
    """The identity has the hashes of the files, so a new version under the same name starts anew."""
    from nmt.model import load_model
    from nmt.text import read_tokenizer

    assert (place / "test.out").read_text().count("\n") == 5
    model = load_model(place / "local")
    with_other_weights = save_model(place / "other", model, read_tokenizer(place / "local"))
    new = hub.add("someone/new", with_other_weights)
    [done] = run_commands(
        [["translate", "test.en", "hub:someone/new", "output=test.out"]], place, environment
    )
    done.failed("test.out")
    assert f"is commit {new}" in done.err


@pytest.mark.slow
def test_the_python_api_loads_it(outcomes, environment, place):
    import subprocess
    import sys

    program = f"import nmt; print(nmt.load('hub:{MODEL}', engine='torch').translate('{SENTENCE}'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == outcomes["local"].out


@pytest.fixture(scope="module")
def strangers(hub, word_model, environment, tmp_path_factory) -> dict[str, Outcome]:
    """What translating with hostile or other repositories gives."""
    parent = tmp_path_factory.mktemp("strangers")

    def publish(name: str, change: Callable[[Path], None]) -> None:
        shutil.copytree(word_model, parent / name)
        change(parent / name)
        hub.add(f"stranger/{name}", parent / name)

    def make_transformers(folder: Path) -> None:
        (folder / "config.json").write_text('{"model_type": "marian"}')

    publish("transformers", make_transformers)
    publish("checkpoint", lambda folder: (folder / "tokenizer.model").unlink())
    publish("half", lambda folder: (folder / "model.safetensors").unlink())
    publish("pickle", lambda folder: (folder / "model.safetensors").rename(folder / "model.bin"))
    publish("large", lambda folder: (folder / "config.json").write_bytes(b" " * (2**20 + 1)))
    publish("later", lambda folder: (folder / "config.json").write_text('{"format_version": 99}'))
    publish("lying", lambda folder: None)
    hub.sizes["stranger/lying"] = 10**15
    publish("longer", lambda folder: None)
    hub.sizes["stranger/longer"] = 10
    commands = [["translate", SENTENCE, f"hub:stranger/{name}"] for name in STRANGERS]
    outcomes = run_commands(commands, parent, environment)
    return dict(zip(STRANGERS, outcomes, strict=True))


STRANGERS = {
    "transformers": ["is not a model directory of nmt", "nmt import hub:stranger/transformers"],
    "checkpoint": ["is not a model directory of nmt", "nmt import hub:stranger/checkpoint"],
    "half": ["contains no model directory of nmt (no model.safetensors)"],
    "pickle": ["contains no model directory of nmt (no model.safetensors)"],
    "large": ["config.json has 1.0 MB"],
    "later": ["config.json", "version 99"],
    "lying": ["config.json has 1000.0 TB"],
    "longer": ["config.json was not downloaded as the hub lists it"],
    "missing": ["no such repository", "hf auth login"],
    "../../etc": ["must be hub:ORG/NAME"],
}


@pytest.mark.parametrize("name", STRANGERS)
def test_other_repositories_are_refused_in_one_line(name, strangers):
    strangers[name].refused(*STRANGERS[name])


@pytest.mark.slow
def test_names_that_lead_elsewhere_are_not_used(hub, word_model, environment, place, outcomes):
    """The server lists them, but nmt asks for the files of a model directory only."""
    content = {path.name: path.read_bytes() for path in word_model.iterdir() if path.is_file()}
    hostile = {"../../../escaped": b"x", "/etc/escaped": b"x", "con/../escaped": b"x"}
    hub.commit("stranger/names", "main", {**hostile, **content})
    [done] = run_commands([["translate", SENTENCE, "hub:stranger/names"]], place, environment)
    assert done.out == outcomes["local"].out
    assert not [*Path(environment["XDG_CACHE_HOME"]).parent.rglob("*escaped*")]


@pytest.mark.slow
def test_an_endless_file_is_stopped_at_its_size(hub, word_model, environment, place, outcomes):
    hub.add("stranger/endless", word_model)
    hub.is_endless = True
    command = ["translate", SENTENCE, "hub:stranger/endless"]
    [done] = run_commands([command], place, environment)
    hub.is_endless = False
    done.failed("hub:stranger/endless: tokenizer.model was not downloaded as the hub lists it")
    # What the library reads at once, and what the network holds.
    assert hub.sent < 2**26
    assert not [*Path(environment["XDG_CACHE_HOME"]).rglob("*.incomplete")]
    [done] = run_commands([command], place, environment)
    assert done.out == outcomes["local"].out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_other_content_of_the_same_size_is_refused(
    name, hub, word_model, environment, place, outcomes
):
    """The hub lists the SHA-256 of large files, and git's SHA-1 of the others."""
    hub.add(f"damaged/{name}", word_model)
    hub.damage = lambda content: content[:-1] + bytes([content[-1] ^ 1])
    hub.damaged = (name,)
    command = ["translate", SENTENCE, f"hub:damaged/{name}"]
    [done] = run_commands([command], place, environment)
    hub.damage = None
    done.failed(f"{name} was not downloaded as the hub lists it")
    [done] = run_commands([command], place, environment)
    assert done.out == outcomes["local"].out


@pytest.mark.slow
def test_an_interrupted_download_is_no_model(hub, word_model, environment, place, outcomes):
    hub.add("someone/interrupted", word_model)
    hub.is_cut = True
    command = ["translate", SENTENCE, "hub:someone/interrupted"]
    [done] = run_commands([command], place, environment)
    hub.is_cut = False
    done.failed("hub:someone/interrupted: cannot be downloaded", "repeat the command")
    hub.requests.clear()
    # Without the hub, there is nothing to use.
    [done] = run_commands([command], place, {**environment, "HF_HUB_OFFLINE": "1"})
    done.failed("HF_HUB_OFFLINE is set")
    [done] = run_commands([command], place, environment)
    assert done.out == outcomes["local"].out
    # What the first command had downloaded is kept.
    assert "config.json" not in hub.names_requested()


@pytest.mark.slow
def test_what_the_cache_lacks_is_downloaded_again(hub, word_model, environment, place, outcomes):
    commit = hub.add("someone/cached", word_model)
    command = ["translate", SENTENCE, "hub:someone/cached"]
    cache = Path(environment["XDG_CACHE_HOME"]) / "nmt/hub/someone/cached"
    # A process was killed after a download, before it compared the file with its hash.
    weights = cache / commit / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(bytes((word_model / "model.safetensors").stat().st_size))
    [done] = run_commands([command], place, environment)
    assert done.out == outcomes["local"].out
    # A user has deleted a file.
    weights.unlink()
    hub.requests.clear()
    [done] = run_commands([command], place, environment)
    assert done.out == outcomes["local"].out
    assert hub.names_requested() == ["model.safetensors"]


@pytest.mark.slow
def test_two_processes_download_a_model_once(hub, word_model, environment, place, outcomes):
    """As the processes of one training do."""
    hub.add("someone/both", word_model)
    hub.requests.clear()
    command = ["translate", SENTENCE, "hub:someone/both"]
    with ThreadPoolExecutor(2) as pool:
        both = [*pool.map(lambda _: run_commands([command], place, environment), range(2))]
    assert [done.out for [done] in both] == [outcomes["local"].out] * 2
    assert sorted(hub.names_requested()) == sorted(set(hub.names_requested()))


@pytest.mark.slow
def test_a_model_of_the_hub_is_trained_further(hub, toy, trained, environment, place):
    """The new model names the repository, the commit and the license that it came from."""
    commit = hub.add("someone/toy", trained(*toy, "trainer.max_steps=20") / "model")
    commands = [
        ["train", *toy, "init=hub:someone/toy", "run=further", "trainer.max_steps=20"],
        ["preprocess", *toy, "init=hub:someone/toy", "prepared=prepared-again"],
    ]
    for done in run_commands(commands, place, environment):
        assert done.code == 0, done.err
        assert f"hub:someone/toy is commit {commit}" in done.err
    record = read_description(place / "further/model").record
    assert (record.base_model, record.revision) == ("someone/toy", commit)
    weights = hub.head("someone/toy")["model.safetensors"]
    assert record.init == hashlib.sha256(weights).hexdigest()
