"""A run records where it resumed in an environment that may compute other bits."""

import os
import subprocess
import sys
from typing import Any

import pytest

from nmt.training.environments import has_other_environment


def state_of(
    devices: str, reduction: str, micro_batches: int = 8, **environment: str
) -> dict[str, Any]:
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
        # The number counts where gradients are added in another order.
        (state_of("1 x cpu", "fast"), state_of("2 x cpu", "fast"), True),
        (state_of("2 x cpu", "fast"), state_of("1 x cpu", "fast"), True),
        (state_of("2 x cpu", "fast"), state_of("4 x cpu", "fast"), True),
        (state_of("1 x cpu", "exact"), state_of("2 x cpu", "exact"), False),
        (state_of("4 x cpu", "exact"), state_of("2 x cpu", "exact"), False),
        (state_of("1 x cpu", "exact", 6), state_of("4 x cpu", "exact", 6), True),
        # An older nmt recorded less.
        (state_of("1 x cpu", "fast"), state_of("1 x cpu", "fast", processor="A"), False),
        (
            state_of("1 x cpu", "fast", processor="A"),
            state_of("1 x cpu", "fast", processor="B"),
            True,
        ),
    ],
)
def test_has_other_environment(before: dict[str, Any], now: dict[str, Any], is_other: bool) -> None:
    assert has_other_environment(before, now) == is_other


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have another OpenMP")
@pytest.mark.parametrize(
    ("variables", "refused"),
    [
        ({}, ""),
        ({"OMP_THREAD_LIMIT": "2", "OMP_DYNAMIC": "false", "OMP_MAX_ACTIVE_LEVELS": "1"}, ""),
        ({"OMP_THREAD_LIMIT": "1"}, "OMP_THREAD_LIMIT=1: torch computes wrong results"),
        ({"OMP_DYNAMIC": "true"}, "OMP_DYNAMIC=true: torch computes wrong results"),
        ({"OMP_MAX_ACTIVE_LEVELS": "0"}, "OMP_MAX_ACTIVE_LEVELS=0: torch computes wrong results"),
        ({"OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "1"}, ""),  # one thread is never fewer
    ],
)
def test_settings_that_change_the_number_of_threads_are_refused(variables, refused):
    names = ("OMP_THREAD_LIMIT", "OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", "from nmt import kernels; kernels.prepare()"],
        env={**environment, "OMP_NUM_THREADS": "2", **variables},
        capture_output=True,
        text=True,
    )
    assert (done.returncode != 0) == bool(refused)
    assert refused in done.stderr
