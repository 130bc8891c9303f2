"""Strangers' robots through every command, from inspect to view.

From a checkout: `make strangers` (all), `make strangers-quick` (a tenth, for CI). Each
robot gets the friction of a real arm where its description has none, and noisy sensors;
two logs of different motions; the model from one is judged on the other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

LIST = Path(__file__).with_suffix(".toml")

LONGEST = 600.0
"""Time in [s] that one robot may take, on a machine that others share."""

COULOMB, VISCOUS = 0.08, 0.05
"""Friction of joints that describe none, as fractions of the largest torque."""

LARGEST_ERROR = 0.05
"""Of the torque of any joint on the second log, as a fraction of its own size."""

STEPS = ("inspect", "simulate", "identify", "written", "export", "generate", "view")


@dataclass(frozen=True)
class Robot:
    """A description and the options that choose a part of it."""

    path: Path
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Two last parts of its path: file names such as robot.xml say little."""
        parts = [p for p in self.path.parts if p not in ("urdf", "robots", "xmls")]
        return "/".join(parts[-2:]) + "".join(f" {x}" for x in self.options)


def robots(root: Path, quick: bool) -> Iterator[Robot]:
    """List the robots of the packages that are unpacked under a folder."""
    for package in tomllib.loads(LIST.read_text())["package"]:
        if quick and not package.get("quick"):
            continue
        for entry in package["robots"]:
            file, *options = [entry] if isinstance(entry, str) else entry
            path = root / package["folder"] / file
            if not path.is_file():
                print(f"{path} is missing: {package['name']} has another version?")
            yield Robot(path, tuple(options))


def packages(quick: bool) -> list[str]:
    """Name the packages to install, with their versions."""
    every = tomllib.loads(LIST.read_text())["package"]
    return [p["name"] for p in every if p.get("quick") or not quick]


# One robot.


