"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "assay",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("assay")
