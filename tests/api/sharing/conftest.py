"""A Ray cluster for the tests that need one."""

import os
import warnings

import pytest

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_enable_metrics_collection": "0",
}
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80_000_000}


@pytest.fixture(scope="module")
def cluster():
    """Two nodes on loopback. Nothing leaves this machine."""
    os.environ.update(QUIET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster_utils = pytest.importorskip("ray.cluster_utils")
        made = cluster_utils.Cluster(
            initialize_head=True, head_node_args={**NODE, "include_dashboard": False}
        )
        made.add_node(**NODE)
        yield made
        made.shutdown()
    for name in QUIET:
        del os.environ[name]
