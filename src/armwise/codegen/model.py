"""Model that code is generated for: an arm, its numbers, and which stay open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import BASE, INERTIAL_NAMES, Arm, inertial_transform
from armwise.dynamics import (
    Grouping,
    Mechanism,
    Scalar,
    add,
    equations,
    mechanism_of,
    mul,
    total,
)
from armwise.errors import ArgumentError
from armwise.programs import trace

if TYPE_CHECKING:
    from jaxtyping import Float


Parameters = Literal["constants", "struct"]
"""Whether parameters are numbers in the code or fields that may change."""

LOAD_SIZE = len(INERTIAL_NAMES)

_ROUNDING = 1e-13
"""Grouped parameters this much smaller than the largest of their kind are rounding."""

_KINDS = ("m", "hx", "hy", "hz", "Sxx", "Sxy", "Sxz", "Syy", "Syz", "Szz")
"""What the ten internal parameters of a link are called in C."""
_KIND_UNITS = ("kg", "kg m", "kg m^2")
"""Units by order of the moment: mass, first and second moments."""


@dataclass(frozen=True, eq=False)
class CodeModel:
    """An arm whose parameters are numbers, or open until the code runs.

    Attributes:
        arm: The arm.
        frame: Link or frame for kinematics and for the load.
        parameters: Whether the arm's parameters are numbers or fields of a struct.
        has_load: Whether a load of ten parameters is added at `frame` at run time.
        pruned: Indices among the grouped parameters that are left out.
        is_grouped: Whether parameters without effect of their own are merged first.
    """

    arm: Arm
    frame: str
    parameters: Parameters = "constants"
    has_load: bool = False
    pruned: frozenset[int] = field(default_factory=frozenset)
    is_grouped: bool = True

    @cached_property
    def mechanism(self) -> Mechanism:
        """The arm's geometry."""
        mechanism = mechanism_of(self.arm)
        if self.is_grouped:
            return mechanism
        size = mechanism.layout.link_size
        every = replace(mechanism, key=f"{mechanism.key}/ungrouped")
        vars(every)["grouping"] = Grouping(tuple(range(size)), np.eye(size), ())
        return every

    @cached_property
    def bodies(self) -> tuple[float, ...]:
        """Grouped inertial parameters; rounding noise and what is pruned are zero."""
        values = self.mechanism.grouped(self.arm.parameters)
        kinds = np.array(moment_orders(self.mechanism))
        rounded = np.array(values, dtype=float)
        # Kind by kind: kg, kg m and kg m² have no common scale.
        for kind in range(3):
            group = np.abs(np.where(kinds == kind, values, 0.0))
            rounded[(kinds == kind) & (group <= _ROUNDING * group.max(initial=0.0))] = (
                0.0
            )
        rounded[list(self.pruned)] = 0.0
        return tuple(float(x) for x in rounded)

    @cached_property
    def drives(self) -> tuple[float, ...]:
        """Rotor inertia, viscous, Coulomb friction and offset of every motor."""
        return tuple(float(x) for x in self.arm.parameters[self.arm.layout.drives])

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """C identifiers of the grouped parameters, such as `link_3_Sxx`."""
        layout = self.mechanism.layout
        kinds = dict(zip(INERTIAL_NAMES, _KINDS, strict=True))
        return tuple(
            f"link_{layout.owners[i] + 1}_{kinds[layout.kinds[i]]}"
            for i in self.mechanism.grouping.indices
        )

    @cached_property
    def body_units(self) -> tuple[str, ...]:
        """Units of the grouped parameters."""
        return tuple(_KIND_UNITS[order] for order in moment_orders(self.mechanism))

    @cached_property
    def load_matrix(self) -> Float[np.ndarray, "groups 10"]:
        """Grouped parameters of a unit load: ten numbers in the frame `frame`."""
        link, T = self.arm.find_frame(self.frame)
        if link == BASE:
            raise ArgumentError(
                f"{self.frame!r} is fixed to the base and carries no load. "
                f"Choose a frame on a moving link: {self.arm.links[-1].name}."
            )
        columns = self.mechanism.group_matrix[:, self.arm.layout.link(link)]
        matrix = columns @ inertial_transform(T)
        # Rounding of the frame's rotation: as exact zeros they cost no operation.
        small = np.abs(matrix) <= 1e-12 * np.abs(matrix).max(initial=0.0)
        return np.where(small, 0.0, matrix)

    def open_sizes(self, bodies: bool, drives: bool) -> dict[str, int]:
        """Return the sizes of what a function is given once, at run time."""
        sizes: dict[str, int] = {}
        if self.parameters == "struct":
            if bodies:
                sizes["body"] = len(self.bodies)
            if drives:
                sizes["drive"] = len(self.drives)
        if self.has_load and bodies:
            sizes["load"] = LOAD_SIZE
        return sizes

    def bound(
        self, values: Mapping[str, Sequence[Scalar]]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Return bodies and drives: numbers, or made of what is given at run time."""
        bodies: list[Scalar] = list(values.get("body", self.bodies))
        drives: list[Scalar] = list(values.get("drive", self.drives))
        if "load" in values:
            added = [
                total(
                    *[mul(float(w), x) for w, x in zip(r, values["load"], strict=True)]
                )
                for r in self.load_matrix
            ]
            bodies = [add(a, b) for a, b in zip(bodies, added, strict=True)]
        return bodies, drives

    @cached_property
    def mass_structure(self) -> list[list[bool]]:
        """Which entries of M can differ from zero."""
        equation = equations(self.mechanism)["mass_matrix"]
        sizes = self.open_sizes(bodies=True, drives=True)

        def function(q: list[Scalar], **values: list[Scalar]) -> dict[str, object]:
            bodies, drives = self.bound(values)
            return equation.function(q=q, bodies=bodies, drives=drives)

        program = trace("mass_matrix", function, {"q": self.arm.dof}, sizes)
        # Traced, not sampled: zero for every posture, not by chance.
        nonzero = set(program.output("M").nonzero)
        dof = self.arm.dof
        return [[dof * i + j in nonzero for j in range(dof)] for i in range(dof)]


def moment_orders(mechanism: Mechanism) -> list[int]:
    """Order of each grouped parameter: 0 a mass, 1 a first, 2 a second moment."""
    layout = mechanism.layout
    orders = np.full(layout.link_size, 2)
    orders[layout.mass] = 0
    orders[layout.inertial("mx", "my", "mz")] = 1
    return [int(orders[i]) for i in mechanism.grouping.indices]


__all__ = ["LOAD_SIZE", "CodeModel", "Parameters", "moment_orders"]
