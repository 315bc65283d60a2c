"""Work that several machines share: the attempts of a run, and the partitions of a table.

Tested elsewhere:
    ray_cluster.py: tests/api/sharing/test_ray_workers.py
"""
