"""`aah1986` §2.1 and §4.1: recursive estimates, and what an estimate is for."""

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
from armwise.report import Figure
from papers.atkeson_loads import (
    BAR,
    BAR_INERTIA,
    GRIPPER,
    block,
    designed_motion,
    puma_rig,
)
from papers.drawings import Drawing, line
from papers.load_rig import Run
from papers.rows import Row, claim, recovered

if TYPE_CHECKING:
    from jaxtyping import Float


# The experiments, on the PUMA's rig.

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


# Tables: our numbers beside the paper's.

_NOTE = "PUMA, shaking, with encoders and a sensor that drifts; 15 s designed for loads"


def rows() -> list[Row]:
    """What §2.1 and §4.1 say can be done with an estimate, done."""
    return [*_recursive_rows(), _recognition_row(), _grasp_row(), _rigidity_row()]


def figures() -> list[Drawing]:
    """The mass, sample by sample."""
    _, masses = recursive()
    time, mass = masses.T
    figure = Figure(
        "Recursive estimate of the bar's mass", "time [s]", "mass [kg]",
        (
            line("recursive", time, mass),
            line("all at once", time[[0, -1]], [held("bar").mass] * 2, "level"),
        ),
    )  # fmt: skip
    return [Drawing("§2.1", figure)]


def _recursive_rows() -> list[Row]:
    online, _ = recursive()
    batch = held("bar")
    few = without(("fx", "tz"))
    miss = [
        1e3 * float(np.abs(x.central_inertia - BAR_INERTIA).max()) for x in (batch, few)
    ]
    return [
        recovered(
            "§2.1, recursive", "mass, sample by sample and all at once [kg]",
            (BAR.mass, BAR.mass), (online.mass, batch.mass), within=0.01,
            note=f"the second weighs every frequency by its noise; {_NOTE}",
        ),
        claim(
            "§2.1, missing components",
            "largest inertia error with six components and without fx and tz "
            "[10⁻³ kg m²]", "missing components: their rows drop out", miss,
            below=0.05e3 * float(BAR_INERTIA.max()),
            why="5 % of the largest moment, still useful without them", note=_NOTE,
        ),
    ]  # fmt: skip


def _recognition_row() -> Row:
    right = sum(name == told for name, told in recognised().items())
    return claim(
        "uses of an estimate, recognition",
        f"objects recognised, of {len(OBJECTS)}: {', '.join(OBJECTS)}",
        "match mass and principal moments",
        right,
        above=len(OBJECTS) - 0.5,
        below=len(OBJECTS) + 0.5,
        why="all of them",
        note=f"three weigh 1.1 kg, so moments must tell; {_NOTE}",
    )


def _grasp_row() -> Row:
    proper, _, far = grasps()
    words = {True: "as expected", False: "noticed"}
    return claim(
        "uses of an estimate, grasp",
        "block held right and 20 mm off, judged rightly of 2",
        "verify where an object is held",
        int(proper) + int(not far),
        above=1.5,
        below=2.5,
        why="the right grasp passes and the wrong one does not",
        shown=f"{int(proper) + int(not far)} ({words[proper]}, {words[far]})",
        note=f"joints off by 0.2° allow no more; {_NOTE}",
    )


def _rigidity_row() -> Row:
    rigid, loose = (x.rigidity for x in rigid_and_loose())
    assert rigid is not None
    assert loose is not None
    return claim(
        "uses of an estimate, rigidity",
        "wrench that a rigid load leaves unexplained: a bar that sloshes over the bar",
        "residuals tell whether the load is rigid",
        loose.unexplained / rigid.unexplained,
        above=2.0,
        why="told apart by a factor of two",
        shown=f"{100 * loose.unexplained:.1f} % "
        f"({'rigid' if loose.is_rigid else 'not rigid'}), "
        f"{100 * rigid.unexplained:.1f} % ({'rigid' if rigid.is_rigid else 'not'})",
        note=f"a fifth of its wrench comes 0.15 s late; {_NOTE}",
    )
