"""Random trees, written as URDF so that strangers can read them too."""

from __future__ import annotations

import numpy as np


def random_tree_urdf(rng: np.random.Generator, joints: int) -> str:
    """A tree of revolute and prismatic joints with random axes, frames and bodies."""
    links, arcs = ['<link name="base"/>'], []
    for i in range(joints):
        A = rng.normal(size=(3, 3))
        I = A @ A.T * 0.05 + 0.02 * np.eye(3)
        m, c = rng.uniform(0.3, 5), _text(rng.uniform(-0.2, 0.2, 3))
        links.append(
            f'<link name="l{i}"><inertial><origin xyz="{c}" '
            f'rpy="{_text(rng.uniform(-1.5, 1.5, 3))}"/><mass value="{m!r}"/>'
            f'<inertia ixx="{I[0, 0]}" ixy="{I[0, 1]}" ixz="{I[0, 2]}" '
            f'iyy="{I[1, 1]}" iyz="{I[1, 2]}" izz="{I[2, 2]}"/></inertial></link>'
        )
        parent = "base" if i == 0 else f"l{rng.integers(max(0, i - 3), i)}"
        axis = rng.normal(size=3) if rng.random() < 0.6 else np.eye(3)[rng.integers(3)]
        kind = "prismatic" if rng.random() < 0.25 else "revolute"
        arcs.append(
            f'<joint name="j{i}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="l{i}"/><origin xyz="{_text(rng.uniform(-0.5, 0.5, 3))}" '
            f'rpy="{_text(rng.uniform(-3, 3, 3))}"/>'
            f'<axis xyz="{_text(axis / np.linalg.norm(axis))}"/>'
            '<limit lower="-3" upper="3" velocity="5" effort="100"/></joint>'
        )
    return f'<robot name="tree">{"".join(links + arcs)}</robot>'


def _text(values: np.ndarray) -> str:
    return " ".join(repr(float(v)) for v in values)