def command(*words: str) -> tuple[int, str, str]:
    """Run a command of Armwise in this process: exit code, output, errors."""
    from armwise.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["armwise", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.argv = argv
    return code, out.getvalue(), err.getvalue()


def loads_elsewhere(path: Path) -> bool:
    """Whether MuJoCo or Pinocchio reads the file."""
    import mujoco
    import pinocchio as pin

    if path.suffix == ".sdf":
        return True
    with contextlib.suppress(Exception):
        if path.suffix == ".urdf":
            pin.buildModelFromUrdf(str(path))
        else:
            mujoco.MjModel.from_xml_path(str(path))
        return True
    return False


def trial(robot: Robot) -> dict[str, Any]:
    """Take one robot through every command; what failed has a reason."""
    began = time.monotonic()
    report: dict[str, Any] = {"robot": robot.name, "elsewhere": False}
    try:
        report["elsewhere"] = loads_elsewhere(robot.path)
        with TemporaryDirectory() as folder:
            _commands(robot, Path(folder), report)
    except Exception as problem:  # one robot must not end the others' trials
        report["failed"] = f"{type(problem).__name__}: {problem}"
    report["seconds"] = time.monotonic() - began
    return report


def _commands(robot: Robot, folder: Path, report: dict[str, Any]) -> None:
    real, logs = folder / "real.urdf", [folder / f"run{i}.csv" for i in (1, 2)]
    source = str(robot.path)
    _require(report, "inspect", "inspect", source, *robot.options)
    report["dof"] = _with_friction(robot, real)
    for seed, log in enumerate(logs):
        _require(
            report,
            "simulate",
            "simulate",
            str(real),
            "--seed",
            str(seed),
            "-o",
            str(log),
        )
    out = _require(
        report, "identify", "identify", str(real), str(logs[0]), "--validate",
        str(logs[1]), "-o", str(folder / "out"), "--json",
    )  # fmt: skip
    summary = json.loads(out)
    errors = summary["validation"]
    moving = errors.get("moving", errors)["relative_error"]
    report["worst"] = max(moving)
    report["base"] = summary["base_parameter_count"]
    _written(folder / "out" / "identified.urdf", report)
    _exported(folder / "out" / "estimate.json", report)
    _require(
        report, "generate", "generate", str(folder / "out" / "identified.urdf"), "-o",
        str(folder / "code"),
    )  # fmt: skip
    _compiled(folder / "code", report)
    _shown(robot, report)


def _require(report: dict[str, Any], step: str, *words: str) -> str:
    code, out, err = command(*words)
    if code:
        lines = [x for x in err.splitlines() if x.startswith("armwise: ")] or [err]
        raise RuntimeError(f"{step}: {lines[-1][:300]}")
    report[step] = True
    return out


def _with_friction(robot: Robot, path: Path) -> int:
    """Write the arm with friction where it has none; return its degrees of freedom."""
    import armwise as aw
    from armwise.cli.arguments import PartOfArm, load_named
    from armwise.control import largest_torque
    from armwise.motions import random_motion

    chain = dict(zip(robot.options[::2], robot.options[1::2], strict=True))
    lock = [value for name, value in chain.items() if name == "--lock"]
    with contextlib.redirect_stderr(io.StringIO()):
        part = PartOfArm.of(str(robot.path), chain.get("--chain"), lock)
        arm = load_named(part)
    motion = random_motion(arm, 0, fastest=1e3)
    torque = largest_torque(arm, motion)
    speed = np.abs(motion.sample(np.linspace(0.0, motion.duration, 200)).qd).max(axis=0)
    values = arm.parameters.copy()
    for k, i in enumerate(arm.coordinates):
        viscous, coulomb = (arm.layout.joint(i, x) for x in ("viscous", "coulomb"))
        if not values[viscous] and not values[coulomb]:
            values[coulomb] = COULOMB * torque[k]
            values[viscous] = VISCOUS * torque[k] / speed[k]
    aw.save_arm(arm.with_parameters(values), path)
    return arm.dof


def _written(path: Path, report: dict[str, Any]) -> None:
    """Judge the file that was written: physical, and read by Pinocchio."""
    import pinocchio as pin

    import armwise as aw

    if not path.is_file():
        raise RuntimeError(f"written: identify wrote no {path.name}, and exited with 0")
    if defects := aw.load_arm(path).defects():
        raise RuntimeError(f"written: {next(iter(defects.items()))}")
    pin.buildModelFromUrdf(str(path))
    report["written"] = True


def _exported(estimate: Path, report: dict[str, Any]) -> None:
    """Write the model for MuJoCo, which must read it."""
    import mujoco

    model = estimate.with_name("model.xml")
    words = ("export", str(estimate), "--to", "mjcf", "-o", str(model))
    _require(report, "export", *words)
    report["export"] = False
    mujoco.MjModel.from_xml_path(str(model))
    report["export"] = True


def _compiled(folder: Path, report: dict[str, Any]) -> None:
    """Compile and run the self-test as the documents say."""
    report["generate"] = False
    test = next(folder.glob("*_selftest.c"))
    program, model = folder / "selftest", test.name.replace("_selftest", "")
    words = ["cc", "-O1", str(folder / model), str(test), "-lm", "-o", str(program)]
    for step in (words, [str(program)]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(
                f"generate: {(done.stderr + done.stdout).strip()[-200:]}"
            )
    report["generate"] = True


def _shown(robot: Robot, report: dict[str, Any]) -> None:
    """Draw the scene for a browser that does not come."""
    import viser

    import armwise as aw
    from armwise.view import make_scene
    from armwise.view.serve import Player, free_port

    chain = dict(zip(robot.options[::2], robot.options[1::2], strict=True))
    ends = chain["--chain"].split("..") if "--chain" in chain else None
    arm = aw.load_arm(robot.path, chain=tuple(ends) if ends else None)  # type: ignore[arg-type]
    with contextlib.redirect_stdout(io.StringIO()):
        scene = make_scene(arm, description=robot.path)
        server = viser.ViserServer("127.0.0.1", free_port(None), verbose=False)
        Player(server, scene).step(0.0)
        server.stop()
    report["view"] = True


# All of them, and the table.


def _apart(robot: Robot) -> dict[str, Any]:
    """Run a trial in a process of its own, which may take too long or die."""
    words = [sys.executable, "-m", "studies.strangers", "--one", str(robot.path)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*words, *(f"--option={x}" for x in robot.options)],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            env=environment,
            check=False,
        )
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report
    except subprocess.TimeoutExpired:
        why = f"took longer than {LONGEST:g} s"
    except (IndexError, ValueError):
        why = f"died: {done.stderr.strip()[-200:]}"
    elapsed = time.monotonic() - began
    return {"robot": robot.name, "elsewhere": True, "failed": why, "seconds": elapsed}


def table(reports: list[dict[str, Any]]) -> str:
    """Return the table of all trials, and the sums."""
    lines = [
        "| robot | joints | " + " | ".join(STEPS) + " | worst error | s |",
        "|" + "---|" * (len(STEPS) + 4),
    ]
    for r in reports:
        marks = " | ".join("yes" if r.get(step) else "no" for step in STEPS)
        worst = f"{100 * r['worst']:.2f} %" if "worst" in r else ""
        end = f"{worst} | {r['seconds']:.0f} |"
        lines.append(f"| {r['robot']} | {r.get('dof', '')} | {marks} | {end}")
    lines += ["", *(f"{r['robot']}: {r['failed']}" for r in reports if "failed" in r)]
    asked = [r for r in reports if r["elsewhere"]]
    through = [r for r in asked if all(r.get(step) for step in STEPS)]
    good = [r for r in asked if r.get("worst", np.inf) <= LARGEST_ERROR]
    lines.append(
        f"{len(through)} of {len(asked)} robots that MuJoCo or Pinocchio reads went "
        f"through every command; every joint within {100 * LARGEST_ERROR:g} % on "
        f"{len(good)}."
    )
    return "\n".join(lines)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, help="folder of unpacked packages")
    parser.add_argument("--quick", action="store_true", help="the tenth for CI")
    parser.add_argument("--packages", action="store_true", help="list, and no more")
    parser.add_argument("--match", default="", help="only robots with this in the name")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--option", action="append", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("-o", "--output", type=Path, help="table to write")
    asked = parser.parse_args()
    if asked.packages:
        print("\n".join(packages(asked.quick)))
        return
    if asked.one is not None:
        print(json.dumps(trial(Robot(asked.one, tuple(asked.option or ())))))
        return
    chosen = [r for r in robots(asked.root, asked.quick) if asked.match in r.name]
    reports = []
    with ThreadPoolExecutor(asked.workers) as pool:
        for report in pool.map(_apart, chosen):
            reports.append(report)
            state = report.get("failed", "through")
            print(f"{report['robot']}: {state} ({report['seconds']:.0f} s)", flush=True)
    text = table(reports)
    print(text)
    if asked.output is not None:
        asked.output.write_text(text + "\n")
    if any("failed" in r for r in reports if r["elsewhere"]):
        sys.exit(1)


if __name__ == "__main__":
    main()
