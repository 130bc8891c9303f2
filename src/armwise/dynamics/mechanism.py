"""Mechanism: an arm's geometry, gravity and couplings, without its parameters."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, ParameterLayout
from armwise.dynamics.newton_euler import drive_columns, torque_regressor
from armwise.dynamics.skeleton import Skeleton, build_skeleton, inertia_to_internal
from armwise.dynamics.vectors import Scalar, total, weigh

if TYPE_CHECKING:
    from jaxtyping import Float


# Independent columns of a matrix, by successive ranks.

# Judgement: R comes from a QR of random states with errors near 1e-14; geometry that is
# written with ten digits still counts as exact.
TOLERANCE = 1e-9
"""A column whose part outside the earlier ones is smaller than this is dependent."""

# Judgement: links and axes that differ at all leave 2e-3 and more on some hundred
# robots; quaternions of six digits leave up to 4e-6, which no torque sensor sees.
UNSEEN = 2e-5
"""The same for what data shall determine: below is rounding of a description."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Independent columns, and every column as a combination of them.

    Attributes:
        indices: The independent columns, in the order they were taken.
        matrix: K with columns = independent columns · K.
        vanishing: Columns that are zero altogether.
    """

    indices: tuple[int, ...]
    matrix: Float[np.ndarray, "independent columns"]
    vanishing: tuple[int, ...]


def successive_ranks(
    columns: Float[np.ndarray, "rows columns"],
    order: Sequence[int] | None = None,
    tolerance: float = TOLERANCE,
) -> Grouping:
    """Take columns in order, keeping each that raises the rank (`izaguirre1992` §6).

    Args:
        columns: The matrix.
        order: In which order to try the columns; as they stand if not given.
        tolerance: Part of a column outside the earlier ones that counts as none.
    """
    count = columns.shape[1]
    norms = np.linalg.norm(columns, axis=0)
    # Relative to the largest column: columns of a light link are not zero.
    least = TOLERANCE * float(norms.max(initial=0.0))
    if (norms > least).any():
        # Beside the usual one what rounding leaves of a column is no column either.
        least = max(least, tolerance * float(np.median(norms[norms > least])))
    vanishing = [k for k in range(count) if norms[k] <= least]
    basis = np.zeros((columns.shape[0], min(columns.shape)))
    independent: list[int] = []
    for k in range(count) if order is None else order:
        if norms[k] <= least or len(independent) == basis.shape[1]:
            continue
        span = basis[:, : len(independent)]
        residual = columns[:, k] / norms[k]
        # Gram–Schmidt loses digits once; a second pass restores orthogonality.
        for _ in range(2):  # twice is enough
            residual = residual - span @ (span.T @ residual)
        residual_norm = float(np.linalg.norm(residual))
        if residual_norm > tolerance:
            basis[:, len(independent)] = residual / residual_norm
            independent.append(k)
    matrix = np.zeros((len(independent), count))
    if independent:
        span = basis[:, : len(independent)]
        # In the span of the independent columns the others are exact combinations.
        matrix = np.linalg.solve(span.T @ columns[:, independent], span.T @ columns)
        # Weights whose contribution is below 1e-10 of the column are rounding; written
        # out, they would clutter every combination.
        matrix[np.abs(matrix * norms[independent][:, None]) < 1e-10 * norms] = 0.0
        matrix[:, vanishing] = 0.0
        matrix[:, independent] = np.eye(len(independent))
    return Grouping(tuple(independent), matrix, tuple(vanishing))


# The mechanism.

# Judgement: three or four arms' worth of joints.
LONGEST_GROUPED = 24
"""Joints beyond which parameters are left ungrouped: finding groups is cubic."""

_PREFERENCE = ("mx", "my", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mz", "m")
"""Within a link, m, hz and Σzz are tried last: a revolute joint passes them on."""

# Judgement: more geometries than a program handles at once.
_MOST_REMEMBERED = 64
_mechanisms: OrderedDict[str, Mechanism] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Geometry, gravity and couplings of an arm: all that its programs depend on.

    Attributes:
        skeleton: Internal frames.
        coupling: Joint positions from coordinates: q_joints = coupling · q + offset.
        offset: See coupling.
        weights: One row per motor that several joints turn.
        key: Hash of all of it.
    """

    skeleton: Skeleton
    coupling: Float[np.ndarray, "joints dof"]
    offset: Float[np.ndarray, " joints"]
    weights: Float[np.ndarray, "couplings dof"]
    key: str

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.coupling.shape[1])

    @cached_property
    def layout(self) -> ParameterLayout:
        """Index of every parameter of the arm, and of every internal one."""
        return ParameterLayout(self.skeleton.size, len(self.drive_rows))

    @property
    def is_coupled(self) -> bool:
        """Whether some joint follows another."""
        return not np.array_equal(self.coupling, np.eye(*self.coupling.shape))

    @property
    def drive_rows(self) -> Float[np.ndarray, "drives dof"]:
        """What each motor sees of q̇: the joints' own, then the coupled ones."""
        return np.vstack([self.coupling, self.weights])

    def joints(self, x: Sequence[Scalar], is_position: bool = False) -> list[Scalar]:
        """Turn coordinates (or their derivatives) into those of all joints."""
        if not self.is_coupled:
            return list(x)
        moved = [weigh(row, x) for row in self.coupling]
        if is_position:
            moved = [
                total(m, float(c)) for m, c in zip(moved, self.offset, strict=True)
            ]
        return moved

    def coordinates(self, torques: Sequence[Scalar]) -> list[Scalar]:
        """Turn the torques of all joints into those of the coordinates."""
        if not self.is_coupled:
            return list(torques)
        return [weigh(column, torques) for column in self.coupling.T]

    @cached_property
    def to_internal(self) -> Float[np.ndarray, "links 10 10"]:
        """Each link's ten parameters → ten internal ones."""
        return np.stack([inertia_to_internal(s) for s in self.skeleton.segments])

    @cached_property
    def grouping(self) -> Grouping:
        """Internal parameters that remain when those without effect are merged."""
        size = self.layout.link_size
        if self.skeleton.size > LONGEST_GROUPED:
            return Grouping(tuple(range(size)), np.eye(size), ())
        # Grouping works on joints; with followers the coordinates hide some of them.
        factor = _factor(self, of_joints=True) if self.is_coupled else self.factor
        return successive_ranks(
            factor[:, :size], self.layout.inertial(*_PREFERENCE).tolist()
        )

    @cached_property
    def factor(self) -> Float[np.ndarray, "columns columns"]:
        """R of the regressor in random states: ten internal columns a link, drives."""
        return _factor(self)

    @cached_property
    def group_matrix(self) -> Float[np.ndarray, "groups links*10"]:
        """All links' parameters, in the user's frames → grouped internal ones."""
        blocks = [
            self.grouping.matrix[:, self.layout.link(i)] @ block
            for i, block in enumerate(self.to_internal)
        ]
        return np.hstack(blocks) if blocks else np.zeros((0, 0))

    def grouped(self, parameters: np.ndarray) -> Float[np.ndarray, " groups"]:
        """Return the grouped internal parameters of an arm's parameter vector."""
        return self.group_matrix @ parameters[self.layout.links]

    def bodies(self, grouped: Sequence[Scalar]) -> list[list[Scalar]]:
        """Spread grouped parameters over the links; what was merged away is zero."""
        flat: list[Scalar] = [0.0] * self.layout.link_size
        for index, value in zip(self.grouping.indices, grouped, strict=True):
            flat[index] = value
        return [flat[self.layout.link(i)] for i in range(self.skeleton.size)]


