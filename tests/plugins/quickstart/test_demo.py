"""`nmt demo`: the commands of the quickstart, run one after the other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.config import NMTError
from nmt.plugins.quickstart.demo import DemoConfig, Step, name_of_program, run_step, steps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "corpus", "run", "updates"),
    [
        ({}, "quickstart_en_de", "quickstart", 3200),
        ({"target": "fr"}, "quickstart_en_fr", "quickstart-en-fr", 3200),
        ({"source": "ja", "target": "pt-BR"}, "quickstart_ja_pt-BR", "quickstart-ja-pt-BR", 3200),
        ({"max_steps": 2}, "quickstart_en_de", "quickstart-2-updates", 2),
        ({"max_steps": 600}, "quickstart_en_de", "quickstart-600-updates", 600),
    ],
)
def test_commands_agree_on_corpus_and_run(keys, corpus, run, updates, here):
    config = DemoConfig(**keys)
    preprocess, train, translate, score = steps(config)
    assert compose("preprocess", preprocess.words[1:]).data.name == corpus
    experiment = compose("train", train.words[1:])
    assert (experiment.data.name, experiment.name) == (corpus, run)
    assert experiment.trainer.max_steps == updates
    assert translate.words[1:3] == [f"data/{corpus}/test.{config.source}", f"runs/{run}"]
    assert translate.output == Path(f"runs/{run}/test.{config.target}")
    assert score.words[1:3] == [str(translate.output), f"data/{corpus}/test.{config.target}"]


@pytest.mark.parametrize("keys", [{"target": "en"}, {"source": "../x"}, {"target": "d e"}])
def test_impossible_directions_are_refused_before_the_first_step(keys):
    with pytest.raises(NMTError, match=r"^(source|target)=.*: must "):
        DemoConfig(**keys)


def test_a_program_in_the_working_folder_is_not_run(here):
    Path("nmt.py").write_text("print('not nmt')")
    assert run_step(Step(["--version"], Path("version"))) == 0
    assert Path("version").read_text().startswith("nmt ")


@pytest.mark.slow
def test_it_stops_at_the_first_failure(here):
    """pip has no index here, so the first command cannot download the corpus."""
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(here / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(here),
    }
    done = subprocess.run(
        [sys.executable, "-m", "nmt", "demo"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "[1 of 4] nmt preprocess experiment=quickstart\n" in done.stderr
    assert "[2 of 4]" not in done.stderr
    assert "cannot download" in done.stderr
    [problem, advice] = done.stderr.splitlines()[-2:]
    assert problem.startswith("nmt: cannot download")
    assert "the command above" in advice


@pytest.mark.parametrize(
    ("started", "prefix", "expected"),
    [
        ("{here}/bin/nmt", "/usr", "nmt"),
        ("{here}/other/nmt", "/usr", "{here}/other/nmt"),
        (".venv/bin/nmt", "/usr", ".venv/bin/nmt"),
        ("/x/nmt/__main__.py", "/usr", "python -m nmt"),
        ("/x/bin/nmt-toolkit", "/home/u/.cache/uv/archive-v0/AbC", "uvx {option}nmt-toolkit"),
    ],
)
def test_advice_names_the_program_as_the_user_started_it(
    started, prefix, expected, here, monkeypatch
):
    for folder in ("bin", "other"):
        (here / folder).mkdir()
        program = here / folder / "nmt"
        program.touch(0o755)
    monkeypatch.setenv("PATH", str(here / "bin"))
    monkeypatch.setattr(sys, "argv", [started.format(here=here), "demo"])
    monkeypatch.setattr(sys, "prefix", prefix)
    for build, option in (("2.13.0", ""), ("2.13.0+cpu", "--torch-backend cpu ")):
        monkeypatch.setattr("nmt.plugins.quickstart.demo.version", lambda package, v=build: v)
        assert name_of_program() == expected.format(here=here, option=option)
