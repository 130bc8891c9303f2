"""What was found of a load, and how far to trust it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from armwise.arms import INERTIAL_NAMES, InertialParameters, inertial_transform
from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.loads.noise_spectrum import NoiseModel
from armwise.loads.rigidity import Rigidity

if TYPE_CHECKING:
    from jaxtyping import Float


# How uncertain mass, centre, inertia and principal axes are, given the ten numbers.

SCALE = np.array([1.0, 0.1, 0.1, 0.1, *[0.01] * 6])
"""Typical sizes of the ten numbers of a load, for steps and conditioning."""

WELL_DETERMINED = np.deg2rad(15.0)
"""A principal axis whose direction is surer than this is worth naming."""


class Principal(NamedTuple):
    """Principal moments [kg m²], ascending, and their axes as columns."""

    moments: Float[np.ndarray, " 3"]
    axes: Float[np.ndarray, "3 3"]


@dataclass(frozen=True, eq=False)
class LoadStd:
    """Standard deviations of everything an estimate tells of a load.

    Attributes:
        parameters: Of the ten numbers in [kg], [kg m], [kg m²].
        mass: In [kg].
        center_of_mass: In [m].
        central_inertia: Entry by entry in [kg m²].
        principal_moments: In [kg m²].
        principal_axes: Angle in [rad] by which each axis may be off; infinite where
            two moments cannot be told apart.
    """

    parameters: Float[np.ndarray, " 10"]
    mass: float
    center_of_mass: Float[np.ndarray, " 3"]
    central_inertia: Float[np.ndarray, "3 3"]
    principal_moments: Float[np.ndarray, " 3"]
    principal_axes: Float[np.ndarray, " 3"]


def standard_deviations(
    parameters: InertialParameters, covariance: Float[np.ndarray, "10 10"]
) -> LoadStd:
    """Carry the covariance of the ten numbers to what is made of them."""
    own = np.sqrt(np.diag(covariance))
    center = _spread(parameters, covariance, lambda p: p.center_of_mass)
    inertia = _spread(parameters, covariance, lambda p: p.central_inertia.ravel())
    moments, axes = principal_std(parameters, covariance)
    return LoadStd(own, float(own[0]), center, inertia.reshape(3, 3), moments, axes)


def principal_of(parameters: InertialParameters) -> Principal:
    """Principal moments and axes; NaN when the inertia is not known."""
    if not np.all(np.isfinite(parameters.vector)):
        return Principal(np.full(3, np.nan), np.full((3, 3), np.nan))
    return Principal(*parameters.principal)


def principal_std(
    parameters: InertialParameters, covariance: Float[np.ndarray, "10 10"]
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
    """Standard deviations of the principal moments, and of their axes' directions.

    To first order a moment changes by eᵢᵀ δI eᵢ, and axis i turns towards axis j by
    eᵢᵀ δI eⱼ / (Iᵢ − Iⱼ): equal moments leave the axes undetermined (`aah1986` §4.1).
    """
    moments, axes = principal_of(parameters)
    if not np.all(np.isfinite(moments)):
        return np.full(3, np.nan), np.full(3, np.nan)

    def turned(p: InertialParameters) -> np.ndarray:
        inner: np.ndarray = axes.T @ p.central_inertia @ axes
        return inner.ravel()

    spread = _spread(parameters, covariance, turned).reshape(3, 3)
    gaps = np.abs(moments[:, None] - moments[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.where(np.eye(3, dtype=bool), 0.0, spread / gaps)
        # Noise pushes equal eigenvalues apart: 4 σ of the gap are not much.
        blurred = (gaps < 4.0 * np.hypot.outer(np.diag(spread), np.diag(spread))) & (
            ~np.eye(3, dtype=bool)
        )
    turns = np.where(blurred, np.inf, turns)
    return np.diag(spread), np.sqrt(np.sum(turns**2, axis=1))


def axes_statement(moments_std: np.ndarray, axes_std: np.ndarray) -> str:
    """Say in words how well the principal axes are known."""
    if not np.all(np.isfinite(moments_std)):
        return "The inertia was not determined, so there are no principal axes."
    sure = axes_std < WELL_DETERMINED
    if sure.all():
        return f"The principal axes are known to {np.rad2deg(axes_std.max()):.1f}°."
    if not sure.any():
        return (
            "The principal axes are ill-determined: the principal moments are equal "
            "within their uncertainty."
        )
    known = int(np.argmax(sure))
    return (
        f"Only the axis of principal moment {known + 1} is known, to "
        f"{np.rad2deg(axes_std[known]):.1f}°; the other two are ill-determined, their "
        "moments are equal within their uncertainty."
    )


def _spread(
    parameters: InertialParameters,
    covariance: np.ndarray,
    function: Callable[[InertialParameters], np.ndarray],
) -> np.ndarray:
    """Standard deviations of a function of the ten numbers, to first order.

    Numbers that were not determined make what depends on them NaN, nothing else.
    """
    known = np.isfinite(np.diag(covariance))
    vector = np.where(known, parameters.vector, 0.0)
    rate = []
    for k in range(10):
        step = np.zeros(10)
        step[k] = 1e-5 * SCALE[k]
        ahead = function(InertialParameters(vector + step))
        behind = function(InertialParameters(vector - step))
        rate.append((ahead - behind) / (2.0 * step[k]))
    J = np.array(rate).T
    inner = np.where(np.outer(known, known), covariance, 0.0)
    variance = np.einsum("ij,jk,ik->i", J, inner, J)
    blind = np.any(np.abs(J[:, ~known]) > 1e-12, axis=1)
    return np.where(blind, np.nan, np.sqrt(np.maximum(variance, 0.0)))


# What was found of a load, and how far to trust it.


@dataclass(frozen=True, eq=False)
class Explanation:
    """What was measured and what the load explains of it, row by row.

    Attributes:
        time: In [s].
        channels: Names of the columns.
        measured: Wrench or torque, known bodies taken off.
        predicted: What the estimate says, bias included.
    """

    time: Float[np.ndarray, " rows"]
    channels: tuple[str, ...]
    measured: Float[np.ndarray, "rows channels"]
    predicted: Float[np.ndarray, "rows channels"]

    @property
    def rmse(self) -> Float[np.ndarray, " channels"]:
        """Root-mean-square of what is left, in the channels' units."""
        left = self.measured - self.predicted
        return np.sqrt(np.mean(left**2, axis=0))


