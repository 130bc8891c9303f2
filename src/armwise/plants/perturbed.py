"""Perturbed arms: parameters off by a given fraction, bodies still physical."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armwise.arms import Arm, Drive, InertialParameters
from armwise.errors import ArgumentError


def perturbed(arm: Arm, relative: float, seed: int | np.random.Generator = 0) -> Arm:
    """Return an arm whose parameters are off by about a fraction; bodies stay bodies.

    Each link's pseudo-inertia P becomes G P Gᵀ with G = I + relative/2 · (random 4×4):
    what was a physical body is one again. The lengths among G's entries are in units
    of the link's own radius of gyration. Rotor inertias, friction and offsets are
    multiplied by 1 + relative · (a random number).

    Args:
        arm: The arm as described.
        relative: Typical relative error, such as 0.1.
        seed: Seed, or a generator to draw from.
    """
    if not 0.0 <= relative < 1.0:
        raise ArgumentError(f"relative must lie between 0 and 1, not {relative!r}.")
    random = np.random.default_rng(seed)
    links = tuple(
        replace(link, inertia=_perturbed_body(link.inertia, relative, random))
        for link in arm.links
    )
    joints = tuple(
        replace(joint, drive=_perturbed_drive(joint.drive, relative, random))
        for joint in arm.joints
    )
    couplings = tuple(
        replace(x, drive=_perturbed_drive(x.drive, relative, random))
        for x in arm.couplings
    )
    return replace(arm, links=links, joints=joints, couplings=couplings)


def _perturbed_body(
    body: InertialParameters, relative: float, random: np.random.Generator
) -> InertialParameters:
    draw = random.standard_normal((4, 4))
    P = body.pseudo_inertia
    size = np.sqrt(abs(np.trace(P[:3, :3]) / body.mass)) if body.mass else 0.0
    # Judgement: a body described as a point at its frame may be 0.1 m from there.
    size = size or 0.1
    scale = np.array([size, size, size, 1.0])
    # P ↦ G P Gᵀ keeps P positive definite, which is all that a body needs. P changes by
    # about twice as much as G, hence one half.
    G = np.eye(4) + 0.5 * relative * draw * scale[:, None] / scale
    return InertialParameters.from_pseudo_inertia(G @ P @ G.T)


def _perturbed_drive(
    drive: Drive, relative: float, random: np.random.Generator
) -> Drive:
    # ±1.7 is ±√3, about: uniform numbers of standard deviation one.
    factors = 1.0 + relative * random.uniform(-1.7, 1.7, 4)
    return Drive(*(float(x) for x in drive.vector * np.maximum(factors, 0.0)))
