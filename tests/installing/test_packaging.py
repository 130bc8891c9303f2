"""What is shipped: a wheel that works in an empty environment, and a clean sdist."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import armwise as aw
from armwise.version import __version__

ROOT = Path(__file__).parents[2]
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")

pytestmark = pytest.mark.slow


def run(*words: object, **options: object) -> subprocess.CompletedProcess:
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stderr
    return done


def tracked() -> set[str]:
    """Name the files of the checkout: what git has, or would take."""
    if not (ROOT / ".git").exists():
        pytest.skip("not in a checkout, so what belongs to the project is not known")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard",
                 cwd=ROOT)  # fmt: skip
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_its_data(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    prefix = "src/armwise/"
    expected = {name.removeprefix("src/") for name in tracked() if prefix in name}
    assert expected <= held
    assert all(name.startswith(("armwise/", f"armwise-{__version__}")) for name in held)
    assert {"armwise/arms/bundled/panda.toml", "armwise/py.typed"} <= held
    assert "armwise/__init__.pyi" in held  # the public names are read from it
    assert not any(name.startswith(("armwise/papers", "papers")) for name in held)


def test_the_sdist_holds_the_project_and_nothing_else(built):
    (path,) = built.glob("*.tar.gz")
    top = f"armwise-{__version__}/"
    with tarfile.open(path) as archive:
        held = {name.removeprefix(top) for name in archive.getnames()}
    assert held - tracked() <= {"PKG-INFO"}
    assert {"README.md", "LICENSE", "pyproject.toml", "src/armwise/__init__.py"} <= held
    assert {"papers/experiments.toml", "papers/catalogue.py"} <= held


def outside(folder: Path) -> dict[str, object]:
    """Stand outside the checkout, with nothing of it in sight."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "ARMWISE_DEBUG")
    return {
        "cwd": folder,
        "env": {k: v for k, v in os.environ.items() if k not in hidden},
    }


def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    environment, work = tmp_path / "environment", tmp_path / "work"
    work.mkdir()
    python, armwise = environment / "bin/python", environment / "bin/armwise"
    constraints = ("-c", ROOT / "constraints.txt")
    run(sys.executable, "-m", "venv", environment)
    run(python, *PIP, *constraints, wheel)
    identifies_from_csv_and_urdf(armwise, work)
    names_the_extra_of_the_demo(armwise, work)
    asks_for_a_checkout(armwise, work)
    run(python, *PIP, *constraints, f"{wheel}[sim]")
    told = json.loads(run(armwise, "demo", "--json", **outside(work)).stdout)
    assert max(told["validation"]["relative_error"]) < 0.1
    assert (work / "armwise-demo" / "report.html").exists()


def identifies_from_csv_and_urdf(armwise: Path, folder: Path) -> None:
    aw.save_arm(aw.load_arm("puma560"), folder / "arm.urdf")
    for seed in (1, 2):
        words = ("simulate", "arm.urdf", "--seed", seed, "-o", f"run{seed}.csv")
        run(armwise, *words, **outside(folder))
    words = ("identify", "arm.urdf", "run1.csv", "--validate", "run2.csv", "-o", "out")
    told = json.loads(run(armwise, *words, "--json", **outside(folder)).stdout)
    assert max(told["validation"]["relative_error"]) < 0.05
    assert all((folder / path).exists() for path in told["files"].values())


def names_the_extra_of_the_demo(armwise: Path, folder: Path) -> None:
    missing = run(armwise, "doctor", "--json", **outside(folder)).stdout
    assert "pip install 'armwise[sim]'" in missing
    done = subprocess.run(
        [armwise, "demo"], capture_output=True, text=True, **outside(folder)
    )
    assert done.returncode == 1
    assert "pip install 'armwise[sim]'" in done.stderr
    assert not (folder / "armwise-demo").exists()


def asks_for_a_checkout(armwise: Path, folder: Path) -> None:
    """Ask for papers and benchmarks; a folder of that name alone is not a checkout."""
    (folder / "papers").mkdir()
    for word, part in (("papers", "papers/"), ("bench", "benchmarks/")):
        done = subprocess.run(
            [armwise, word], capture_output=True, text=True, **outside(folder)
        )
        assert done.returncode == 1
        assert f"{part} comes with the source tree" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    offered = outside(folder)
    offered["env"] |= {
        "_ARMWISE_COMPLETE": "complete_bash",
        "COMP_WORDS": "armwise papers a",
        "COMP_CWORD": "2",
    }
    done = run(armwise, **offered)
    assert (done.stdout.split(), done.stderr) == ([], "")
