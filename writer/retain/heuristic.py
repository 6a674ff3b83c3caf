"""The reward that a run suggests by itself: a guess by rule, which whatever anybody says later outweighs."""

from writer.run import FinishedRun

UNRESOLVED_DISCOUNT = 0.5
"""What the reward is multiplied by when some tool's last call was an error."""

_OUTCOME_REWARD = {"success": 1.0, "partial": 0.5, "failure": 0.0, "aborted": 0.0}


def heuristic_reward(run: FinishedRun) -> float:
    """Returns the reward, 0 to 1, that the outcome and the tool errors suggest (SOURCES row C10).

    Success 1, partial 0.5, failure and aborted 0; half of that when a tool was left on an error. An error
    that a later call of the same tool made good is how agents work, and costs nothing.
    """
    last = {trace.tool: trace.status for trace in run.tool_traces}
    discount = UNRESOLVED_DISCOUNT if "error" in last.values() else 1.0
    return _OUTCOME_REWARD[run.outcome] * discount
