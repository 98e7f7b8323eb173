"""A run records where it resumed in an environment that may compute other bits."""

from typing import Any

import pytest

from nmt.training.environments import has_other_environment


def state_of(devices: str, reduction: str, micro_batches: int = 8, **environment: str) -> dict[str, Any]:
    """The part of a checkpoint's entry "nmt" that names the environment."""
    return {
        "devices": devices,
        "versions": {"torch": "2.13.0"},
        "config": {
            "batching": {"micro_batches": micro_batches},
            "trainer": {"reduction": reduction},
        },
        "environment": environment,
    }


@pytest.mark.parametrize(
    ("before", "now", "is_other"),
    [
        (state_of("1 x cpu", "fast"), state_of("1 x cpu", "fast"), False),
        (state_of("1 x cpu", "fast"), state_of("1 x cuda", "fast"), True),
        # The number counts where gradients are added in another order, whichever side has one device.
        (state_of("1 x cpu", "fast"), state_of("2 x cpu", "fast"), True),
        (state_of("2 x cpu", "fast"), state_of("1 x cpu", "fast"), True),
        (state_of("2 x cpu", "fast"), state_of("4 x cpu", "fast"), True),
        (state_of("1 x cpu", "exact"), state_of("2 x cpu", "exact"), False),
        (state_of("4 x cpu", "exact"), state_of("2 x cpu", "exact"), False),
        (state_of("1 x cpu", "exact", 6), state_of("4 x cpu", "exact", 6), True),
        # An older nmt recorded less.
        (state_of("1 x cpu", "fast"), state_of("1 x cpu", "fast", processor="A"), False),
        (state_of("1 x cpu", "fast", processor="A"), state_of("1 x cpu", "fast", processor="B"), True),
    ],
)
def test_another_environment_is_found(before: dict[str, Any], now: dict[str, Any], is_other: bool) -> None:
    assert has_other_environment(before, now) == is_other
