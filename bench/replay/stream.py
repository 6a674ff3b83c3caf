"""The streams of ``python -m bench replay``, each drawn by a seed alone.

Some solutions of ScienceWorld's program are the exception: of several right things it may pick another each time.

Orders and their settings are chosen on TUNING_SEEDS; REPORT_SEEDS are for reports. Made-up worlds draw other tasks for
each seed. The recorded ones (banking77, tau) draw a sample or an order from the same rows for all seeds, and telecom's
runs have one order, that of time. BabyAI takes about twenty seconds and ScienceWorld about a minute; the others take
less than one second each.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.lessons import BESIDE_THE_REPOSITORY
from bench.replay.babyai.missions import babyai
from bench.replay.houses import houses
from bench.replay.recorded import TAU, banking77, tau
from bench.replay.runs import Call, Run, Stream
from bench.replay.schools import scienceworld
from bench.replay.support import support, support_changed

__all__ = ["REPORT_SEEDS", "STREAMS", "TUNING_SEEDS", "Call", "Run", "Stream", "streams"]

TUNING_SEEDS = (0, 1, 2)
REPORT_SEEDS = (100, 101, 102, 103, 104)

Draw = Callable[[int, Path], Stream]
"""Draws a stream by seed, and reads the folder of data if the stream needs it."""

STREAMS: Mapping[str, Draw] = {
    "support": lambda seed, _: support(seed),
    "support_changed": lambda seed, _: support_changed(seed),
    "houses": lambda seed, _: houses(seed),
    "houses_error": lambda seed, _: with_first_error(houses(seed)),
    "banking77": banking77,
    "babyai": lambda seed, _: babyai(seed),
    "scienceworld": lambda seed, _: scienceworld(seed),
    **{f"tau_{domain}": partial(tau, domain) for domain in TAU},
}
"""Each stream by name."""


def with_first_error(stream: Stream) -> Stream:
    """Returns the stream as it is asked once a call has failed: with the task and that call's error."""
    errors = [next((str(call.output) for call in run.calls if not call.ok), "") for run in stream.runs]
    runs = (replace(run, task=f"{run.task}\n{error}") for run, error in zip(stream.runs, errors, strict=True))
    return replace(stream, name=f"{stream.name}_error", runs=tuple(runs))


def streams(seed: int, data: Path | None = None) -> list[Stream]:
    """Returns all streams of a seed, those that this machine cannot build with the reason.

    Args:
        seed: the seed.
        data: folder of data; None: the one beside the repository.
    """
    return [draw(seed, data or BESIDE_THE_REPOSITORY) for draw in STREAMS.values()]
