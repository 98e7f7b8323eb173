"""`nmt import hub:ORG/NAME` with the huggingface_hub library and a local server."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nmt.config import NMTError
from nmt.files import read_description
from nmt.plugins.exchange.hub_files import SMALL_FILES, weights_among
from nmt.plugins.exchange.hub_names import HubName, in_bytes, parse
from tests.conftest import Outcome
from tests.helpers.hub_server import FakeHub, fake_hub
from tests.helpers.multilingual import as_stored_in_2022, write_folder

NLLB = "facebook/nllb-tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHARDS = [f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)]
CARD = "---\nlicense: cc-by-nc-4.0\n---\n# NLLB\n"
PROGRAM = """
import json
import sys
from nmt.cli import main

for line in sys.stdin:
    sys.argv = ["nmt", *json.loads(line)]
    try:
        main()
    except SystemExit as stopped:
        print(stopped.code, flush=True)
    print("end of command", file=sys.stderr, flush=True)
"""
"""Run a command for each line of standard input."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model with its weights in both formats, and files that nmt does not read."""
    pytest.importorskip("transformers")
    parent = tmp_path_factory.mktemp("hub")
    write_folder(parent / "new", "nllb")
    as_stored_in_2022(parent / "new", parent / "old")
    folder = parent / "new"
    (folder / "pytorch_model.bin").write_bytes((parent / "old/pytorch_model.bin").read_bytes())
    (folder / "tf_model.h5").write_bytes(b"weights of another library")
    (folder / "run.py").write_text("raise SystemExit('code of a stranger')")
    (folder / "README.md").write_text(CARD)
    return folder


@pytest.fixture(scope="module")
def hub(folder) -> Iterator[FakeHub]:
    with fake_hub() as hub:
        hub.add(NLLB, folder)
        yield hub


@pytest.fixture(scope="module")
def environment(hub, tmp_path_factory) -> dict[str, str]:
    """The variables of a user who has downloaded nothing yet."""
    home = tmp_path_factory.mktemp("home")
    variables = {**os.environ, "HF_ENDPOINT": hub.url}
    variables["HF_HOME"] = str(home / "huggingface")
    variables["XDG_CACHE_HOME"] = str(home / "cache")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        variables.pop(name, None)
    return variables


