"""Coverage of 95 % intervals on plants that are not ours, group by group.

Every run has an arm, a description, a motion, a delay and noise of its own
(studies.foreign_plants); it is identified as a user would, every interval compared with
the truth, and the verdicts with how many of the intervals miss. Friction terms that
were chosen count against a truth of zero on plants that have none, and not at all on
others: there they stand for something that no single number is the truth of.

    python -m studies.confidence  # the table
    python -m studies.confidence panda robot.urdf --runs 5 --kinds plain stribeck
    python -m studies.confidence robot.urdf --rate 250 --lag 2.5 3.5 --stiffness 40
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import DRIVE_NAMES, load_arm
from armwise.errors import ArmwiseError
from armwise.identification import Estimate, identify
from armwise.jobs import InProcess, JobRunner, ProcessPool
from armwise.regression import interval_factor
from armwise.report import verdicts
from studies.foreign_plants import KINDS, ForeignRun, PlantSetting, foreign_run

GROUPS = ("links", *DRIVE_NAMES, "chosen terms", "lag")
"""Rows of the table."""

_SETTINGS = {
    "panda": PlantSetting(),
    "ur5": PlantSetting(rate_hz=500.0, encoder_bits=17, friction=0.15),
    "iiwa": PlantSetting(friction=0.04, stickiness=0.005),
}
"""Controllers and drives of known makes."""

_KINDS = ["plain", "stribeck", "load", "elastic", "gain"]
"""Plants of the table."""

_PASSES = {"pass", "not evaluated"}

_STRANGER = PlantSetting(rate_hz=500.0, encoder_bits=17, friction=0.1, stickiness=0.01)
"""Those of any other arm."""


@dataclass(frozen=True)
class RunOutcome:
    """What became of one run.

    Attributes:
        inside: Group → whether each interval of it holds the truth.
        lag_error: Error of the lag in [s]; None where none was estimated.
        warnings: Codes of the estimate's warnings.
        passes: Whether every verdict on data and model is "pass"; those on the motion,
            which is random here, are left out.
    """

    inside: dict[str, tuple[bool, ...]]
    lag_error: float | None
    warnings: tuple[str, ...]
    passes: bool

    @property
    def missing(self) -> float:
        """Fraction of the intervals that do not hold the truth."""
        every = [x for group, own in self.inside.items() for x in own if group != "lag"]
        return 1.0 - float(np.mean(every)) if every else 0.0


def run_once(name: str, kind: str, seed: int, **changes: Any) -> RunOutcome | str:
    """Simulate and identify one plant; or why that was not possible.

    Args:
        name: Name or path of the arm.
        kind: What the plant does, one of KINDS.
        seed: Of everything in the run.
        changes: Fields of PlantSetting that differ from the arm's usual ones.
    """
    setting = replace(_SETTINGS.get(name, _STRANGER), kind=kind, **changes)
    try:
        run = foreign_run(load_arm(name), setting, seed)
        estimate = identify(run.description, run.log, validation=run.other)
    except (ArmwiseError, RuntimeError) as error:
        return str(error)
    return outcome(estimate, run)


def outcome(estimate: Estimate, run: ForeignRun) -> RunOutcome:
    """Compare every interval of an estimate with the truth."""
    own = run.truth.parameters.size
    extra = np.zeros(len(estimate.columns.friction))
    truth = estimate.base.values(np.concatenate([run.truth.parameters, extra]))
    reach = interval_factor() * estimate.base_std
    inside: dict[str, list[bool]] = {}
    for row, index in enumerate(estimate.base.indices):
        # An infinite interval is no claim.
        if np.isfinite(reach[row]):
            group = "chosen terms" if index >= own else _group(estimate, index)
            if index >= own and not run.is_plain:
                continue
            error = abs(estimate.base_values[row] - truth[row])
            inside.setdefault(group, []).append(bool(error <= reach[row]))
    lag, lag_error = estimate.torque_lag, None
    if lag is not None:
        lag_error = lag.seconds - run.lag
        inside["lag"] = [abs(lag_error) <= interval_factor() * lag.std]
    codes = tuple(warning.code for warning in estimate.warnings)
    counts = {group: tuple(values) for group, values in inside.items()}
    answers = {one.question: one.verdict for one in verdicts(estimate)}
    about_motion = {q for q in answers if q.startswith("Did ")}
    passes = {v for q, v in answers.items() if q not in about_motion} <= _PASSES
    return RunOutcome(counts, lag_error, codes, passes)


def _group(estimate: Estimate, index: int) -> str:
    ending = estimate.base.names[index].rpartition(".")[2]
    return ending if ending in DRIVE_NAMES else "links"


def line(name: str, outcomes: Sequence[RunOutcome]) -> str:
    """One line of the table: what holds in per cent, group by group, and verdicts."""
    cells = []
    for group in GROUPS:
        every = [x for one in outcomes for x in one.inside.get(group, ())]
        cells.append(f"{100.0 * float(np.mean(every)):.1f}" if every else "")
    errors = [one.lag_error for one in outcomes if one.lag_error is not None]
    lag = f"{1e3 * float(np.median(errors)):+.2f} ms" if errors else ""
    bad = [one for one in outcomes if one.missing > 0.1]
    passes = sum(one.passes for one in outcomes)
    cells += [lag, f"{len(bad)} ({sum(one.passes for one in bad)})", f"{passes}"]
    return " | ".join([name, str(len(outcomes)), *cells])


HEADER = (
    f"plant | runs | {' | '.join(GROUPS)} | lag's median error | "
    "more than a tenth miss (of these pass) | pass"
)
"""Names of the columns of `line`."""


def main() -> None:
    """Run the study from the command line."""
    from argparse import ArgumentParser

    parser = ArgumentParser(description="Coverage of intervals on MuJoCo plants.")
    parser.add_argument(
        "arms", nargs="*", default=["panda", "ur5", "iiwa"], help="Names, or paths."
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="Seed of the first run.")
    parser.add_argument("--kinds", nargs="+", default=_KINDS, choices=KINDS)
    parser.add_argument("--rate", type=float, help="Samples a second.")
    parser.add_argument("--lag", type=float, nargs=2, help="Bounds of the delay, ms.")
    parser.add_argument("--stiffness", type=float, help="Of the controller, 1/rad.")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    lag = options.lag and (1e-3 * options.lag[0], 1e-3 * options.lag[1])
    asked = {"rate_hz": options.rate, "lag": lag, "stiffness": options.stiffness}
    changes = {key: value for key, value in asked.items() if value is not None}
    seeds = range(options.first, options.first + options.runs)
    pool: JobRunner = (
        ProcessPool(options.workers) if options.workers > 1 else InProcess()
    )
    print(HEADER)
    with pool:
        for name in options.arms:
            for kind in options.kinds:
                answers = []
                job = partial(run_once, name, kind, **changes)
                for _, answer in pool.run(job, seeds):
                    answers.append(answer)
                    print(f"\r{len(answers)} of {len(seeds)}", end="\r", flush=True)
                outcomes = [x for x in answers if isinstance(x, RunOutcome)]
                refused = [x for x in answers if isinstance(x, str)]
                print(line(f"{Path(name).stem}, {kind}", outcomes))
                for text in sorted(set(refused)):
                    print(f"  refused: {text}")


if __name__ == "__main__":
    main()
