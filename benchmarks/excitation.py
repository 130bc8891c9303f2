"""Excitation against random motion and against the motions of `aah1986`.

Run: python benchmarks/excitation.py [--random 200]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import armwise as aw
from armwise.excitation.design import arrange, one_thread
from armwise.excitation.search import random_start
from armwise.motions import Quintic

QUINTICS_DEG = (
    ((330, 289.1, 230), (80, 39.1, -10)),
    ((330, 269.1, -30), (80, 19.1, 220)),
    ((80, 269.1, -30), (330, 19.1, 220)),
)
"""The three identification motions of the direct drive arm, 1.3 s each."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=200)
    count = parser.parse_args().random
    compare_with_random("panda", 20.0, count)
    compare_with_quintics()
    for name in ("ur10", "puma560", "tx40", "iiwa"):
        design(name, 20.0)


def design(name: str, duration: float) -> aw.excitation.ExcitationPlan:
    began, spent = time.perf_counter(), time.process_time()
    plan = aw.design_excitation(aw.load_arm(name), duration, seed=0, budget_s=60.0)
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    v = plan.verified
    worst = max(
        v.position.max(), v.velocity.max(), v.acceleration.max(), v.effort.max()
    )
    print(
        f"{name}, {duration:g} s: condition {plan.condition_number:.2f}, log det "
        f"{plan.log_det:.2f}, {wall:.1f} s ({cpu:.1f} s of processor), largest share "
        f"of a limit {worst:.4f} on {v.instants} instants, room {v.room:.4f} m"
    )
    return plan


def compare_with_random(name: str, duration: float, count: int) -> None:
    plan = design(name, duration)
    setting = arrange(
        aw.load_arm(name),
        duration,
        keep_out=aw.excitation.KeepOut(),
        limit_fraction=0.95,
    )
    p, rng = setting.problem, np.random.default_rng(1)
    with one_thread():
        postures = setting.postures(rng)
        told = [
            p.log_det(random_start(p, posture, rng))
            for posture in postures[rng.integers(len(postures), size=count)]
        ]
    print(
        f"  best of {count} random feasible motions: log det {max(told):.2f}, "
        f"median {np.median(told):.2f}; the design is "
        f"{plan.log_det - max(told):.1f} nats better"
    )


def compare_with_quintics() -> None:
    arm = aw.load_arm("ddarm")
    plan = design("ddarm", 3.9)
    ours = aw.excitation.score_motion(arm, plan)
    parts = [Quintic(*np.deg2rad(ends), 1.3) for ends in QUINTICS_DEG]
    scores = [aw.excitation.score_motion(arm, part) for part in parts]
    theirs = sum(part.information for part in scores)
    base = aw.base_parameters(arm)
    names = [base.names[k] for k in base.indices]
    links = [k for k, name in enumerate(names) if name.startswith("link")]
    for what, chosen in (("all", range(len(names))), ("inertial", links)):
        pick = np.ix_(list(chosen), list(chosen))
        gain = np.linalg.slogdet(ours.information[pick])[1]
        gain -= np.linalg.slogdet(theirs[pick])[1]
        print(f"  {what}: {gain:.2f} nats better than the paper's three quintics")


if __name__ == "__main__":
    main()
