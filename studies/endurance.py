"""An hour of every adaptive controller on a plant it does not model quite.

The plant has Coulomb friction and encoder noise that no controller knows of: what makes
estimates drift. A controller passes if neither its tracking error nor its estimate
still grows at the end.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from armwise.arms import Arm, Drive, load_arm
from armwise.control import (
    Composite,
    CraigHsuSastry,
    Gating,
    Indirect,
    MixtureCompensator,
    ParameterSet,
    PhysicalProjection,
    ResumableController,
    SlotineLi,
    UpdateLaw,
    standard_controllers,
)
from armwise.errors import PlantDiverged
from armwise.jobs import open_runner
from armwise.motions import Motion, Sinusoid
from armwise.plants import Encoder, SimulatedArm, run

_RATE, _KD = 10.0, np.array([20.0, 10.0])
_FRICTION = 0.3
"""Coulomb friction in [N m] that no controller knows of."""
_NOISE = 1e-4
"""Encoder noise in [rad]."""
_LARGEST_GROWTH = 1.25
"""Of the error, from the second to the last sixth of the run: twice the scatter of such
sixths among runs that do not grow."""


@dataclass(frozen=True)
class Endurance:
    """How one controller endured.

    Attributes:
        name: The controller.
        error_mrad: Root mean square of the tracking error in each sixth of the run.
        largest: Largest parameter, in units of the largest of the description, at the
            end of each sixth.
        ran_away: When the arm ran away in [s]; NaN if it did not.
        stopped: Whether the adaptation was stopped as a runaway.
    """

    name: str
    error_mrad: tuple[float, ...]
    largest: tuple[float, ...]
    ran_away: float
    stopped: bool

    @property
    def endured(self) -> bool:
        """Whether nothing ran away, and neither error nor estimate still grows."""
        if self.stopped or not np.isnan(self.ran_away):
            return False
        error, size = self.error_mrad, self.largest
        return (
            error[-1] <= _LARGEST_GROWTH * error[1]
            and size[-1] <= _LARGEST_GROWTH * size[-2]
        )


class _Sampled:
    """A controller whose largest parameter and error are noted in every sixth."""

    def __init__(self, controller: ResumableController, steps: int) -> None:
        self._controller, self._length = controller, max(1, steps // 6)
        self._count, self._square = 0, 0.0
        self.error: list[float] = []
        self.largest: list[float] = []

    def reset(self, batch: int, period: float) -> None:
        self._controller.reset(batch, period)

    def torque(self, t, reference, measurement):  # type: ignore[no-untyped-def]
        tau = self._controller.torque(t, reference, measurement)
        error = measurement.q - reference.q
        self._square += float(np.sum(error**2)) / error.size
        self._count += 1
        if self._count % self._length == 0:
            self.error.append(float(np.sqrt(self._square / self._length)))
            self._square = 0.0
            state = self._controller.to_dict()
            values = state["parameters" if "parameters" in state else "weights"]
            self.largest.append(float(np.abs(values).max()))
        return tau


def adaptive_controllers(arm: Arm) -> dict[str, Callable[[], ResumableController]]:
    """One of every kind of adaptive controller and law, for a two-link arm."""
    base, every = ParameterSet.base(arm, ()), ParameterSet.standard(arm)
    gating = Gating.over([-1.0, -1.0], [1.0, 2.0], 4)
    law = UpdateLaw
    bounded, fading = law.bounded_gain(10.0, 0.5, 1e3), law.exponential(10.0, 0.5)
    slow = law.bounded_gain(10.0, 0.1, 1e3)
    slotine = partial(SlotineLi, base, _RATE, _KD)
    composite = partial(Composite, base, _RATE, _KD)
    indirect = partial(Indirect, base, 100.0, 20.0, kd_floor=_KD)
    mixture = partial(MixtureCompensator, gating, _RATE, _KD)
    standard = standard_controllers(arm)
    return {
        "Slotine-Li, gradient": partial(slotine, law.gradient(1.0)),
        "Slotine-Li, gradient, all parameters": partial(
            SlotineLi, every, _RATE, _KD, law.gradient(0.3)
        ),
        "Slotine-Li, least squares": partial(slotine, law.least_squares(10.0)),
        "Slotine-Li, bounded gain": partial(slotine, bounded),
        "Slotine-Li of `control`": standard["Slotine-Li"],
        "composite, bounded gain": partial(composite, bounded),
        "composite, weights 0.1 and 1": partial(composite, bounded, weights=(0.1, 1.0)),
        "composite, forgets in 10 s": partial(composite, slow),
        "composite of `control`": standard["composite"],
        "indirect, least squares": partial(indirect, law=law.least_squares(50.0)),
        "indirect, exponential": partial(indirect, law=fading),
        "Craig-Hsu-Sastry": partial(
            CraigHsuSastry,
            every,
            100.0,
            20.0,
            law.gradient(0.02),
            1.3 * arm.parameters,
            10.0,
            PhysicalProjection(every),
        ),
        "mixture, gradient": partial(mixture, law.gradient(0.1)),
        "mixture, least squares": partial(mixture, law.least_squares(0.1)),
    }


def endure(name: str, minutes: float, rate_hz: float, seed: int = 0) -> Endurance:
    """Let one controller follow a motion for so long."""
    arm = load_arm("two_link_slotine").with_gravity([0.0, -9.81, 0.0])
    rough = replace(
        arm,
        joints=tuple(replace(j, drive=Drive(coulomb=_FRICTION)) for j in arm.joints),
    )
    seconds = 60.0 * minutes
    motion: Motion = Sinusoid(
        np.array([0.0, 0.5]), np.array([0.8, 0.9]), np.array([2.1, 3.3]), seconds
    )
    controller = adaptive_controllers(arm)[name]()
    sampled = _Sampled(controller, round(seconds * rate_hz))
    plant = SimulatedArm(
        arm,
        true_arm=rough,
        sensors=(Encoder(noise_std=_NOISE),),
        control_rate_hz=rate_hz,
        plant_rate_hz=2000.0,
        keeps_truth=False,
        seed=seed,
    )
    ran_away = float("nan")
    try:
        run(plant, sampled, motion)
    except PlantDiverged:
        ran_away = plant.time
    described = float(np.abs(arm.parameters).max())
    return Endurance(
        name,
        tuple(1e3 * e for e in sampled.error),
        tuple(x / described for x in sampled.largest),
        ran_away,
        bool(np.any(getattr(controller, "stopped", False))),
    )


def _job(task: tuple[str, float, float]) -> Endurance:
    return endure(*task)


def main() -> None:
    """Run the study and print its table; exit 1 if any controller grows."""
    parser = ArgumentParser(description="An hour of every adaptive controller.")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=200.0, help="Control rate, Hz.")
    parser.add_argument("--only", default="", help="Part of the controllers' names.")
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    arm = load_arm("two_link_slotine").with_gravity([0.0, -9.81, 0.0])
    names = [name for name in adaptive_controllers(arm) if options.only in name]
    tasks = [(name, options.minutes, options.rate) for name in names]
    print(
        f"{'controller':38} error [mrad] in each sixth; largest parameter", flush=True
    )
    failed = False
    with open_runner(options.workers) as runner:
        for _, result in runner.run(_job, tasks):
            errors = " ".join(f"{e:6.2f}" for e in result.error_mrad)
            sizes = " ".join(f"{x:6.2f}" for x in result.largest)
            verdict = "endures" if result.endured else "GROWS"
            if not np.isnan(result.ran_away):
                verdict = f"RAN AWAY at {result.ran_away:.1f} s"
            failed |= not result.endured
            print(f"{result.name:38} {errors}  {sizes}  {verdict}", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
