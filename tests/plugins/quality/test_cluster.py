"""`cluster=ray` with a calibrated model."""

from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.plugins.cluster.worker import BlockWorker, WorkerFacts
from nmt.translation import TranslationWork


@pytest.mark.parametrize("beam_size", [4, 1])
def test_a_worker_sends_the_notices_of_its_stages(calibrated: Path, here, capsys, beam_size):
    """The command prints those of the first worker."""
    words = [f"run={calibrated}", "input=in", "output=out", "engine=torch", "device=cpu"]
    config = compose("translate", [*words, "minimum=0.5", f"decode.beam_size={beam_size}"])
    facts = BlockWorker(TranslationWork(config, config.cluster_options)).load()
    assert isinstance(facts, WorkerFacts)
    notice = "decode.beam_size=1: the probabilities were calibrated with 4"
    assert facts.notices.count(notice) == (beam_size == 1)
    assert "calibrated with" not in capsys.readouterr().err
