"""The doctor: looks at everything that a support person would ask about, and says what to do."""

from app.doctor.examine import CHECKS, examine
from app.doctor.finding import Finding

__all__ = ["CHECKS", "Finding", "examine"]
