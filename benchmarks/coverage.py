"""Coverage of 95 % intervals: panda in closed loop, 200 noisy runs."""

from __future__ import annotations

from dataclasses import replace

import armwise as aw
from armwise.arms import Drive
from armwise.identification.coverage import coverage_study
from benchmarks.figures import Row


def driven_panda() -> aw.Arm:
    """Panda with motors and friction."""
    arm = aw.load_arm("panda")
    drive = Drive(rotor_inertia=0.1, viscous=0.4, coulomb=0.4, offset=0.1)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


def run(experiments: int = 200) -> list[Row]:
    study = coverage_study(driven_panda(), experiments=experiments, seed=1)
    least, most = float(study.coverage.min()), float(study.coverage.max())
    nothing = float("nan")
    return [
        Row("weighted vs plain", study.total, study.plain_total, nothing, "0.90–0.99"),
        Row("least and largest of a parameter", least, most, nothing, ""),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
