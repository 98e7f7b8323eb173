"""`nmt push` with the huggingface_hub library and a local server."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard

from nmt.config import NMTError
from nmt.files import model_card, read_description
from nmt.files.front_matter import front_matter
from nmt.plugins.exchange.hub_contents import local_paths
from nmt.plugins.exchange.hub_names import HubName
from nmt.plugins.exchange.hub_upload import is_export
from nmt.plugins.exchange.published_card import PublishedExport, published_card, with_license
from tests.conftest import Outcome
from tests.helpers.hub_commands import run_commands, user_environment
from tests.helpers.hub_server import FakeHub, fake_hub

SENTENCE = "ka lo mi nu"
MODEL_FILES = ["README.md", "config.json", "model.safetensors", "tokenizer.model"]
NAME = "me/words"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with fake_hub() as hub:
        hub.users["hf_mine"] = "me"
        yield hub


@pytest.fixture
def place(tmp_path, word_model) -> Path:
    """A working directory with a run, whose model has other files beside it."""
    run = tmp_path / "runs/words"
    shutil.copytree(word_model, run / "model")
    (run / "config.yaml").write_text("secret: 1\n")
    (run / "checkpoints").mkdir()
    (run / "checkpoints/step=00000001.ckpt").write_bytes(b"a checkpoint")
    (run / "model/notes.txt").write_text("do not publish")
    (run / "model/old-export").mkdir()
    return tmp_path


@pytest.fixture
def environment(hub, place) -> dict[str, str]:
    """The variables of a user who is logged in as `me`."""
    return {**user_environment(place / "home", hub.url), "HF_TOKEN": "hf_mine"}


@pytest.fixture
def push(place, environment) -> Callable[..., list[Outcome]]:
    """Run commands as this user."""

    def push(*commands: list[str], **variables: str) -> list[Outcome]:
        return run_commands([*commands], place, {**environment, **variables})

    return push


@pytest.mark.slow
def test_a_round_trip(hub, push, place):
    """Publish a model, translate with it by name, and publish it again."""
    local, dry, done, used, again, changed = push(
        ["translate", SENTENCE, "runs/words"],
        ["push", "runs/words", NAME, "--dry-run"],
        ["push", "runs/words", NAME, "license=cc-by-4.0"],
        ["translate", SENTENCE, f"hub:{NAME}"],
        ["push", "runs/words", NAME, "license=cc-by-4.0"],
        ["push", "runs/words/model", NAME, "license=mit", "message=Another license"],
    )
    assert dry.code == 0, dry.err
    assert [line.split()[-1] for line in dry.out.splitlines()[:-1]] == sorted(
        MODEL_FILES, key=["config.json", "tokenizer.model", "model.safetensors", "README.md"].index
    )
    assert dry.out.splitlines()[-1].startswith("4 files, ")
    assert "the license is unknown; set it with license=ID" in dry.err
    assert "not uploaded: notes.txt, old-export" in dry.err

    assert done.code == 0, done.err
    assert f"hub:{NAME} (new, public)" in done.out
    # Only the files that stay: no bars without a terminal, and nothing about the license.
    assert done.err == "notice: not uploaded: notes.txt, old-export\n"
    commits = [*hub.commits[NAME]]
    # The first is the hub's own.
    assert len(commits) == 3
    assert hub.messages[0].startswith("Model from en to de, uploaded with nmt ")
    url, commit, command = done.out.splitlines()[-3:]
    assert (url, commit) == (f"{hub.url}/{NAME}", f"commit {commits[1]}")
    assert command == f"nmt translate run=hub:{NAME} < input.en"

    pushed = hub.commits[NAME][commits[1]]
    assert sorted(pushed) == [".gitattributes", *MODEL_FILES]
    for name in MODEL_FILES[1:]:
        assert pushed[name] == (place / "runs/words/model" / name).read_bytes()

    assert used.out == local.out != ""
    assert f"hub:{NAME} is commit {commits[1]}" in used.err

    assert again.code == 0, again.err
    assert f"hub:{NAME} has these files already, so there is no new commit" in again.out
    assert f"commit {commits[1]}" in again.out
    assert changed.code == 0, changed.err
    assert hub.messages[1:] == ["Another license"]
    assert b"license: mit" in hub.head(NAME)["README.md"]


@pytest.mark.slow
def test_the_card_is_read_by_the_hubs_library(hub, push):
    [done] = push(["push", "runs/words", NAME, "license=cc-by-4.0", "private=true"])
    assert done.code == 0, done.err
    assert NAME in hub.private
    text = hub.head(NAME)["README.md"].decode()
    data = ModelCard(text).data
    assert data.license == "cc-by-4.0"
    assert data.library_name == "nmt-toolkit"
    assert data.pipeline_tag == "translation"
    assert data.language == ["en", "de"]
    assert f"nmt translate run=hub:{NAME} < input.en" in text
    assert f'nmt.load("hub:{NAME}")' in text
    assert "THIS_FOLDER" not in text
    assert "| License | cc-by-4.0 |" in text


def test_scores_in_the_card_have_their_signature(finished):
    """As the hub shows them."""
    description = read_description(finished / "model")
    text = front_matter(description, "nmt")
    card = ModelCard(text)
    [result] = card.data.eval_results
    score = description.record.score
    assert score is not None
    assert result.task_type == "translation"
    assert (result.metric_type, result.metric_name) == ("bleu", "BLEU")
    assert result.metric_args == {"signature": score["signature"]}
    assert result.metric_value == round(score["value"], 2)
    assert card.data.metrics == ["bleu"]
    # The library writes the same metadata again.
    assert yaml.safe_load(card.data.to_yaml()) == yaml.safe_load(text.split("---")[1])


REFUSALS = {
    "you/words": ["you may not write to repositories of you", "rights"],
    "me/bert": ["the model of another program", "overwrite=true"],
    "me/pickle": ["another model (pytorch_model.bin)", "overwrite=true"],
    "me/fairseq": ["files of another program (dict.en.txt)", "overwrite=true"],
}
"""Repository -> parts of the error."""


@pytest.mark.slow
def test_repositories_that_are_refused(hub, push):
    hub.commit("me/bert", "main", {"config.json": b'{"model_type": "bert"}'})
    hub.commit("me/pickle", "main", {"pytorch_model.bin": b"x"})
    hub.commit("me/fairseq", "main", {"dict.en.txt": b"x", "model.pt": b"x"})
    before = {name: [*commits] for name, commits in hub.commits.items()}
    outcomes = push(*(["push", "runs/words", name, "license=mit"] for name in REFUSALS))
    for done, parts in zip(outcomes, REFUSALS.values(), strict=True):
        done.failed(*parts)
        # What is noted before the upload.
        assert all(line.startswith("notice: ") for line in done.err.splitlines()[:-1])
    assert {name: [*commits] for name, commits in hub.commits.items()} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "parts"),
    [
        ({"HF_TOKEN": ""}, ["not logged in", "hf auth login", "HF_TOKEN"]),
        ({"HF_TOKEN": "hf_old"}, ["does not accept your token", "hf auth login"]),
        ({"HF_HUB_OFFLINE": "1"}, ["HF_HUB_OFFLINE is set", "unset it"]),
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, ["check the network"]),
    ],
)
def test_without_a_login_or_a_network(variables, parts, hub, push):
    [done] = push(["push", "runs/words", NAME], **variables)
    done.refused(*parts)
    assert hub.commits == {}


@pytest.mark.slow
def test_mistakes_are_found_before_the_hub_is_asked(hub, push, place):
    (place / "linked").mkdir()
    for name in MODEL_FILES:
        (place / "linked" / name).symlink_to(place / "runs/words/model" / name)
    mistakes = {
        ("runs/words",): "repository",
        ("runs/words", "words"): "must be hub:ORG/NAME",
        ("runs/words", "../../etc"): "must be hub:ORG/NAME",
        ("runs/words", f"{NAME}@dev"): "pass a branch as revision=BRANCH",
        ("runs/words", NAME, f"revision={'a' * 40}"): "must be a branch",
        ("runs/words", NAME, "license=my own"): "must be an identifier",
        ("runs/words", NAME, "export=[onnx]"): "export=[onnx]",
        ("runs/words", NAME, "message=' '"): "must not be empty",
        ("runs/missing", NAME): "no such folder",
        ("linked", NAME): "a link",
    }
    outcomes = push(*(["push", *words] for words in mistakes))
    for done, words in zip(outcomes, mistakes.values(), strict=True):
        done.refused(words)
    assert [request for request in hub.requests if request.startswith("POST")] == []


@pytest.mark.slow
def test_a_branch_and_content_of_others_that_stays(hub, push):
    hub.commit(NAME, "main", {"LICENSE": b"text", "ctranslate2-int8/model.bin": b"old"})
    [done] = push(["push", "runs/words", f"hub:{NAME}", "revision=dev", "license=mit"])
    assert done.code == 0, done.err
    assert "(new branch)" in done.out
    assert done.out.splitlines()[-1] == f"nmt translate run=hub:{NAME}@dev < input.en"
    # The export was that of an earlier model.
    assert sorted(hub.head(NAME, "dev")) == ["LICENSE", *MODEL_FILES]
    assert sorted(hub.head(NAME)) == ["LICENSE", "ctranslate2-int8/model.bin"]
    assert f"files of earlier exports to remove from hub:{NAME}@dev: 1" in done.err


@pytest.mark.slow
def test_a_public_repository_does_not_get_a_private_model(hub, push):
    hub.commit(NAME, "main", {"README.md": b"Hello"})
    hub.commit("me/secret", "main", {"README.md": b"Hello"})
    hub.private.add("me/secret")
    public, private = push(
        ["push", "runs/words", NAME, "private=true"],
        ["push", "runs/words", "me/secret", "private=true", "license=mit"],
    )
    public.refused("private=true", "is public")
    assert sorted(hub.head(NAME)) == ["README.md"]
    assert private.code == 0
    # What its owner has written on the website.
    assert "README.md on the hub is replaced; the old one stays in commit" in private.err


@pytest.mark.slow
def test_an_export_that_needs_options_of_its_own_is_explained(push):
    [done] = push(["push", "runs/words", NAME, "export=[bergamot]", "license=mit", "--dry-run"])
    # The test's model has a shape that this program does not support.
    done.refused("format=bergamot")


@pytest.mark.slow
def test_exports_go_along(hub, push, place, environment):
    pytest.importorskip("ctranslate2")
    pytest.importorskip("transformers")
    [done] = push(["push", "runs/words", NAME, "license=mit", "export=[ctranslate2,huggingface]"])
    assert done.code == 0, done.err
    names = set(hub.head(NAME))
    assert {"ctranslate2-float32/model.bin", "huggingface/model.safetensors"} <= names
    assert {"ctranslate2-float32/README.md", "huggingface/config.json"} <= names
    text = hub.head(NAME)["README.md"].decode()
    assert f'snapshot_download("{NAME}", allow_patterns="ctranslate2-float32/*")' in text
    # The card's programs, as a stranger runs them.
    of_ctranslate2, of_transformers = (
        text.split(f"## {title}\n")[1].split("```python\n")[1].split("```")[0]
        for title in ("CTranslate2", "transformers")
    )
    readme = hub.head(NAME)["ctranslate2-float32/README.md"].decode()
    of_ctranslate2 += readme.split("```python\n")[1].split("```")[0]
    of_transformers += "print(type(model).__name__, len(tokenizer('ka lo').input_ids))"
    outputs = []
    for program in (of_ctranslate2, of_transformers):
        command = [sys.executable, "-c", program]
        run = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    options = ["split=never", "protect=none", "engine=torch"]
    [ours] = push(["translate", "A line.", "runs/words", *options])
    assert outputs[0] == ours.out
    assert outputs[1].startswith("MarianMTModel ")
    # The model in the repository is still nmt's.
    [used, local] = push(
        ["translate", SENTENCE, f"hub:{NAME}"], ["translate", SENTENCE, "runs/words"]
    )
    assert used.out == local.out != ""


CARD = "---\nlanguage:\n- en\nlicense:\n- other\nlicense_name: ours\n---\n# A\n\nMy own words.\n"


@pytest.mark.parametrize(
    "metadata",
    [
        "language: [en\n bad: : yaml",
        "license: &a [*a]",
        "license: !!python/object/apply:os.system [ls]",
        "? [a]: b",
        "d: 2020-99-99",
        "- a list",
    ],
)
def test_damaged_metadata_give_one_line(metadata):
    with pytest.raises(NMTError, match=r"^README\.md: its metadata .*; correct them$"):
        with_license(f"---\n{metadata}\n---\n# A\n", "mit")


def test_what_a_user_wrote_into_the_card_stays():
    name = HubName("a/b", "dev")
    exports = [PublishedExport("ctranslate2", "ctranslate2-int8"), PublishedExport("new", "new")]
    text = published_card(CARD + "run=THIS_FOLDER\n", name, "mit", exports)
    assert yaml.safe_load(text.split("---")[1]) == {"language": ["en"], "license": "mit"}
    assert "# A\n\nMy own words.\nrun=hub:a/b@dev\n" in text
    assert 'snapshot_download("a/b", revision="dev", allow_patterns' in text
    assert "`new/` contains the model for another program" in text


def test_a_card_without_metadata_gets_a_license():
    assert with_license("# A\n", "mit") == "---\nlicense: mit\n---\n\n# A\n"


def test_the_code_in_a_card_is_a_program(word_model, finished, tagged_model):
    for folder in (word_model, finished / "model", tagged_model):
        text = model_card(read_description(folder), 1)
        code = text.split("```python\n")[1].split("```")[0]
        compile(code, "README.md", "exec")


def test_paths_of_this_machine_are_found():
    record = {
        "config": {"data": {"train": "/home/me/corpus", "sources": [{"path": "~/x"}]}},
        "n": 1,
    }
    assert [*local_paths(record)] == ["/home/me/corpus", "~/x"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ctranslate2-int8/model.bin", True),
        ("ctranslate2-float32/README.md", True),
        ("huggingface/config.json", True),
        ("ctranslate2-notes/README.md", False),
        ("huggingface/app.py", False),
        ("huggingface-space/config.json", False),
        ("ctranslate2-int8/more/model.bin", False),
        ("config.json", False),
    ],
)
def test_only_files_of_exports_are_replaced(name, expected):
    assert is_export(name) == expected
