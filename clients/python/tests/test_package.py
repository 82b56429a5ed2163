# SPDX-License-Identifier: Apache-2.0
"""The package as people install it, used as its README says."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import Broker

import cryptobroker

PROJECT = Path(__file__).parents[1]
PROGRAMS = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(PROJECT))
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with the wheel and what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("venv")
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    interpreter = str(folder / "bin" / "python")
    packages = Path(sys.prefix) / "wheels"  # hack/tools/venv has put them there
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", interpreter]
    _run(*pip, "install", "--no-index", "--find-links", str(packages), str(wheel))
    return interpreter


def _run(*command: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("number", "want"),
    [
        (0, f"sha-256 {hashlib.sha256(b'abc').hexdigest()}\n"),
        (1, f"{[hashlib.sha256(b'%d' % n).hexdigest()[:8] for n in range(3)]}\n"),
        (2, "4711 boxes\n"),
        (3, "a text of any size\n"),
    ],
)
def test_the_programs_of_the_readme_run_with_the_wheel_alone(
    python: str, shared: Broker, number: int, want: str
) -> None:
    assert _run(python, "-c", PROGRAMS[number], CRYPTO_BROKER_SOCKET=shared.socket) == want


def test_each_program_of_the_readme_is_run() -> None:
    assert len(PROGRAMS) == 4


def test_the_wheel_has_types_a_license_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "cryptobroker/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if "test" in name]


def test_the_license_is_the_one_of_the_project() -> None:
    assert (PROJECT / "LICENSE").read_text() == (PROJECT.parents[1] / "LICENSE").read_text()


def test_both_clients_have_the_same_documented_methods() -> None:
    def methods(kind: type) -> dict[str, tuple[str | None, list[str]]]:
        return {
            name: (method.__doc__, list(inspect.signature(method).parameters))
            for name, method in inspect.getmembers(kind, callable)
            if not name.startswith("_")
        }

    threads, coroutines = methods(cryptobroker.Client), methods(cryptobroker.AsyncClient)
    assert threads == coroutines
    assert all(documentation for documentation, _ in threads.values())
    assert threads["hash_data"][1] == ["self", "input", "profile", "timeout"]
    assert inspect.signature(cryptobroker.Client.hash_data).return_annotation == "HashDataResult"
