"""Trainings of a demo whose reports are written out."""

from dataclasses import dataclass

from app.demo.learning import TrainingReport


@dataclass
class Trainings:
    """Answers one report after the other."""

    reports: list[TrainingReport]

    async def train(self) -> TrainingReport:
        return self.reports.pop(0)
