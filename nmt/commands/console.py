"""The console that commands talk to people on."""

from typing import TYPE_CHECKING

from nmt.training.processes import is_first_process

if TYPE_CHECKING:
    from rich.console import Console


def talker() -> "Console":
    """Standard error, which leaves lines whole; of several processes only the first one talks."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=not is_first_process())
