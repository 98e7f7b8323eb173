"""The requirements of scale=paper, and the list of those that are missing."""

import pytest
import requirements
import torch
from plan import read_options
from reproduce import main, plan
from requirements import expected_flops, gpus, hours

from nmt.files import duration


def options(*words):
    return read_options(["table2", *words])


@pytest.mark.parametrize(
    ("words", "many", "there"),
    [((), 4, True), ((), 6, False), (("devices=4",), 6, True), (("devices=2",), 1, False)],
)
def test_gpus_share_the_papers_eight_micro_batches(words, many, there, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: many)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Loom")
    assert gpus(options(*words))[1] == there


def test_hours_follow_from_the_number_of_operations(monkeypatch):
    """Kaplan et al. 2020: about 6 operations a weight and token; base has 63 M weights, each met by one side's."""
    ((base,),) = plan(options("rows=en-de-base")).values()
    flops = expected_flops(base)
    assert flops == pytest.approx(100_000 * 25_000 * 6 * 63e6, rel=0.1)
    monkeypatch.setattr(requirements, "peak_flops_per_second", lambda device, dtype: 1e14)
    for devices in (1, 8):
        lower_bound = hours(options(f"devices={devices}"), [base])[2]
        assert lower_bound.startswith(f"at least {duration(flops / devices / 1e14)} ")


def test_durations_are_rounded():
    rough = [duration(seconds) for seconds in (0.2, 91, 91 * 60, 12 * 3600, 3 * 86_400)]
    assert rough == ["2 seconds", "2 minutes", "1.5 hours", "12 hours", "3.0 days"]


@pytest.mark.slow
def test_missing_requirements_are_listed_before_anything_starts(here, monkeypatch, capsys):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["all"]) == 2
    out, err = capsys.readouterr()
    first, *lines, last = err.splitlines()
    assert (out, first) == ("", "all scale=paper needs")
    told = [line.split()[:2] for line in lines]
    assert [name for name, _ in told] == [
        "en-de",
        "en-fr",
        "table4",
        "GPUs",
        "disk",
        "time",
        "layers",
    ]
    assert [word for _, word in told[:4]] == ["MISSING"] * 4
    assert "treebank=FOLDER" in lines[2]
    assert "missing here: en-de, en-fr, table4, GPUs" in last
    assert "nothing was started" in last
    assert list(here.iterdir()) == []
