"""Layout of an arm's parameter vector π: the index of every parameter, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

INERTIAL_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""Order of a link's ten parameters, about its frame's origin (that of iDynTree)."""

DRIVE_NAMES = ("rotor_inertia", "viscous", "coulomb", "offset")
"""Order of a drive's four parameters."""

BASE = -1
"""The index that stands for the fixed base where a link index is expected."""

_LINK = len(INERTIAL_NAMES)
_DRIVE = len(DRIVE_NAMES)


@dataclass(frozen=True)
class ParameterLayout:
    """Which entries of π belong to which link and drive: all links, then all drives.

    The drives are the joints', in order, then the couplings'. Vectors that hold only
    the drives' parameters, or these after grouped inertial ones, are indexed with
    `start`, the index of their first drive parameter.

    Attributes:
        link_count: Number of moving links, which is the number of joints.
        drive_count: Number of drives: joints and couplings.
    """

    link_count: int
    drive_count: int

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.drives.stop

    @property
    def links(self) -> slice:
        """The inertial parameters of all links."""
        return slice(0, _LINK * self.link_count)

    @property
    def drives(self) -> slice:
        """The parameters of all drives."""
        return slice(self.links.stop, self.links.stop + self.drive_size)

    @property
    def link_size(self) -> int:
        """Number of inertial parameters of all links."""
        return self.links.stop

    @property
    def drive_size(self) -> int:
        """Number of parameters of all drives."""
        return _DRIVE * self.drive_count

    def link(self, i: int) -> slice:
        """Return the ten inertial parameters of one link."""
        # Indexing a range refuses what is out of bounds; negative ones count from the
        # end.
        i = range(self.link_count)[i]
        return slice(_LINK * i, _LINK * (i + 1))

    def joint(self, i: int, name: str, start: int | None = None) -> int:
        """Return one parameter of one drive: a joint's, or, counted on, a coupling's.

        Args:
            i: Number of the joint; couplings follow the joints.
            name: One of DRIVE_NAMES.
            start: Index of the first drive parameter, if it is not this layout's.
        """
        return int(self.drive(name, start=start)[i])

    def inertial(self, *names: str) -> Int[np.ndarray, " links*names"]:
        """Return these inertial parameters of every link, link by link."""
        return _indices(0, self.link_count, INERTIAL_NAMES, names)

    def drive(self, *names: str, start: int | None = None) -> Int[np.ndarray, " n"]:
        """Return these parameters of every drive, drive by drive.

        Args:
            names: From DRIVE_NAMES.
            start: Index of the first drive parameter, if it is not this layout's.
        """
        first = self.drives.start if start is None else start
        return _indices(first, self.drive_count, DRIVE_NAMES, names)

    @property
    def mass(self) -> Int[np.ndarray, " links"]:
        """The mass of every link."""
        return self.inertial("m")

    @property
    def non_negative(self) -> Int[np.ndarray, " n"]:
        """Rotor inertias and friction: they weigh something and only take energy."""
        return self.drive("rotor_inertia", "viscous", "coulomb")

    @property
    def mass_last(self) -> list[int]:
        """All indices, a link's mass after its other parameters."""
        links = self.inertial(*INERTIAL_NAMES[1:], INERTIAL_NAMES[0])
        return [*links.tolist(), *range(self.drives.start, self.drives.stop)]

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each parameter is: `m`, `mx`, …, `coulomb`, `offset`."""
        return self.link_count * INERTIAL_NAMES + self.drive_count * DRIVE_NAMES

    @property
    def owners(self) -> Int[np.ndarray, " parameters"]:
        """Number of the link, or of the drive, that each parameter belongs to."""
        links = np.repeat(np.arange(self.link_count), _LINK)
        drives = np.repeat(np.arange(self.drive_count), _DRIVE)
        return np.concatenate([links, drives])

    @property
    def is_inertial(self) -> Bool[np.ndarray, " parameters"]:
        """Which parameters are the links'."""
        return np.arange(self.size) < self.links.stop

    def by_link(
        self, values: Float[np.ndarray, "... parameters"]
    ) -> Float[np.ndarray, "... links 10"]:
        """Return the inertial parameters as one row per link; a view if possible."""
        shape = (*values.shape[:-1], self.link_count, _LINK)
        return values[..., self.links].reshape(shape)

    def by_drive(
        self, values: Float[np.ndarray, "... parameters"]
    ) -> Float[np.ndarray, "... drives 4"]:
        """Return the drives' parameters as one row per drive; a view if possible."""
        shape = (*values.shape[:-1], self.drive_count, _DRIVE)
        return values[..., self.drives].reshape(shape)


def _indices(
    first: int, count: int, names: tuple[str, ...], selected: tuple[str, ...]
) -> Int[np.ndarray, " n"]:
    offsets = [names.index(name) for name in selected]
    starts = first + len(names) * np.arange(count)
    return (starts[:, None] + np.array(offsets, dtype=int)).ravel()
