"""Random arms, and the few lines of kinematics that check what was read."""

from __future__ import annotations

import numpy as np

from armwise.arms import Arm, Drive, Frame, InertialParameters, Joint, Limits, Link
from armwise.arms.poses import pose, rotation_from_rpy


def random_body(rng: np.random.Generator) -> InertialParameters:
    A = rng.normal(size=(3, 3))
    sigma = A @ A.T * 0.02 + 0.01 * np.eye(3)
    central = np.trace(sigma) * np.eye(3) - sigma
    return InertialParameters.from_center_of_mass(
        rng.uniform(0.3, 5), rng.uniform(-0.2, 0.2, 3), central
    )


def random_pose(rng: np.random.Generator) -> np.ndarray:
    return pose(rotation_from_rpy(rng.uniform(-3, 3, 3)), rng.uniform(-0.5, 0.5, 3))


def random_arm(rng: np.random.Generator, n: int, *, anchored: bool = False) -> Arm:
    joints, links, frames = [], [], []
    for i in range(n):
        axis = rng.normal(size=3) if rng.random() < 0.6 else np.eye(3)[rng.integers(3)]
        revolute = bool(rng.random() < 0.75)
        joints.append(
            Joint(
                name=f"j{i}",
                kind="revolute" if revolute else "prismatic",
                parent=int(rng.integers(max(-1, i - 3), i)) if i else -1,
                origin=random_pose(rng),
                axis=axis / np.linalg.norm(axis),
                limits=Limits(-3.0, 2.5, 4.0, 9.0, 70.0),
                drive=Drive(*rng.uniform(0.01, 1, 4)),
                anchor=rng.normal(size=3) * (anchored and revolute),
            )
        )
        body = random_body(rng)
        if rng.random() < 0.5:
            tool, T = random_body(rng), random_pose(rng)
            frames.append(Frame(f"tool{i}", i, T, tool))
            body += tool.transformed(T)
        links.append(Link(f"l{i}", body))
    return Arm("tree", tuple(joints), tuple(links), frames=tuple(frames))


def link_poses(arm: Arm, q: np.ndarray) -> list[np.ndarray]:
    offsets = [0.0 if x.mimic is None else x.mimic.offset for x in arm.joints]
    poses: list[np.ndarray] = []
    for joint, value in zip(arm.joints, arm.coupling_matrix @ q + offsets, strict=True):
        carrier = np.eye(4) if joint.parent < 0 else poses[joint.parent]
        poses.append(carrier @ joint.pose(value))
    return poses
