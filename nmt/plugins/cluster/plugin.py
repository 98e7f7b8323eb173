"""Bulk jobs on a Ray cluster, such as `nmt translate FILES output=FILES cluster=ray`."""

from nmt.extensions import Add, ClusterEntry, OptionsEntry


def register(add: Add) -> None:
    add(ClusterEntry("ray", "nmt.plugins.cluster.job:run_on_ray"))
    add(OptionsEntry("cluster.ray", "nmt.plugins.cluster.options:RayConfig"))
