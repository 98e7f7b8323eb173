"""Sweeps: Hydra's grammar as we rely on it, where points train, and what a sweep does about those that fail or stop."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from preloaded import python

import nmt.plugins.sweep.sweep as sweep_module
from nmt.commands import compose
from nmt.config import NMTError, set_text, to_tree
from nmt.plugins.sweep.sweep import expand, folder_name, plan, quality


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


def test_a_dry_run_needs_no_corpus_and_no_torch_and_its_lines_pass_through_a_shell(tmp_path: Path):
    script = "import sys\nfrom nmt.cli import main\ntry:\n main()\nfinally:\n assert 'torch' not in sys.modules"
    words = ["seed=1,2", "data.train='it is','it\\'s'", 'data.test="say \\"x\\""', "name='${data.name}'"]
    command = [sys.executable, "-c", script, "train", "--sweep", "--dry-run", *words]
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


def test_a_higher_bleu_or_f1_is_better_and_then_a_lower_loss():
    figures = [("30.5", "2.0"), ("9.5", "1.0"), ("9.5", "1.5"), ("9.5", "nan"), ("", "0.5"), ("", "0.7")]
    rows = [{"valid_bleu": value, "valid_f1": "", "valid_loss": loss} for value, loss in figures]
    assert sorted([*rows[3:], *rows[:3]], key=quality, reverse=True) == rows


# A fast stand-in for `nmt train`. Seed 3 fails until a file mends it; with the file "slow", seed 2 waits for a signal
# and records the signals that it received.
FAKE = """
import json, os, signal, sys, time
from pathlib import Path
from nmt.commands import compose

got = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: got.append(number))
config = compose("train", sys.argv[1:])
run = Path(config.run)
(run / "checkpoints").mkdir(parents=True, exist_ok=True)
(run / "starts").open("a").write("x")
if config.seed == 3 and not Path("mended").exists():
    sys.exit("seed 3 is broken")
(run / "checkpoints" / "step=00000010.ckpt").touch()
if config.seed == 2 and Path("slow").exists():
    Path("waiting").touch()
    while not got:
        time.sleep(0.01)
    time.sleep(0.2)
    (run / "signals").write_text(" ".join(map(str, got)))
    sys.exit(130)
(run / "checkpoints" / "step=00000060.ckpt").touch()
header = "step,loss,valid_loss,valid_perplexity,valid_bleu"
reports = [header, "20,,9,9,9", f"60,,2.3456,10.4321,{20 + config.seed}", "60,1,,,", ""]
(run / "metrics.csv").write_text("\\n".join(reports))
(run / "model").mkdir()
corpus = json.loads((Path(config.prepared) / "manifest.json").read_text())["fingerprint"]
(run / "model" / "config.json").write_text(json.dumps({"training": {"updates": 60, "corpus": corpus}}))
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake.py").write_text(FAKE)
    monkeypatch.setattr(sweep_module, "TRAIN", [python(), str(tmp_path / "fake.py")])
    monkeypatch.setenv("PYTHONPATH", str(Path(sweep_module.__file__).parents[3]))


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def starts(folder: Path) -> list[int]:
    """The number of processes that each point was given."""
    return [len((point / "starts").read_text()) for point in sorted(folder.glob("seed-*"))]


@pytest.mark.usefixtures("fake")
def test_a_failed_point_is_named_and_tried_again_and_finished_ones_are_not(toy, nmt):
    command = ["train", "--sweep", *toy, "seed=range(1,4)", "name=mine"]
    ended = nmt(*command)
    assert ended.code == 1
    for words in ("point 1 of 3: seed=1\n", "seed=3 failed with exit code 1\n", "1 of 3 points failed (seed=3)"):
        assert words in ended.err
    folder = Path("runs/mine")
    states = [[row[key] for key in ("state", "best", "updates", "valid_bleu")] for row in table(folder)]
    assert states == [["done", "", "60", "21"], ["done", "best", "60", "22"], ["failed", "", "0", ""]]
    assert [row["run"] for row in table(folder)] == [f"runs/mine/seed-{seed}" for seed in (1, 2, 3)]
    assert Path("runs/latest").resolve() == (folder / "seed-2").resolve()
    Path("mended").touch()
    ended = nmt(*command)
    assert ended.code == 0
    assert "point 2 of 3: seed=2: already trained" in ended.err
    assert starts(folder) == [1, 1, 2]
    head, *rows = [line.split() for line in ended.out.splitlines()]
    assert head == ["seed", "updates", "loss", "perplexity", "bleu", "state", "best"]
    assert rows == [[f"{n}", "60", "2.346", "10.43", f"2{n}.00", "done", *["best"] * (n == 3)] for n in (1, 2, 3)]
    assert Path("runs/latest").readlink() == Path("mine/seed-3")


@pytest.mark.usefixtures("fake")
def test_a_run_of_another_configuration_or_corpus_stops_a_sweep_before_it_starts(toy, nmt):
    Path("mended").touch()
    command = ["train", "--sweep", *toy, "seed=range(1,4)", "name=mine"]
    assert nmt(*command).code == 0
    run = Path("runs/mine/seed-3")
    other = compose("train", [*toy, "seed=3", "model.dropout=0.5"])
    (run / "config.yaml").write_text(yaml.safe_dump(to_tree(other)))
    nmt(*command).refused("runs/mine/seed-3 has a different configuration", "model.dropout: 0.5 -> 0.2")
    nmt("train", "--sweep", *toy, "seed=4,5", "data.valid_size=7").refused("prepared with a different configuration")
    assert starts(Path("runs/mine")) == [1, 1, 1]
    (run / "config.yaml").unlink()
    (Path("runs/mine/seed-1/model") / "config.json").write_text('{"training": {"updates": 60, "corpus": "other"}}')
    assert "already trained" not in nmt(*command).err.splitlines()[0]
    assert starts(Path("runs/mine")) == [2, 1, 1]


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("number", "other", "group"), [(signal.SIGINT, signal.SIGTERM, True), (signal.SIGTERM, signal.SIGINT, False)]
)
def test_a_stopped_sweep_lets_its_point_save_and_resumes_later(toy, nmt, number, other, group):
    Path("mended").touch()
    Path("slow").touch()
    command = ["train", "--sweep", *toy, "seed=2,3", "name=mine"]
    lines = ["from nmt.plugins.sweep import sweep", "from nmt.cli import main", f"sweep.TRAIN = {sweep_module.TRAIN!r}"]
    command_line = [sys.executable if group else python(), "-c", "\n".join([*lines, "main()"]), *command]
    with subprocess.Popen(command_line, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            deadline = time.monotonic() + 120
            while not Path("waiting").exists():
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            os.killpg(process.pid, number) if group else process.send_signal(number)
            errors = process.communicate(timeout=120)[1]
        finally:
            os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
    assert process.returncode == 128 + number, errors
    assert "the same command resumes" in errors
    assert not any(word in errors for word in ("Traceback", "failed"))
    folder = Path("runs/mine")
    got = (folder / "seed-2" / "signals").read_text().split()
    assert sorted(map(int, got)) == (sorted((number, other)) if group else [other])
    assert [(row["state"], row["updates"]) for row in table(folder)] == [("stopped", "10"), ("not started", "0")]
    if group:
        Path("slow").unlink()
        assert nmt(*command).code == 0
        assert starts(folder) == [2, 1]
