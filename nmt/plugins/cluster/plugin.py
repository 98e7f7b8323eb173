"""Bulk jobs on a Ray cluster, such as `nmt translate FILES output=FILES cluster=ray`."""

from nmt.extensions import Add, ClusterEntry, OptionsEntry


def register(add: Add) -> None:
    here = "nmt.plugins.cluster"
    add(ClusterEntry("ray", f"{here}.job:run_on_ray", check=f"{here}.pool:check_installed"))
    add(OptionsEntry("cluster.ray", "nmt.plugins.cluster.options:RayConfig"))
