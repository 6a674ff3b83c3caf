"""Puts the migrations into the wheel: what migrates a database must come with the service.

In a clone they lie in ``alembic/``, beside the packages; a wheel has them in ``app/migrations/``, for only what is
in a package is installed.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithMigrations(build_py):
    """Builds the packages, and copies the migrations into one of them."""

    def run(self) -> None:
        """Leaves the packages in the build folder; in an editable installation the clone is looked at itself."""
        super().run()
        if not self.editable_mode:
            place = Path(self.build_lib) / "app" / "migrations"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree("alembic", place, ignore=shutil.ignore_patterns("__pycache__"))


setup(cmdclass={"build_py": WithMigrations})
