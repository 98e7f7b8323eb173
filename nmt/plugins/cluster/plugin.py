"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("options", "translate.ray", "nmt.plugins.cluster.config:RayConfig")
    add("option", "translate --ray", "nmt.plugins.cluster.config:RAY")
    add("option", "synthesise --ray", "nmt.plugins.cluster.config:RAY")
    add("pool", "devices", "nmt.plugins.cluster.devices:on_devices")
