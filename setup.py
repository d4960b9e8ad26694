"""Thin on purpose: everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
DBT_PACKAGE = "dbt_ivm/dbt_package"


class BuildWithMacros(build_py):
    """Copy the dbt package (macros and its project file) into the Python package of a wheel."""

    def run(self) -> None:
        super().run()
        target = Path(self.build_lib) / DBT_PACKAGE
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(ROOT / "macros", target / "macros")
        shutil.copy2(ROOT / "dbt_project.yml", target / "dbt_project.yml")


# package_dir makes editable installs visible to dbt's plugin scan, which lists importable modules by path
setup(cmdclass={"build_py": BuildWithMacros}, package_dir={"": "."})