def mechanism_of(arm: Arm) -> Mechanism:
    """Return the mechanism of an arm; arms that differ in parameters share one."""
    key = _key(arm)
    if key in _mechanisms:
        _mechanisms.move_to_end(key)
        return _mechanisms[key]
    offset = np.array([j.mimic.offset if j.mimic else 0.0 for j in arm.joints])
    weights = np.array([c.weights for c in arm.couplings]).reshape(-1, arm.dof)
    mechanism = Mechanism(
        build_skeleton(arm), arm.coupling_matrix, offset, weights, key
    )
    _mechanisms[key] = mechanism
    # Least recently used goes first: a fleet of variants must not fill memory.
    while len(_mechanisms) > _MOST_REMEMBERED:
        _mechanisms.popitem(last=False)
    return mechanism


def _key(arm: Arm) -> str:
    digest = hashlib.sha256(np.asarray(arm.gravity, dtype=float).tobytes())
    for joint in arm.joints:
        # Inertial parameters are left out on purpose: programs take them as inputs.
        digest.update(f"{joint.kind}{joint.parent}{joint.mimic}".encode())
        for part in (joint.origin, joint.axis, joint.anchor):
            digest.update(np.asarray(part, dtype=float).tobytes())
    for coupling in arm.couplings:
        digest.update(np.asarray(coupling.weights, dtype=float).tobytes())
    return digest.hexdigest()


def _factor(mechanism: Mechanism, of_joints: bool = False) -> np.ndarray:
    """R factor of the regressor in random states, by the very equations traced."""
    samples, layout = 40, mechanism.layout
    # Ranks at random states are those at almost all states; 40 × dof rows suffice.
    states = np.random.default_rng(20).uniform(-2.0, 2.0, (3, mechanism.dof, samples))
    q, qd, qdd = (list(state) for state in states)
    rows = torque_regressor(
        mechanism.skeleton,
        mechanism.joints(q, is_position=True),
        mechanism.joints(qd),
        mechanism.joints(qdd),
    )
    drives = drive_columns(mechanism.drive_rows, qd, qd, qdd)
    dense = np.zeros((layout.size, mechanism.skeleton.size, samples))
    for i, row in enumerate(rows):
        for k, value in enumerate(chain.from_iterable(row)):
            dense[k, i] = value
    if not of_joints:
        dense = np.einsum("ij,cis->cjs", mechanism.coupling, dense)
        for k, column in enumerate(drives):
            for i, value in enumerate(column):
                dense[layout.drives.start + k, i] = value
    return np.asarray(np.linalg.qr(dense.reshape(dense.shape[0], -1).T, mode="r"))