@dataclass(frozen=True, eq=False)
class LoadEstimate:
    """A load, in the axes of the frame it is held at, with its uncertainty.

    Attributes:
        frame: Name of that frame.
        parameters: The ten numbers about the frame's origin; NaN where the data say
            nothing.
        covariance: Theirs; NaN likewise.
        degrees_of_freedom: Behind each standard deviation, for Student's t.
        channels: What was measured.
        bias, bias_std: Zero of every channel, segment by segment.
        noise: Spectrum of the noise; None where none was fitted.
        condition_number: Of the weighted regressor, columns scaled to one.
        rigidity: Whether the residuals look like those of a rigid load.
        explanation: Measured and predicted, for a report.
        pose_offset: Rotation vector [rad], then translation [m] by which the sensor is
            off from the named frame, when that was asked for.
        pose_offset_std: Its standard deviation.
        notes: What the user should know.
    """

    frame: str
    parameters: InertialParameters
    covariance: Float[np.ndarray, "10 10"]
    degrees_of_freedom: Float[np.ndarray, " 10"]
    channels: tuple[str, ...] = ()
    bias: Float[np.ndarray, "segments channels"] | None = None
    bias_std: Float[np.ndarray, "segments channels"] | None = None
    noise: NoiseModel | None = None
    condition_number: float = np.nan
    rigidity: Rigidity | None = None
    explanation: Explanation | None = None
    pose_offset: Float[np.ndarray, " _"] | None = None
    pose_offset_std: Float[np.ndarray, " _"] | None = None
    notes: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """Mass in [kg]."""
        return self.parameters.mass

    @property
    def center_of_mass(self) -> Float[np.ndarray, " 3"]:
        """Centre of mass in the frame in [m]."""
        return self.parameters.center_of_mass

    @property
    def central_inertia(self) -> Float[np.ndarray, "3 3"]:
        """Inertia about the centre of mass, in the frame's axes, in [kg m²]."""
        return self.parameters.central_inertia

    @cached_property
    def principal(self) -> Principal:
        """Principal moments and axes."""
        return principal_of(self.parameters)

    @cached_property
    def std(self) -> LoadStd:
        """Standard deviations of all of it."""
        return standard_deviations(self.parameters, self.covariance)

    @property
    def is_complete(self) -> bool:
        """Whether all ten parameters were determined."""
        return bool(np.all(np.isfinite(self.parameters.vector)))

    @property
    def is_physical(self) -> bool:
        """Whether some body can have these numbers."""
        return self.is_complete and self.parameters.is_physical()

    def interval(self, confidence: float = 0.95) -> Float[np.ndarray, "10 2"]:
        """Lower and upper ends of what each parameter may be, at some confidence."""
        from scipy.stats import t

        reach = t.ppf(0.5 + 0.5 * confidence, self.degrees_of_freedom)
        half = reach * self.std.parameters
        return self.parameters.vector[:, None] + half[:, None] * np.array([-1.0, 1.0])

    def in_frame(self, T: Float[np.ndarray, "4 4"], name: str) -> LoadEstimate:
        """Express the same load in another frame: T maps this frame to that one."""
        X = inertial_transform(T)
        covariance = X @ self.covariance @ X.T
        moved = self.parameters.transformed(T)
        freedom = np.full(10, np.nanmin(self.degrees_of_freedom))
        return replace(
            self,
            frame=name,
            parameters=moved,
            covariance=covariance,
            degrees_of_freedom=freedom,
        )

    def statement(self) -> str:
        """Say in plain words what is held and what is not known."""
        std, c = self.std, self.center_of_mass
        lines = [
            f"mass {self.mass:.4f} ± {std.mass:.4f} kg",
            "centre of mass "
            + ", ".join(
                f"{a * 1e3:.1f} ± {s * 1e3:.1f}"
                for a, s in zip(c, std.center_of_mass, strict=True)
            )
            + f" mm in {self.frame}",
        ]
        if self.is_complete:
            moments = ", ".join(
                f"{a:.3g} ± {s:.2g}"
                for a, s in zip(
                    self.principal.moments, std.principal_moments, strict=True
                )
            )
            lines.append(f"principal moments {moments} kg m²")
            if defect := self.parameters.defect():
                lines.append(f"No body has exactly these numbers: {defect}.")
        lines.append(axes_statement(std.principal_moments, std.principal_axes))
        if self.rigidity is not None:
            lines.append(self.rigidity.statement)
        return "\n".join([*lines, *self.notes])


