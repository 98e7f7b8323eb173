"""Translation on several GPUs, and a watch over processes that train together."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("pool", "devices", "nmt.plugins.devices.pool:on_devices")
    add("start", "devices", "nmt.plugins.devices.watch:follow_first_process")
    add("watch", "devices", "nmt.plugins.devices.watch:watched")
