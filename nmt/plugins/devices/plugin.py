"""Translation on several GPUs."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("pool", "devices", "nmt.plugins.devices.pool:on_devices")
