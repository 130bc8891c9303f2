"""Base parameters: the combinations of parameters that torques determine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import Arm
from armwise.dynamics.mechanism import (
    UNSEEN,
    Grouping,
    Mechanism,
    mechanism_of,
    successive_ranks,
)
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Kind = Literal["identifiable", "in combination", "unidentifiable"]


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """A smallest set of combinations β = K π that explain every torque.

    Attributes:
        names: Names of all the arm's parameters.
        indices: The parameters that lead a combination each, in the order taken.
        matrix: K; its columns at `indices` are the identity.
        unidentifiable: Names of the parameters that no torque depends on.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]
    matrix: Float[np.ndarray, "count parameters"]
    unidentifiable: tuple[str, ...]

    def __repr__(self) -> str:
        """One line, without the matrix."""
        return (
            f"<BaseParameters: {self.count} combinations of {len(self.names)} "
            f"parameters, {len(self.unidentifiable)} unidentifiable>"
        )

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return len(self.indices)

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Each combination in words, such as `link_2.Iyz + 0.45·link_3.mz`."""
        return tuple(self._expression(row) for row in self.matrix)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Of every parameter, whether it is seen alone, in a sum, or not at all."""
        kinds: dict[str, Kind] = {}
        for k, name in enumerate(self.names):
            rows = np.flatnonzero(self.matrix[:, k])
            alone = rows.size == 1 and np.count_nonzero(self.matrix[rows[0]]) == 1
            if not rows.size:
                kinds[name] = "unidentifiable"
            else:
                kinds[name] = "identifiable" if alone else "in combination"
        return kinds

    def values(self, parameters: np.ndarray) -> Float[np.ndarray, " count"]:
        """Return β of a parameter vector π."""
        return self.matrix @ np.asarray(parameters, dtype=float)

    def _expression(self, row: np.ndarray) -> str:
        lead = int(np.flatnonzero(row == 1.0)[0]) if np.any(row == 1.0) else 0
        # A coefficient this small is rounding of the description's own digits; the
        # matrix keeps it.
        shown = np.flatnonzero(np.abs(row) > 1e-6 * np.abs(row).max())
        terms = [lead, *[int(k) for k in shown if k != lead]]
        parts = [_term(float(row[k]), self.names[k]) for k in terms]
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else "−" + text[2:]


def base_parameters(
    arm: Arm,
    order: Sequence[str] | None = None,
    is_free: Bool[np.ndarray, " parameters"] | None = None,
) -> BaseParameters:
    """Find the base parameters of an arm by successive ranks.

    Args:
        arm: The arm; only its geometry and gravity matter.
        order: Names of parameters in the order in which they may lead a combination;
            those left out come last, in the arm's own order.
        is_free: Which parameters are unknown; all when not given. Combinations hold
            only these.

    Returns:
        The base parameters. Taken as the arm orders them, a link's mass and mz are
        merged into the links below it, as in `aah1986`.
    """
    names, factor = arm.parameter_names, structural_factor(mechanism_of(arm))
    free = np.ones(len(names), dtype=bool) if is_free is None else is_free
    # Zeroed columns cannot lead or join a combination: known parameters drop out.
    order_of_free = [k for k in _order(arm, order) if free[k]]
    grouping = successive_ranks(factor * free, order_of_free, UNSEEN)
    absent = free & np.all(grouping.matrix == 0, axis=0)
    hidden = tuple(name for name, x in zip(names, absent, strict=True) if x)
    return _ordered(arm, grouping, hidden, order is None)


def _ordered(
    arm: Arm, grouping: Grouping, hidden: tuple[str, ...], sort: bool
) -> BaseParameters:
    # The arm's own order reads best, whatever order the ranks were taken in.
    rank = np.argsort(grouping.indices) if sort else np.arange(len(grouping.indices))
    return BaseParameters(
        names=arm.parameter_names,
        indices=tuple(int(grouping.indices[k]) for k in rank),
        matrix=grouping.matrix[rank],
        unidentifiable=hidden,
    )


def structural_factor(mechanism: Mechanism) -> Float[np.ndarray, "columns parameters"]:
    """A square matrix whose columns depend on each other as the regressor's do."""
    factor, layout = mechanism.factor, mechanism.layout
    # R of the internal columns in user parameters has the same dependencies.
    turned = np.einsum("rlk,lku->rlu", layout.by_link(factor), mechanism.to_internal)
    links = turned.reshape(len(factor), layout.link_size)
    return np.hstack([links, factor[:, layout.drives]])


def grouped_to_user(mechanism: Mechanism) -> Float[np.ndarray, "columns parameters"]:
    """Return G with Y_user = Y_grouped · G, drives unchanged."""
    inertial = mechanism.group_matrix
    drives = mechanism.layout.drive_size
    matrix = np.zeros((inertial.shape[0] + drives, inertial.shape[1] + drives))
    matrix[: inertial.shape[0], : inertial.shape[1]] = inertial
    matrix[inertial.shape[0] :, inertial.shape[1] :] = np.eye(drives)
    return matrix


def _order(arm: Arm, order: Sequence[str] | None) -> list[int]:
    """By default a link's mass comes last: it is rarely identifiable by itself."""
    if order is None:
        return arm.layout.mass_last
    index = {name: k for k, name in enumerate(arm.parameter_names)}
    if unknown := [name for name in order if name not in index]:
        raise ArgumentError(f"{arm.name} has no parameter {unknown[0]!r}.")
    first = [index[name] for name in order]
    return first + [k for k in range(len(index)) if k not in set(first)]


def _term(weight: float, name: str) -> str:
    sign = "-" if weight < 0 else "+"
    size = abs(weight)
    # For display only: 1 but for rounding of a geometry is written as 1.
    return f"{sign} {name}" if abs(size - 1) < 1e-9 else f"{sign} {size:.6g}·{name}"
