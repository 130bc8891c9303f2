"""Information of a motion about the base parameters, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics, base_parameters, grouped_to_user
from armwise.excitation.bounds import Bounds
from armwise.programs import (
    Backend,
    Kernel,
    Number,
    Program,
    Scalar,
    gradient,
    replay,
    sqrt,
    trace,
)

if TYPE_CHECKING:
    from jaxtyping import Float

STATES = ("q", "qd", "qdd")

# Judgement: a thousandth of a column's typical root mean square, below which a
# parameter is not excited for practical purposes.
RIDGE = 1e-6
"""Regularisation, as a fraction of the information of random motion at the limits: it
keeps log det finite where a motion says nothing of a parameter."""


@dataclass(frozen=True)
class Row:
    """One joint's row of the regressor: where its entries are stored, their columns."""

    rows: slice
    columns: tuple[int, ...]


class InformationModel:
    """Information YᵀΣ⁻¹Y of motions about the base parameters of an arm.

    Args:
        arm: The arm.
        bounds: Its limits; they set the scale of each parameter.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N].
        backend: What runs the programs.
    """

    def __init__(
        self,
        arm: Arm,
        bounds: Bounds,
        torque_std: np.ndarray,
        backend: Backend = "auto",
    ) -> None:
        dynamics = Dynamics(arm, backend)
        self._exact = dynamics.kernel("grouped_regressor")
        soft = soften(self._exact.program)
        self._soft = Kernel(soft, backend)
        self._gradient = Kernel(gradient(soft, STATES), backend)
        # Friction reverses within 2 % of full speed: sharp, yet with a gradient.
        self._softness = np.array([0.02 * float(bounds.velocity.min())])
        self.rows = _row_layout(self._exact.program)
        self._weight = torque_std**-2.0
        self.base = base_parameters(arm)
        to_base = grouped_to_user(dynamics.mechanism)[:, self.base.indices]
        # Unit scales first: `_usual_size` measures with them what the scales must be.
        self.scale = np.ones(self.base.count)
        self._to_base = to_base
        self.scale = 1.0 / np.sqrt(_usual_size(self, bounds))
        self._to_base = to_base * self.scale

    def of_states(
        self, states: Sequence[np.ndarray]
    ) -> Float[np.ndarray, "count count"]:
        """Mean information of a sample, parameters scaled; friction as it is."""
        (columns,) = self._exact.columns(list(states))
        return self._collect(columns)

    @property
    def program(self) -> Program:
        """The traced regressor, whose rows' non-zeros are `rows`."""
        return self._exact.program

    def softened(
        self, states: Sequence[np.ndarray]
    ) -> tuple[Float[np.ndarray, "count count"], Float[np.ndarray, "entries samples"]]:
        """Mean information with rounded Coulomb friction, and the entries of Y."""
        (columns,) = self._soft.columns(list(states), [self._softness])
        return self._collect(columns), columns

    def slopes(
        self,
        states: Sequence[np.ndarray],
        columns: np.ndarray,
        weight: Float[np.ndarray, "count count"],
    ) -> list[Float[np.ndarray, "samples dof"]]:
        """Gradient of ⟨weight, softened information⟩ by q, q̇, q̈ at every sample.

        d⟨G, A⟩ = 2 Σ ⟨Y G, dY⟩ for a symmetric G.
        """
        inner = self._to_base @ weight @ self._to_base.T
        weighted = np.empty((columns.shape[1], columns.shape[0]))
        per_sample = 2.0 / columns.shape[1]
        for row, precision in zip(self.rows, self._weight, strict=True):
            part = inner[np.ix_(row.columns, row.columns)] * (per_sample * precision)
            weighted[:, row.rows] = columns[row.rows].T @ part
        return self._gradient([*states, weighted], [self._softness])

    def _collect(self, columns: np.ndarray) -> np.ndarray:
        blocks = [columns[row.rows] for row in self.rows]
        products = [block @ block.T / columns.shape[1] for block in blocks]
        return self.collect(products)

    def collect(
        self, products: Sequence[Float[np.ndarray, "... width width"]]
    ) -> Float[np.ndarray, "... count count"]:
        """Turn every joint's mean of rowᵀ row into information, parameters scaled."""
        size = self._to_base.shape[0]
        total = np.zeros((*products[0].shape[:-2], size, size))
        for row, product, precision in zip(
            self.rows, products, self._weight, strict=True
        ):
            columns = np.asarray(row.columns)
            total[..., columns[:, None], columns] += precision * product
        collected: np.ndarray = self._to_base.T @ total @ self._to_base
        return collected


def soften(program: Program) -> Program:
    """Return a regressor's structural non-zeros, sign(x) rounded to x/√(x² + w²)."""
    (output,) = program.outputs
    entries = [output.entries[k] for k in output.nonzero]

    def softened(
        softness: list[Number], **inputs: list[Number]
    ) -> dict[str, list[Number]]:
        width = softness[0] * softness[0]
        rules = {"sign": lambda x: x / sqrt(x * x + width)}
        done = replay(program, inputs, rules)
        return {
            "entries": [done[x.index] if isinstance(x, Scalar) else x for x in entries]
        }

    sizes = {item.name: item.size for item in program.inputs}
    return trace("soft_regressor", softened, sizes, {"softness": 1})


def _row_layout(program: Program) -> list[Row]:
    (output,) = program.outputs
    width = output.shape[1]
    rows: list[Row] = []
    start = 0
    for j in range(output.shape[0]):
        columns = tuple(k % width for k in output.nonzero if k // width == j)
        rows.append(Row(slice(start, start + len(columns)), columns))
        start += len(columns)
    return rows


def _usual_size(model: InformationModel, bounds: Bounds) -> np.ndarray:
    """Mean square of each base column over random states within the limits."""
    # Any fixed seed: scales must be the same for every motion of an arm.
    rng = np.random.default_rng(1986)
    # 2000 states give mean squares to a few per cent, all that a scale needs.
    u = rng.uniform(-1.0, 1.0, (3, 2000, bounds.dof))
    states = (
        bounds.middle + u[0] * bounds.half_range,
        u[1] * bounds.velocity,
        u[2] * bounds.acceleration,
    )
    return np.diag(model.of_states(states)).copy()
