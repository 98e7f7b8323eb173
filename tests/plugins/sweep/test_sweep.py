"""Sweeps: Hydra's grammar as we rely on it, and the commands that train the points."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from nmt.commands import compose
from nmt.config import NMTError, set_text
from nmt.plugins.sweep.sweep import expand, folder_name, plan


def test_the_last_key_changes_first_and_fixed_overrides_keep_their_place():
    points = [words for _, words in expand(["model.heads=1,4", "model=small", "seed=1,2"])]
    assert points == [[f"model.heads={heads}", "model=small", f"seed={seed}"] for heads in (1, 4) for seed in (1, 2)]
    one = ["data.train=[a,b]", "name='x,y'", "seed=3", "data.test=\u00fcber"]
    assert expand(one) == [({}, one)]


def test_values_of_a_sweep():
    for override, expected in (
        ("seed=range(5,1,-2)", ["5", "3"]),
        ("model.d_k=null,16", ["null", "16"]),
        ("data.train='über',\"it's\"", ["über", "it's"]),
        ("data.name=a-${data.source},b", ["a-${data.source}", "b"]),
        ("+trainer.limit=1,2", ["1", "2"]),
    ):
        key = override.split("=")[0]
        points = expand([override])
        assert [values for values, _ in points] == [{key.removeprefix("+"): value} for value in expected]
        for (_, (word,)), value in zip(points, expected, strict=True):
            parsed = OverridesParser.create().parse_override(word)
            assert parsed.get_key_element() == key
            assert not parsed.is_sweep_override()
            if isinstance(parsed.value(), str):
                assert parsed.value() == value


def test_a_mistake_in_any_point_is_one_line():
    for overrides, expected in (
        (["optim.factor=interval(0,1)"], "optim.factor=interval(0,1): list the values in order"),
        (["seed=range(3,1)"], "seed=range(3,1): no value"),
        (["model=small,tinny"], "model=tinny: no such option; did you mean tiny?"),
        (["data.name=a,A"], "data.name=A occurs twice"),
        (["seed=3"], "no key has several values"),
    ):
        with pytest.raises(NMTError) as error:
            plan(overrides)
        assert expected in str(error.value)
        assert "\n" not in str(error.value)


def test_a_point_trains_where_its_configuration_says(tmp_path: Path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/tall.yaml").write_text("name: tall\nencoder_layers: 9\n")
    for overrides, base, names in (
        (["seed=1,2"], "runs/wmt14_en_de-base", ["seed-1", "seed-2"]),
        (["++run=/far/away", "seed=1,2"], "/far/away", ["seed-1", "seed-2"]),
        (["model=tall,tiny"], "runs/wmt14_en_de", ["model-tall", "model-tiny"]),
        (["model.heads=2,4", "name=h-${model.heads}"], "runs/h", ["model.heads-2", "model.heads-4"]),
        (["data=wmt14_en_de,wmt14_en_fr"], "runs/sweep", ["data-wmt14_en_de", "data-wmt14_en_fr"]),
    ):
        points = plan(overrides, tmp_path)
        assert [str(point.run) for point in points] == [f"{base}/{name}" for name in names]
        for point in points:
            *words, option, folder = point.words
            assert (option, folder) == ("--config-dir", str(tmp_path))
            alone = compose("train", words, tmp_path)
            assert alone.run == str(point.run)
            alone.run = point.config.run
            assert alone == point.config


def test_names_are_safe_and_distinct():
    values = [*("a", "a/b", "a_b", "a b", "ä", "ö", "..", "x" * 300, "x" * 301, "[a,b]", "-1", "+1", "", "a\nb")]
    names = {folder_name({"data.train": one, "seed": two}) for one in values for two in values}
    assert len(names) == len(values) ** 2
    for name in names:
        assert len(name) < 255
        assert shlex.quote(name) == name
        assert set_text("run", f"runs/mine/{name}") == f"run=runs/mine/{name}"


def test_a_sweep_needs_no_corpus_and_no_torch_and_its_lines_pass_through_a_shell(tmp_path: Path):
    script = "import sys\nfrom nmt.cli import main\ntry:\n main()\nfinally:\n assert 'torch' not in sys.modules"
    words = ["seed=1,2", "data.train='it is','it\\'s'", 'data.test="say \\"x\\""', "name='${data.name}'"]
    command = [sys.executable, "-c", script, "train", "--sweep", *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "points").write_text(ended.stdout)
    (tmp_path / "nmt").write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    (tmp_path / "nmt").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for script in (
        "tr '\\n' '\\0' < points | xargs -0 -n 1 -P 1 sh -c",
        'for SLURM_ARRAY_TASK_ID in 1 2 3 4; do (eval "exec $(sed -n "${SLURM_ARRAY_TASK_ID}p" points)"); done',
    ):
        ended = subprocess.run(script, shell=True, cwd=tmp_path, env=environment, capture_output=True, check=True)
        assert [json.loads(line) for line in ended.stdout.splitlines()] == [["train", *p.words] for p in plan(words)]