# Load estimates as files: numbers and covariance, to be used again later.

FORMAT = "armwise load 1"


def load_to_dict(load: LoadEstimate) -> dict[str, Any]:
    """Return an estimate as plain numbers; what is not known is None."""
    std = load.std
    return {
        "format": FORMAT,
        "frame": load.frame,
        "mass": _plain(load.mass),
        "center_of_mass": _plain(load.center_of_mass),
        "central_inertia": _plain(load.central_inertia),
        "principal_moments": _plain(load.principal.moments),
        "principal_axes": _plain(load.principal.axes),
        "std": {
            "mass": _plain(std.mass),
            "center_of_mass": _plain(std.center_of_mass),
            "central_inertia": _plain(std.central_inertia),
            "principal_moments": _plain(std.principal_moments),
            "principal_axes": _plain(std.principal_axes),
        },
        "parameters": dict(
            zip(INERTIAL_NAMES, _plain(load.parameters.vector), strict=True)
        ),
        "covariance": _plain(load.covariance),
        "degrees_of_freedom": _plain(load.degrees_of_freedom),
        "is_physical": load.is_physical,
        "condition_number": _plain(load.condition_number),
        "bias": None if load.bias is None else _plain(load.bias),
        "channels": list(load.channels),
        "rigidity": None
        if load.rigidity is None
        else {
            "is_rigid": load.rigidity.is_rigid,
            "excess": _plain(load.rigidity.excess),
            "unexplained": _plain(load.rigidity.unexplained),
            "band_hz": _plain(load.rigidity.band_hz),
        },
        "pose_offset": None if load.pose_offset is None else _plain(load.pose_offset),
        "rmse": None if load.explanation is None else _plain(load.explanation.rmse),
        "notes": list(load.notes),
    }


def write_load_estimate(load: LoadEstimate, path: str | Path) -> Path:
    """Write an estimate as JSON."""
    place = Path(path)
    text = json.dumps(load_to_dict(load), indent=1, ensure_ascii=False)
    write_atomically(place, text + "\n")
    return place


def read_load_estimate(path: str | Path) -> LoadEstimate:
    """Read an estimate that `write_load_estimate` wrote.

    Raises:
        ArgumentError: If the file is no such thing.
    """
    place = Path(path)
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        if found.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        vector = _array([found["parameters"][name] for name in INERTIAL_NAMES])
        covariance = _array(found["covariance"]).reshape(10, 10)
        freedom = _array(found["degrees_of_freedom"]).reshape(10)
        frame = str(found["frame"])
    except OSError as problem:
        raise ArgumentError(f"{place}: {problem.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ArgumentError(
            f"{place} is no load estimate of Armwise ({problem}). Write one with "
            "identify-load -o."
        ) from None
    return LoadEstimate(frame, InertialParameters(vector), covariance, freedom)


def _plain(value: Any) -> Any:
    array = np.asarray(value, dtype=float)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()


def _array(values: Any) -> np.ndarray:
    return np.array(values, dtype=object).astype(float)
