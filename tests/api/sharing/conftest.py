"""A Ray cluster for the tests that need one."""

import warnings

import pytest

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_enable_metrics_collection": "0",
}
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80_000_000}


@pytest.fixture(scope="package")
def clusters():
    """The clusters that were started; they are ended after the last test that may need one."""
    made = []
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        for name, value in QUIET.items():
            patch.setenv(name, value)
        pytest.importorskip("ray")  # it reads them once
        warnings.simplefilter("ignore")
        yield made
        for one in made:
            one.shutdown()


@pytest.fixture
def cluster(clusters):
    """Two nodes on loopback, unless a test before has killed them. Nothing leaves this machine."""
    if not clusters or clusters[-1].head_node is None or not clusters[-1].worker_nodes:
        from ray.cluster_utils import Cluster

        if clusters:
            clusters.pop().shutdown()
        head = {**NODE, "include_dashboard": False}
        clusters.append(Cluster(initialize_head=True, head_node_args=head))
        clusters[-1].add_node(**NODE)
    return clusters[-1]