@pytest.fixture
def run(environment, here) -> Callable[..., Outcome]:
    """`nmt import` in a new process, because the library reads its variables once."""

    def run(*words: str, **variables: str) -> Outcome:
        command = [sys.executable, "-m", "nmt", "import", *words, "verify=false"]
        done = subprocess.run(
            command, env={**environment, **variables}, capture_output=True, text=True
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.mark.slow
def test_the_import_is_that_of_the_folder_and_is_downloaded_once(folder, hub, run, nmt):
    commit = hub.branches[NLLB, "main"]
    done = run(f"hub:{NLLB}", "output=first")
    assert done.code == 0, done.err
    assert done.out == (
        f"first: hub:{NLLB}, trained by fairseq or transformers, license cc-by-nc-4.0, commit {commit}\n"
    )
    [line] = done.err.splitlines()
    assert line.startswith("downloading ")
    assert line.endswith(f"B from hub:{NLLB}")
    names = hub.names_requested()
    assert names[0] == "config.json"
    assert names[-1] == "model.safetensors"
    # Each once; neither the other format, nor what nmt does not read.
    read = {*SMALL_FILES, "model.safetensors"}
    assert sorted(names) == sorted(path.name for path in folder.iterdir() if path.name in read)

    assert nmt("import", str(folder), "output=other", "verify=false").code == 0
    for name in ("model.safetensors", "tokenizer.model"):
        assert Path("first", name).read_bytes() == Path("other", name).read_bytes()
    record = read_description(Path("first")).record
    assert (record.base_model, record.revision) == (NLLB, commit)
    assert record.license == "cc-by-nc-4.0"
    card = Path("first/README.md").read_text()
    assert f"base_model: {NLLB}\n" in card
    assert f"({NLLB}, commit {commit})" in card

    hub.requests.clear()
    done = run(f"path=hub:{NLLB}", "output=second")
    assert (done.code, done.err) == (0, "")
    # Only the commit of the branch is asked for.
    assert not [request for request in hub.requests if "/resolve/" in request]
    assert Path("second/config.json").read_bytes() == Path("first/config.json").read_bytes()

    hub.requests.clear()
    done = run(f"hub:{NLLB}", "output=third", HF_HUB_OFFLINE="1")
    assert done.code == 0
    assert "HF_HUB_OFFLINE is set" in done.err
    assert f"using commit {commit}" in done.err
    # A hash needs no answer of the hub, so there is no notice.
    unreachable = "http://127.0.0.1:9"
    done = run(f"hub:{NLLB}@{commit}", "output=fourth", HF_ENDPOINT=unreachable)
    assert (done.code, done.err, hub.requests) == (0, "", [])


DAMAGES = {"short": lambda content: content[:1000], "other": lambda content: content[::-1]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_download_is_replaced(folder, hub, run, environment, kind):
    hub.add(f"damaged/{kind}", folder)
    name = f"hub:damaged/{kind}"
    hub.damage = DAMAGES[kind]
    try:
        done = run(name, "output=model")
    finally:
        hub.damage = None
    assert done.code == 2
    assert "model.safetensors was not downloaded as the hub lists it" in done.err
    assert not Path("model").exists()
    assert run(name, "output=model").code == 0
    assert Path("model/model.safetensors").is_file()
    # A user may delete any part of the cache.
    cache = Path(environment["XDG_CACHE_HOME"]) / "nmt/hub/damaged" / kind
    shutil.rmtree(cache / hub.branches[f"damaged/{kind}", "main"])
    assert run(name, "output=again").code == 0


@pytest.mark.slow
def test_a_revision_is_another_model(folder, hub, run, tmp_path):
    """It is named like a pull request, and only has weights in PyTorch's format."""
    as_stored_in_2022(folder, tmp_path / "old")
    commit = hub.add(NLLB, tmp_path / "old", branch="refs/pr/1")
    hub.requests.clear()
    done = run(f"hub:{NLLB}@refs/pr/1", "output=model")
    assert done.code == 0, done.err
    assert read_description(Path("model")).record.revision == commit != hub.branches[NLLB, "main"]
    assert "pytorch_model.bin" in hub.names_requested()


@pytest.mark.slow
def test_a_broken_connection_is_reported_and_the_next_command_continues(hub, run, tmp_path):
    cache = str(tmp_path / "cache")
    hub.is_cut = True
    done = run(f"hub:{NLLB}", "output=model", XDG_CACHE_HOME=cache)
    hub.is_cut = False
    done.failed(f"hub:{NLLB}: cannot be downloaded", "repeat the command")
    assert done.err.count("\n") == 2
    assert not Path("model").exists()
    hub.requests.clear()
    assert run(f"hub:{NLLB}", "output=model", XDG_CACHE_HOME=cache).code == 0
    assert hub.names_requested() == ["model.safetensors"]


@pytest.mark.slow
def test_a_gated_model_needs_a_token(hub, run, tmp_path):
    cache = str(tmp_path / "cache")
    hub.token = "hf_secret"
    done = run(f"hub:{NLLB}", "output=model", XDG_CACHE_HOME=cache)
    done.refused(f"hub:{NLLB}: requires permission", "hf auth login", "HF_TOKEN")
    done = run(f"hub:{NLLB}", "output=model", XDG_CACHE_HOME=cache, HF_TOKEN=hub.token)
    hub.token = None
    assert done.code == 0, done.err


@pytest.mark.slow
def test_without_a_network(run):
    done = run("hub:some/model", "output=model", HF_ENDPOINT="http://127.0.0.1:9")
    done.refused("hub:some/model: cannot be downloaded", "refused", "check the network")
    done = run("hub:some/model", "output=model", HF_HUB_OFFLINE="1")
    done.refused("hub:some/model: cannot be downloaded (HF_HUB_OFFLINE is set)", "unset it")


ERRORS = {
    "hub:facebook/missing": ["no such repository, or no access", "hf auth login", "HF_TOKEN"],
    f"hub:{NLLB}@missing": [f"hub:{NLLB}@missing: has no revision missing; pass a branch, tag"],
    "hub:a--b/c": ["hub:a--b/c: ", "--"],
    "hub:../../etc/passwd": ["hub:../../etc/passwd: must be hub:ORG/NAME"],
    "hub:a/b/c": ["hub:a/b/c: must be hub:ORG/NAME"],
    "hub:large/model": ["hub:large/model: needs 2000.0 TB, but", "XDG_CACHE_HOME"],
    "hub:other/data": ["hub:other/data: contains no model in the format of transformers"],
    "hub:other/gpt2": ["hub:other/gpt2: model_type=gpt2: must be one of marian, m2m_100, mbart"],
    NLLB: [f"{NLLB}: no such file or folder; to download it, pass hub:{NLLB}"],
}
"""What to import, and parts of the error."""


@pytest.fixture(scope="module")
def errors(hub, folder, environment, tmp_path_factory) -> dict[str, Outcome]:
    """The outcome of each import, from a single process, because a start takes seconds."""
    parent = tmp_path_factory.mktemp("errors")
    for name, model_type in (("large", "marian"), ("gpt2", "gpt2"), ("data", None)):
        (parent / name).mkdir()
        if model_type:
            (parent / name / "config.json").write_text(json.dumps({"model_type": model_type}))
            (parent / name / "model.safetensors").write_text(name)
    hub.add("other/data", parent / "data")
    hub.add("other/gpt2", parent / "gpt2")
    (parent / "large/pytorch_model.bin").write_text("")
    hub.add("large/model", parent / "large")
    hub.sizes["large/model"] = 10**15
    lines = [json.dumps(["import", name, "output=model"]) for name in ERRORS]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=parent,
        env={**environment, "XDG_CACHE_HOME": str(parent / "cache")},
        input="\n".join(lines),
        capture_output=True,
        text=True,
    )
    codes = done.stdout.split()
    messages = done.stderr.split("end of command\n")
    assert not (parent / "model").exists()
    return {
        name: Outcome(int(code), "", message)
        for name, code, message in zip(ERRORS, codes, messages[:-1], strict=True)
    }


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake_is_one_line(name, errors):
    errors[name].refused(*ERRORS[name])


def test_weights_of_an_unsupported_model_are_not_downloaded(errors, hub):
    gets = [request for request in hub.requests if request.startswith("GET /other/gpt2/")]
    assert [request.rpartition("/")[2] for request in gets] == ["config.json"]
    assert not [request for request in hub.requests if request.startswith("GET /large/")]


@pytest.mark.slow
def test_other_commands_do_not_load_the_library():
    """A folder that does not exist stands for any folder."""
    program = f"import sys\n{PROGRAM}\nprint(*sys.modules)"
    lines = [json.dumps(words) for words in (["--help"], ["import", "folder", "output=model"])]
    done = subprocess.run(
        [sys.executable, "-c", program], input="\n".join(lines), capture_output=True, text=True
    )
    modules = done.stdout.splitlines()[-1].split()
    assert "nmt.plugins.exchange.hub_download" in modules
    assert "huggingface_hub" not in modules


@pytest.mark.parametrize(
    ("name", "repository", "revision"),
    [
        ("hub:facebook/nllb-200-3.3B", "facebook/nllb-200-3.3B", "main"),
        ("hub:a/b@main", "a/b", "main"),
        ("hub:a/b@refs/pr/1", "a/b", "refs/pr/1"),
        (f"hub:a/b@{COMMIT}", "a/b", COMMIT),
    ],
)
def test_names(name, repository, revision):
    assert parse(name) == HubName(repository, revision)
    assert parse(str(parse(name))) == HubName(repository, revision)


@pytest.mark.parametrize(
    "name",
    [
        "hub:",
        "hub:a",
        "hub:/a/b",
        "hub:a/..",
        "hub:a/b@",
        "hub:a/b@../c",
        "hub:a/b@-x",
        "hub:a/b@c\nd",
    ],
)
def test_names_that_could_lead_elsewhere(name):
    with pytest.raises(NMTError, match="must be hub:ORG/NAME"):
        parse(name)


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (["pytorch_model.bin", "rust_model.ot"], ["pytorch_model.bin"]),
        (
            ["pytorch_model.bin.index.json", *SHARDS, "pytorch_model-old.bin"],
            ["pytorch_model.bin.index.json", *SHARDS],
        ),
        (
            ["model.safetensors.index.json", "model-00001-of-00001.safetensors", *SHARDS],
            ["model.safetensors.index.json", "model-00001-of-00001.safetensors"],
        ),
        (["flax_model.msgpack"], []),
    ],
)
def test_one_format_of_the_weights(names, weights):
    assert weights_among(names) == weights


@pytest.mark.parametrize(
    ("number", "words"), [(999, "999 bytes"), (1000, "1.0 KB"), (2_460_000_000, "2.5 GB")]
)
def test_sizes(number, words):
    assert in_bytes(number) == words
