"""Partitions measured on a Ray cluster, one task a file. The numbers are those of one machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pennyweight.api.sharing.ray_cluster import address_of, check_installed, connect
from pennyweight.errors import UsageError
from pennyweight.scoring.large.partition import MeasuredPartition, PartitionJob, put_together
from pennyweight.scoring.pipeline import Scoring, Take
from pennyweight.sources.loader import Loaded
from pennyweight.sources.objects import ObjectSource
from pennyweight.sources.source import FileSource, Source

AHEAD = 2
"""How many partitions are under way for each processor: results wait for those before them."""


@dataclass(frozen=True, slots=True)
class RayPartitions:
    """Measures the files of a table as tasks of a Ray cluster."""

    address: str | None
    by: tuple[str, ...]

    def __call__(self, work: Scoring, sources: Sequence[Source], take: Take) -> Loaded:
        """Measure all partitions; the first error of one ends the others."""
        ray = connect(self.address)
        try:
            job = PartitionJob(work.request, self.by)
            return put_together(work, sources, self._measured(ray, job, sources), take)
        finally:
            ray.shutdown()

    @staticmethod
    def _measured(
        ray: Any, job: PartitionJob, sources: Sequence[Source]
    ) -> Iterator[MeasuredPartition]:
        """Yield the partitions in the order of the sources."""
        job = replace(job, request=replace(job.request, progress=None))
        remote = ray.remote(_measure).options(num_cpus=1, scheduling_strategy="SPREAD")
        room = max(2, AHEAD * int(ray.cluster_resources().get("CPU", 1)))
        waiting: deque[Any] = deque()
        for source in sources:
            waiting.append(remote.remote(job, source))
            if len(waiting) >= room:
                yield _result(ray, waiting.popleft())
        while waiting:
            yield _result(ray, waiting.popleft())


def _measure(job: PartitionJob, source: Source) -> MeasuredPartition:
    return job(source)


def _result(ray: Any, reference: Any) -> MeasuredPartition:
    try:
        found: MeasuredPartition = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    return found


def ray_partitions(
    on: str, sources: Sequence[Source], by: Sequence[str], alone: str = ""
) -> RayPartitions:
    """Return how `--on` measures sources; refuse those that other machines cannot read.

    `alone` names an option that only works on this machine.
    """
    address = address_of(on)
    if alone:
        raise UsageError(f"{alone} does not work with --on ray; omit one of them.")
    if other := next(
        (one for one in sources if not isinstance(one, FileSource | ObjectSource)), None
    ):
        raise UsageError(
            f"--on ray measures the files of a table; {other.name} is none. "
            "'pennyweight export RUN --partition-by subject,tier -o FOLDER' writes a run as one."
        )
    if not all(one.rereadable for one in sources):
        raise UsageError("--on ray measures files; write standard input to one first.")
    check_installed("Without it, score reads the same table on this machine.")
    return RayPartitions(address, tuple(by))
