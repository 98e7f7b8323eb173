"""Search turns torch's deterministic mode off: some operations have no such kernel on GPUs."""

import pytest
import torch

from nmt.config import DecodeConfig
from nmt.search import TorchEngine
from tests.core.test_search import A, B, tiny_model

MODES = {"default": 0, "warn": 1, "error": 2}


@pytest.fixture(params=MODES)
def mode(request):
    """The mode that training has set, as a number."""
    is_on, warns = request.param != "default", request.param == "warn"
    torch.use_deterministic_algorithms(is_on, warn_only=warns)
    yield MODES[request.param]
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def seen(monkeypatch):
    """An engine, and the modes in which its model runs."""
    model, modes = tiny_model(), list[int]()
    for name in ("step", "decode"):
        method = getattr(model, name)

        def spy(*arguments, method=method):
            modes.append(torch.get_deterministic_debug_mode())
            return method(*arguments)

        monkeypatch.setattr(model, name, spy)
    return TorchEngine([model], DecodeConfig(do_sample=True, top_p=0.9, max_extra_length=3)), modes


@pytest.mark.parametrize("scores", [False, True])
def test_the_mode_is_off_while_an_engine_works_and_is_restored(mode, seen, scores):
    engine, modes = seen
    if scores:
        engine.token_scores([([A, B], [B])])
    else:
        engine.search([[A, B]], [[]])
    assert modes
    assert set(modes) == {0}
    assert torch.get_deterministic_debug_mode() == mode


def test_the_mode_is_restored_after_an_error(mode, seen, monkeypatch):
    engine, _ = seen
    monkeypatch.setattr(engine.models[0], "step", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.search([[A, B]], [[]])
    assert torch.get_deterministic_debug_mode() == mode
