"""Time of a measured act by stage, from the service's own metric."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from bench.measure import Measurement
from retrieval.telemetry import STAGE_SECONDS


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Number and total seconds of each stage in this process."""

    counts: Mapping[str, float]
    seconds: Mapping[str, float]

    @classmethod
    def so_far(cls) -> Self:
        """Returns the times since the process began."""
        counts, seconds = dict[str, float](), dict[str, float]()
        for sample in (sample for metric in STAGE_SECONDS.collect() for sample in metric.samples):
            if sample.name.endswith("_count"):
                counts[sample.labels["stage"]] = sample.value
            if sample.name.endswith("_sum"):
                seconds[sample.labels["stage"]] = sample.value
        return cls(counts, seconds)

    def since(self, before: Self) -> Self:
        """Returns the times added since ``before``."""
        counts = {stage: count - before.counts.get(stage, 0) for stage, count in self.counts.items()}
        seconds = {stage: total - before.seconds.get(stage, 0) for stage, total in self.seconds.items()}
        return type(self)(counts, seconds)

    def of(self, whole: str, parts: Mapping[str, str], title: str = "") -> Iterator[Measurement]:
        """Yields the mean time of each part of a whole stage, and of the rest.

        Args:
            whole: the stage.
            parts: labels of the stages within it, in their order.
            title: name of the whole in the measurements; empty: its own.
        """
        left = self.seconds[whole]
        for stage, name in parts.items():
            left -= self.seconds[stage]
            yield self._part(whole, name, self.seconds[stage], title)
        yield self._part(whole, "the rest", left, title)

    def _part(self, whole: str, name: str, seconds: float, title: str) -> Measurement:
        share = f"{seconds / self.seconds[whole]:.0%} of it, mean of {self.counts[whole]:.0f}"
        return Measurement(f"{title or whole}: {name}", seconds / self.counts[whole] * 1000, "ms", share)
