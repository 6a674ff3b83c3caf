"""The doctor: checks the machine, the settings, the database and the memory, and advises on each fault."""

from app.doctor.examine import examine
from app.doctor.installation import CheckResult

__all__ = ["CheckResult", "examine"]
