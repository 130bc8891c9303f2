"""Coverage of 95 % intervals on plants that are not ours, group by group.

Every run has an arm, a description, a motion, a delay and noise of its own
(studies.foreign_plants); it is identified as a user would, and every interval compared
with the truth. Friction terms that were chosen count against a truth of zero on plants
that have none.

    python -m studies.confidence panda ur5 iiwa robot.urdf --runs 40 --kinds plain
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from armwise.arms import DRIVE_NAMES, load_arm
from armwise.errors import ArmwiseError
from armwise.identification import Estimate, identify
from armwise.jobs import InProcess, JobRunner, ProcessPool
from armwise.regression import interval_factor
from studies.foreign_plants import KINDS, ForeignRun, PlantSetting, foreign_run

GROUPS = ("links", *DRIVE_NAMES, "chosen terms", "lag")
"""Rows of the table."""

_SETTINGS = {
    "panda": PlantSetting(),
    "ur5": PlantSetting(rate_hz=500.0, encoder_bits=17, friction=0.15),
    "iiwa": PlantSetting(friction=0.04, stickiness=0.005),
}
"""Controllers and drives of known makes."""

_STRANGER = PlantSetting(rate_hz=500.0, encoder_bits=17, friction=0.1, stickiness=0.01)
"""Those of any other arm."""


@dataclass(frozen=True)
class RunOutcome:
    """What became of one run.

    Attributes:
        inside: Group → whether each interval of it holds the truth.
        lag_error: Error of the lag in [s]; None where none was estimated.
        warnings: Codes of the estimate's warnings.
    """

    inside: dict[str, tuple[bool, ...]]
    lag_error: float | None
    warnings: tuple[str, ...]


def run_once(name: str, kind: str, seed: int) -> RunOutcome | str:
    """Simulate and identify one plant; or why that was not possible."""
    setting = replace(_SETTINGS.get(name, _STRANGER), kind=kind)
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
            error = abs(estimate.base_values[row] - truth[row])
            inside.setdefault(group, []).append(bool(error <= reach[row]))
    lag, lag_error = estimate.torque_lag, None
    if lag is not None:
        lag_error = lag.seconds - run.lag
        inside["lag"] = [abs(lag_error) <= interval_factor() * lag.std]
    codes = tuple(warning.code for warning in estimate.warnings)
    counts = {group: tuple(values) for group, values in inside.items()}
    return RunOutcome(counts, lag_error, codes)


def _group(estimate: Estimate, index: int) -> str:
    ending = estimate.base.names[index].rpartition(".")[2]
    return ending if ending in DRIVE_NAMES else "links"


def table(outcomes: Sequence[RunOutcome]) -> list[str]:
    """One line per group: how many intervals there were, and how many hold."""
    lines = []
    for group in GROUPS:
        every = [x for one in outcomes for x in one.inside.get(group, ())]
        if every:
            percent = 100.0 * float(np.mean(every))
            lines.append(f"  {group:14s} {percent:5.1f} % of {len(every)}")
    errors = [one.lag_error for one in outcomes if one.lag_error is not None]
    if errors:
        lines.append(f"  lag, median error {1e3 * float(np.median(errors)):+.3f} ms")
    missing = [
        1.0 - np.mean([x for values in one.inside.values() for x in values])
        for one in outcomes
    ]
    bad = sum(fraction > 0.1 for fraction in missing)
    # Warnings about the motion are none about the model.
    about_motion = {"ill-conditioned", "undetermined-parameters"}
    silent = [not set(one.warnings) - about_motion for one in outcomes]
    unsaid = sum(m > 0.1 and s for m, s in zip(missing, silent, strict=True))
    lines.append(
        f"  {bad} of {len(outcomes)} runs with more than a tenth missing, "
        f"{unsaid} of them without a warning"
    )
    return lines


def main() -> None:
    """Run the study from the command line."""
    from argparse import ArgumentParser

    parser = ArgumentParser(description="Coverage of intervals on MuJoCo plants.")
    parser.add_argument("arms", nargs="+", help="Bundled names, or paths.")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="Seed of the first run.")
    parser.add_argument("--kinds", nargs="+", default=["plain"], choices=KINDS)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.runs)
    pool: JobRunner = (
        ProcessPool(options.workers) if options.workers > 1 else InProcess()
    )
    with pool:
        for name in options.arms:
            for kind in options.kinds:
                answers = []
                for _, answer in pool.run(partial(run_once, name, kind), seeds):
                    answers.append(answer)
                    print(f"\r{len(answers)} of {len(seeds)}", end="", flush=True)
                outcomes = [x for x in answers if isinstance(x, RunOutcome)]
                refused = [x for x in answers if isinstance(x, str)]
                print(f"\r{Path(name).stem}, {kind}: {len(outcomes)} runs")
                print("\n".join(table(outcomes)) if outcomes else "  none")
                for text in sorted(set(refused)):
                    print(f"  refused: {text}")


if __name__ == "__main__":
    main()
