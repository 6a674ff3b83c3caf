"""The doctor: checks the machine, the settings, the database and the memory, and advises on each fault."""

from app.doctor.examine import CHECKS, examine
from app.doctor.finding import Finding

__all__ = ["CHECKS", "Finding", "examine"]
