"""Signatures of a run's errors: the first line of each failed call's error, by which like errors are found."""

from writer.analysis.calls import StoredRun

MOST_SIGNATURES = 20
SIGNATURE_CHARS = 200


def error_signatures(run: StoredRun) -> list[str]:
    """Returns the signatures of a run's errors, each once, in the order of the calls."""
    lines = (call.failure.strip().partition("\n")[0][:SIGNATURE_CHARS] for call in run.calls if call.failure)
    return list(dict.fromkeys(line for line in lines if line))[:MOST_SIGNATURES]
