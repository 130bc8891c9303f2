"""What a URDF or MJCF holds of an estimate: the arm that is written, and its error.

Such a file has viscous and Coulomb friction only. Terms beyond them are lost in it, and
the two that stay are fitted again without them: they are then the best of their kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.dynamics import Dynamics
from armwise.identification.estimate import Estimate
from armwise.identification.identify import build_problem
from armwise.identification.methods import PhysicallyConsistent
from armwise.identification.validation import Tally, Validation, part_masks
from armwise.motions import random_motion
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

_BLOCK = 8192
"""Samples of one step: memory does not grow with the log."""


def arm_for_file(estimate: Estimate) -> Arm:
    """The arm to write: as identified, with friction fitted for what a file can hold.

    Links and rotors stay as they are, and so does the friction of joints that have no
    further terms. An estimate without samples that does not know
    that friction either keeps its viscous and Coulomb friction.
    """
    if estimate.known_plain is not None:
        return estimate.prior_arm.with_parameters(estimate.known_plain)
    if not estimate.columns.friction or not estimate.samples:
        return estimate.arm
    problem = build_problem(
        estimate.arm,
        estimate.samples,
        friction="linear",
        terms=("viscous", "coulomb", "offset"),
    )
    # No more than the numbers: what is uncertain of them the estimate itself says.
    parameters = PhysicallyConsistent().solve(problem).parameters
    assert parameters is not None
    layout, own = estimate.arm.layout, estimate.arm.parameters
    rows = estimate.columns.dynamics.mechanism.drive_rows != 0.0
    bent = rows[[term.joint for term in estimate.columns.friction]].any(axis=0)
    for name in ("viscous", "coulomb", "offset"):
        drives = layout.drive(name)
        is_plain = ~(rows & bent).any(axis=1)
        parameters[drives[is_plain]] = own[drives[is_plain]]
    return estimate.arm.with_parameters(parameters)


def nearest_bodies(arm: Arm) -> tuple[Arm, Float[np.ndarray, " dof"]]:
    """Bodies that can exist with nearly the torques of numbers that no body has.

    Published parameters are often combinations, put where they are shortest. Links and
    rotors are fitted to the torques that they give on a random motion.

    Returns:
        The arm, and each joint's torque that it misses as a fraction of it.
    """
    # Judgement: a thousand samples of 20 s excite every combination of an arm.
    times = np.arange(0.0, 20.0, 0.02)
    motion = random_motion(arm, 0).sample(times)
    torque = Dynamics(arm).inverse_dynamics(*motion)
    size = np.maximum(np.linalg.norm(torque, axis=0), 1e-300)
    # Exact torques would have no noise to weigh joints by: a ten-thousandth of each.
    noise = np.random.default_rng(0).normal(size=torque.shape)
    noise *= 1e-4 * size / np.sqrt(len(times))
    data = Samples(times, *motion, torque + noise, arm=arm)
    terms = ("links", "rotor_inertia")
    problem = build_problem(arm, data, friction="linear", terms=terms)
    parameters = PhysicallyConsistent().solve(problem).parameters
    assert parameters is not None
    bodies = arm.with_parameters(parameters)
    missing = torque - Dynamics(bodies).inverse_dynamics(*motion)
    return bodies, np.linalg.norm(missing, axis=0) / size


def read_back(path: str | PathLike[str], estimate: Estimate) -> Arm:
    """Load the file that was written of an estimate, joints locked as they were."""
    described = estimate.prior_arm
    written = load_arm(path)
    # A complete file has no locked joints any more: they are fixed in it.
    held = {n: x for n, x in described.locked.items() if n in written.coordinate_names}
    if held:
        written = load_arm(path, lock=held)
    return written.with_gravity(described.gravity)  # URDF has none


def file_error(arm: Arm, data: Sequence[Samples]) -> Validation:
    """Errors of an arm's own inverse dynamics, as anyone who loads the file has them.

    Coulomb friction is sign(q̇) here, sharp, as in a simulator; an estimate's own error
    is with friction seen through the torque's filter.
    """
    dynamics, tally = Dynamics(arm), Tally(arm.dof)
    for samples in data:
        masks = part_masks(samples)
        for start in range(0, len(samples), _BLOCK):
            rows = slice(start, start + _BLOCK)
            torque = dynamics.inverse_dynamics(
                samples.q[rows], samples.qd[rows], samples.qdd[rows]
            )
            measured = samples.tau[rows]
            tally.add(measured, measured - torque, masks[:, rows])
    return tally.result()
