"""ScienceWorld's school experiments with the program's own solutions. Needs Java, and the extra of that name."""

import random
import shutil

from bench.replay.runs import Call, Run, Stream
from examples.scienceworld.environment import SIMPLIFICATIONS, shortened

try:
    from scienceworld import ScienceWorldEnv
except ImportError:  # an extra
    ScienceWorldEnv = None

EXPERIMENTS = (
    "chemistry-mix-paint-secondary-color", "find-animal", "find-living-thing", "find-non-living-thing", "find-plant",
    "identify-life-stages-1", "identify-life-stages-2", "inclined-plane-determine-angle", "lifespan-longest-lived",
    "lifespan-longest-lived-then-shortest-lived", "lifespan-shortest-lived", "measure-melting-point-known-substance",
    "use-thermometer",
)  # fmt: skip
"""Those that the program solves within about a second; of several right things it may pick another each time."""
RUNS = 80
A_DAY = 8
"""Number of runs a day."""


def scienceworld(seed: int) -> Stream:
    """Returns experiments drawn by seed with the program's solutions, walks through doors shortened to their ends."""
    if ScienceWorldEnv is None:
        return Stream("scienceworld", (), "the package scienceworld is not installed: it is an extra of that name")
    if shutil.which("java") is None:
        return Stream("scienceworld", (), "ScienceWorld needs Java, and there is no java on the PATH")
    rng, runs = random.Random(f"{seed}:scienceworld"), []
    game = ScienceWorldEnv("")
    try:
        for place in range(RUNS):
            experiment = rng.choice(EXPERIMENTS)
            game.load(experiment, 0, SIMPLIFICATIONS)
            variation = rng.randrange(game.get_max_variations(experiment))
            game.load(experiment, variation, SIMPLIFICATIONS, generateGoldPath=True)
            text = " ".join(game.get_task_description().split()).removeprefix("Your task is to ")
            calls = tuple(Call("act", action, "done", ok=True) for action in shortened(game.get_gold_action_sequence()))
            runs.append(Run(text, calls, succeeded=True, day=place // A_DAY, kind=experiment))
    finally:
        game.close()
    return Stream("scienceworld", tuple(runs))
