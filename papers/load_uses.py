"""What a load estimate is for, on the PUMA's rig: recognise, verify, doubt, go on."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.loads import (
    KnownObject,
    LoadEstimate,
    OnlineLoad,
    identify_load,
    recognise,
    verify_grasp,
)
from armwise.recordings import Samples
from papers.atkeson_loads import (
    BAR,
    GRIPPER,
    block,
    designed_motion,
    puma_rig,
)
from papers.load_rig import Run

if TYPE_CHECKING:
    from jaxtyping import Float

OBJECTS = {
    "bar": BAR,
    "block": block(0.0),
    "lighter bar": InertialParameters.from_center_of_mass(
        1.1, [0.0, 0.0, 0.05], np.diag([0.0180, 0.0006, 0.0179])
    ),
    "ball": InertialParameters.from_center_of_mass(
        1.1, [0.0, 0.0, 0.06], np.diag([0.0016, 0.0016, 0.0016])
    ),
}
"""A catalogue: three of the four weigh the same, so that mass alone does not tell."""

CUTOFF_HZ = 10.0


@cache
def recordings(seed: int = 11) -> dict[str, Run]:
    """Each object moved once along a motion designed for loads."""
    rig = puma_rig()
    runs = rig.record(designed_motion(), list(OBJECTS.values()), len(OBJECTS), seed)
    return dict(zip(OBJECTS, runs, strict=True))


@cache
def held(name: str) -> LoadEstimate:
    """What is found of an object."""
    return _identified(_samples(name))


def recognised() -> dict[str, str | None]:
    """Which object of the catalogue each one is taken for."""
    catalogue = [KnownObject.from_parameters(*entry) for entry in OBJECTS.items()]
    return {name: recognise(held(name), catalogue).name for name in OBJECTS}


def grasps(offsets: tuple[float, ...] = (0.0, 0.01, 0.02)) -> list[bool]:
    """Whether the block looks properly held if it should be so far [m] from there."""
    told = []
    for offset in offsets:
        T = np.eye(4)
        T[1, 3] = offset
        told.append(verify_grasp(held("block"), OBJECTS["block"], T).is_as_expected)
    return told


def rigid_and_loose() -> tuple[LoadEstimate, LoadEstimate]:
    """The bar, and a bar that sloshes: its wrench lags behind the motion."""
    samples = _samples("bar")
    assert samples.wrench is not None
    force = samples.wrench - samples.wrench.mean(axis=0)
    late = round(0.15 * puma_rig().rate_hz)
    slosh = 0.2 * (np.roll(force, late, axis=0) - force)
    slosh[: 2 * late] = 0.0
    loose = Samples(
        samples.time, samples.q, samples.qd, samples.qdd, samples.tau,
        samples.wrench + slosh, preparation=samples.preparation,
    )  # fmt: skip
    return held("bar"), _identified(loose)


def recursive() -> tuple[OnlineLoad, Float[np.ndarray, "instants 2"]]:
    """The bar, sample by sample; time [s] and mass [kg] on the way."""
    rig, samples = puma_rig(), _samples("bar")
    assert samples.wrench is not None
    online = OnlineLoad(
        rig.arm, rate_hz=rig.rate_hz, noise_std=rig.noise_std, memory=np.inf,
        drift=rig.drift, bias_std=rig.bias_std, gripper=GRIPPER,
    )  # fmt: skip
    masses = []
    for k in range(len(samples)):
        online.update(samples.q[k], samples.qd[k], samples.qdd[k], samples.wrench[k])
        masses.append((samples.time[k], online.mass))
    return online, np.array(masses)


def without(missing: tuple[str, ...]) -> LoadEstimate:
    """The bar from a sensor that lacks some components."""
    kept = [c for c in ("fx", "fy", "fz", "tx", "ty", "tz") if c not in missing]
    return identify_load(
        _samples("bar"), puma_rig().arm, gripper=GRIPPER, components=kept, checked=False
    )


def _samples(name: str) -> Samples:
    return recordings()[name].differentiated(CUTOFF_HZ)


def _identified(samples: Samples) -> LoadEstimate:
    return identify_load(samples, puma_rig().arm, gripper=GRIPPER, checked=False)
