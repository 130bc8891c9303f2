"""Parameter adaptation: what is adapted, update laws, guard against divergence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import DRIVE_NAMES, Arm
from armwise.control.feedback import restored
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# Update laws: gradient, least squares, forgetting, bounded gain.

LARGEST_GROWTH = 1e6
"""Growth of a gain that forgets and has no bound of its own: rounding of the largest
directions, 1e-16 of them, then stays far below the smallest ones."""

LEAK_RATE = 1.0
"""Rate in [1/s] at which an estimate at twice its reach returns: slow beside control,
fast beside any drift."""


@dataclass(frozen=True, eq=False)
class UpdateLaw:
    """One family: â' = −P x, d/dt P⁻¹ = −λ P⁻¹ + WᵀW, λ = λ0 (1 − ‖P‖/k0).

    A fixed P is the gradient rule; λ0 = 0 is least squares; λ0 > 0 forgets
    exponentially; a finite k0 bounds the gain (`astley1996` Eq. 3.38–3.42). ‖P‖ is
    Frobenius', never below the spectral norm, so the bound holds for that one too.

    Attributes:
        gain: P at the start: one number, one per parameter, or a matrix.
        adapts_gain: Whether P follows the excitation.
        forgetting: λ0 in [1/s].
        bound: k0, the largest ‖P‖; where P forgets and none is given, `LARGEST_GROWTH`
            times its largest entry at the start.
        dead_band: Tracking errors s smaller than this teach nothing, per joint in the
            units of s.
        prediction_dead_band: The same for prediction errors, in [N m] or [N].
        reach: How far the estimate may wander from the described parameters, in
            multiples of their size; beyond it leaks back. Infinite: anywhere.
    """

    gain: float | Float[np.ndarray, "*shape"] = 1.0
    adapts_gain: bool = False
    forgetting: float = 0.0
    bound: float = field(default=np.inf)
    dead_band: float = 0.0
    prediction_dead_band: float = 0.0
    # Judgement: a truth of up to three times the description, or of the other sign, is
    # within it; noise and friction that no parameter explains stop driving the estimate
    # there instead of never.
    reach: float = 2.0

    def __post_init__(self) -> None:
        gain = np.asarray(self.gain, dtype=float)
        if gain.ndim > 2:
            raise ArgumentError("The gain must be a number, a vector or a matrix.")
        require_positive_definite(gain)
        object.__setattr__(self, "gain", gain if gain.ndim else float(gain))
        if self.forgetting < 0 or self.dead_band < 0 or self.prediction_dead_band < 0:
            raise ArgumentError("Forgetting and dead-bands cannot be negative.")
        if not self.bound > 0:
            raise ArgumentError(
                f"The gain bound k0 must be positive, not {self.bound}."
            )
        if not self.reach > 0:
            raise ArgumentError(f"The reach must be positive, not {self.reach}.")
        if self.forgetting and np.isinf(self.bound):
            bound = LARGEST_GROWTH * float(np.max(np.abs(gain)))
            object.__setattr__(self, "bound", bound)

    @classmethod
    def gradient(cls, gain: float | np.ndarray, dead_band: float = 0.0) -> UpdateLaw:
        """P stays as it is: for tracking, not for knowing."""
        return cls(gain, dead_band=dead_band)

    @classmethod
    def least_squares(
        cls, gain: float | np.ndarray, dead_band: float = 0.0
    ) -> UpdateLaw:
        """P shrinks with every bit of excitation; the best average, ever slower."""
        return cls(gain, adapts_gain=True, dead_band=dead_band)

    @classmethod
    def exponential(
        cls, gain: float | np.ndarray, forgetting: float, dead_band: float = 0.0
    ) -> UpdateLaw:
        """Least squares that forgets with the rate λ0.

        P grows where nothing excites, up to `LARGEST_GROWTH` times its start.
        """
        return cls(gain, True, forgetting, dead_band=dead_band)

    @classmethod
    def bounded_gain(
        cls,
        gain: float | np.ndarray,
        forgetting: float,
        bound: float,
        dead_band: float = 0.0,
    ) -> UpdateLaw:
        """Forget only as far as ‖P‖ stays below the bound k0."""
        return cls(gain, True, forgetting, bound, dead_band)

    def initial_gain(
        self, parameters: int, batch: tuple[int, ...] = ()
    ) -> Float[np.ndarray, "*shape"]:
        """P at the start: (), (p,) or (p, p) if it stays; (..., p, p) if it adapts."""
        gain = np.asarray(self.gain)
        if gain.ndim and gain.shape[-1] != parameters:
            raise ArgumentError(
                f"The gain is for {gain.shape[-1]} parameters; there are {parameters}."
            )
        if not self.adapts_gain:
            return gain.copy()
        matrix = gain if gain.ndim == 2 else gain * np.eye(parameters)
        if np.linalg.norm(matrix) > self.bound:
            raise ArgumentError(
                f"The gain starts at ‖P‖ = {np.linalg.norm(matrix):.4g}, above its "
                f"bound k0 = {self.bound:.4g}; lower the gain or raise the bound."
            )
        return np.broadcast_to(matrix, (*batch, parameters, parameters)).copy()

    def next_gain(
        self,
        gain: Float[np.ndarray, "... p p"],
        excitation: Float[np.ndarray, "... n p"],
        dt: float,
        factors: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Float[np.ndarray, "... p p"]:
        """P after dt under excitation W; exact for a W that is held meanwhile.

        Args:
            gain: P now.
            excitation: W.
            dt: Time step in [s].
            factors: `innovation(gain, excitation, dt)`, if it is known already.
        """
        if not self.adapts_gain:
            return gain
        spread, inverse = factors or innovation(gain, excitation, dt)
        across = np.swapaxes(spread, -1, -2)
        shrunk: np.ndarray
        if excitation.shape[-2] == 1:  # plain products are faster than tiny matrices
            shrunk = gain - (spread * inverse) * across
        else:
            shrunk = gain - spread @ inverse @ across
        # After the shrinking, by the shrunk norm: x e^(a(1 − x)) ≤ 1 for x ≤ 1 and a ≤
        # 1, so that ‖P‖ never passes its bound while λ0 dt ≤ 1.
        if self.forgetting:
            # Frobenius' norm: cheaper than the spectral one, and never below it.
            size = np.sqrt(np.einsum("...ij,...ij->...", shrunk, shrunk))
            rate = self.forgetting * (1.0 - size / self.bound)
            shrunk *= np.exp(rate * dt)[..., None, None]
        # Forgetting multiplies an antisymmetric rounding by e^(λ0 t), and nothing
        # measured shrinks it: 40/λ0 later P would not be positive definite any more.
        symmetric: np.ndarray = shrunk + np.swapaxes(shrunk, -1, -2)
        symmetric *= 0.5
        return symmetric


def innovation(
    gain: Float[np.ndarray, "... p p"],
    excitation: Float[np.ndarray, "... n p"],
    dt: float,
) -> tuple[Float[np.ndarray, "... p n"], Float[np.ndarray, "... n n"]]:
    """P Wᵀ and (W P Wᵀ + I/dt)⁻¹, the two factors of a least-squares step."""
    spread = gain @ np.swapaxes(excitation, -1, -2)
    inner = excitation @ spread
    n = inner.shape[-1]
    # The matrix inversion lemma: an n × n inverse, n joints, in place of p × p, p
    # parameters.
    inner[..., range(n), range(n)] += 1.0 / dt
    return spread, 1.0 / inner if n == 1 else np.linalg.inv(inner)


def apply_gain(
    gain: Float[np.ndarray, "*shape"], vector: Float[np.ndarray, "... p"]
) -> Float[np.ndarray, "... p"]:
    """P x for a P that is a number, a diagonal or a matrix."""
    product: np.ndarray
    product = gain * vector if gain.ndim < 2 else (gain @ vector[..., None])[..., 0]
    return product


def _inverse(gain: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """P⁻¹ for a P that is a number, a diagonal or a matrix."""
    return np.asarray(1.0 / gain if gain.ndim < 2 else np.linalg.inv(gain))


def outside_dead_band(
    error: Float[np.ndarray, "*shape"], width: float
) -> Float[np.ndarray, "*shape"]:
    """The part of an error beyond a dead-band, continuous at its edge."""
    if width == 0.0:
        return error
    beyond: np.ndarray = error - np.clip(error, -width, width)
    return beyond


def require_positive_definite(gain: Float[np.ndarray, "*shape"]) -> None:
    """Refuse a gain, or a batch of matrices, that is not positive definite.

    Raises:
        ArgumentError: If it is not.
    """
    if not np.all(np.isfinite(gain)):
        raise ArgumentError(
            "The adaptation gain must be finite: a number, a vector or a matrix."
        )
    if gain.ndim < 2:
        lowest = float(gain.min()) if gain.size else 1.0
    else:
        transposed = np.swapaxes(gain, -1, -2)
        if gain.shape != transposed.shape or not np.allclose(gain, transposed):
            raise ArgumentError("The adaptation gain matrix must be symmetric.")
        lowest = float(np.linalg.eigvalsh(gain)[..., 0].min())
    if lowest <= 0.0:
        raise ArgumentError(
            f"The adaptation gain must be positive definite; its smallest eigenvalue "
            f"is {lowest:.4g}."
        )


# The estimate that follows an update law.

Projection = Callable[[np.ndarray], np.ndarray]
"""Takes parameters (..., p) to the nearest ones that are allowed."""


class Adaptation:
    """An estimate â that follows errors by an update law, one row per plant.

    Its whole state is `parameters`, `gain` and `stopped`; `to_dict` and `restore`
    carry it across processes.

    Beyond the reach of its law, measured from `center` in the metric of the first gain,
    the estimate leaks back (switching σ-modification, Ioannou and Kokotović 1984): a
    disturbance that no parameter explains cannot drive it ever further, and within
    reach nothing is changed.

    Args:
        law: How errors move parameters.
        initial: First estimate.
        batch: Shape of the plants.
        projection: What the estimate may be.
        limit: Multiple of the first estimate that counts as a runaway.
        center: Described parameters; without them nothing leaks.

    Attributes:
        parameters: â, shape (*batch, p).
        gain: P.
        stopped: Plants whose adaptation ran away and was stopped, shape (*batch,).
    """

    def __init__(
        self,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"],
        batch: tuple[int, ...] = (),
        projection: Projection | None = None,
        limit: float = 1e6,
        center: Float[np.ndarray, " p"] | None = None,
    ) -> None:
        self.law = law
        self.projection = projection
        start = np.asarray(initial, dtype=float)
        # A million times the first estimate is no adaptation but a runaway.
        self.limit = limit * max(1.0, float(np.abs(start).max(initial=0.0)))
        self.parameters = np.broadcast_to(
            start, (*batch, start.shape[-1]) if start.ndim == 1 else start.shape
        ).copy()
        self.gain = law.initial_gain(start.shape[-1], batch)
        self.stopped = np.zeros(batch, dtype=bool)
        self._any_stopped = False
        self._center = np.zeros(start.shape[-1]) if center is None else center
        self._metric = _inverse(law.initial_gain(start.shape[-1]))
        size = max(
            self._distance(np.zeros_like(self._center)).max(),
            self._distance(start).max(),
        )
        # Zeros have no size: what is not described cannot be bounded by it.
        is_bounded = center is not None and size > 0.0
        self._reach = float(law.reach * size) if is_bounded else np.inf

    def track(
        self,
        Y: Float[np.ndarray, "... n p"],
        s: Float[np.ndarray, "... n"],
        dt: float,
        frozen: Bool[np.ndarray, ...] | None = None,
    ) -> None:
        """â' = −P Yᵀ s over dt, the direct rule (`astley1996` Eq. 3.26)."""
        s = outside_dead_band(s, self.law.dead_band)
        force = np.matmul(s[..., None, :], Y)[..., 0, :]
        step = apply_gain(self.gain, force)
        step *= -dt
        self._move(step, dt, frozen)
        if self.law.adapts_gain:
            self.gain = self.law.next_gain(self.gain, Y, dt)

    def compose(
        self,
        Y: Float[np.ndarray, "... n p"],
        s: Float[np.ndarray, "... n"],
        W: Float[np.ndarray, "... n p"],
        filtered_torque: Float[np.ndarray, "... n"],
        dt: float,
        weights: tuple[float, float] = (1.0, 1.0),
        frozen: Bool[np.ndarray, ...] | None = None,
    ) -> None:
        """â' = −P (C1 Yᵀ s + C2 Wᵀ e) over dt (`astley1996` Eq. 3.40).

        The prediction error e = W â − Fτ is taken at the end of the step, which
        keeps large gains stable at any sampling rate.
        """
        tracking, prediction = weights
        s = outside_dead_band(s, self.law.dead_band)
        force = np.matmul(s[..., None, :], Y)[..., 0, :]
        step = apply_gain(self.gain, force)
        step *= -dt * tracking
        factors = None
        if prediction:
            P = self._gain_matrix()
            moved = self.parameters + step
            error = (W @ moved[..., None])[..., 0] - filtered_torque
            error = outside_dead_band(error, self.law.prediction_dead_band)
            spread, inverse = innovation(P, W, dt * prediction)
            step -= (spread @ (inverse @ error[..., None]))[..., 0]
            # With another weight the gain's own update has other factors.
            factors = (spread, inverse) if prediction == 1.0 else None
        self._move(step, dt, frozen)
        if self.law.adapts_gain:
            self.gain = self.law.next_gain(self.gain, W, dt, factors)

    def _gain_matrix(self) -> np.ndarray:
        if self.gain.ndim >= 2:
            return self.gain
        return self.gain * np.eye(self.parameters.shape[-1])

    def _distance(self, parameters: np.ndarray) -> np.ndarray:
        """Distance from the described parameters, in the first gain's metric."""
        away = parameters - self._center
        return np.sqrt(np.sum(away * apply_gain(self._metric, away), axis=-1))

    def _move(self, step: np.ndarray, dt: float, frozen: np.ndarray | None) -> None:
        if np.isfinite(self._reach):
            beyond = self._distance(self.parameters) / self._reach - 1.0
            if beyond.max() > 0.0:
                leak = np.clip(beyond, 0.0, 1.0) * (LEAK_RATE * dt)
                step -= leak[..., None] * (self.parameters - self._center)
        if frozen is not None or self._any_stopped:
            still = self.stopped if frozen is None else frozen | self.stopped
            step[still] = 0.0
        moved = self.parameters + step
        if self.projection is not None:
            moved = self.projection(moved)
        # One comparison catches both NaN and a runaway.
        if not np.abs(moved).max() <= self.limit:
            moved = self._stop(moved)
        self.parameters = moved

    def _stop(self, moved: np.ndarray) -> np.ndarray:
        """Leave runaway plants with their last good parameters and stop them."""
        bad = ~(np.abs(moved).max(axis=-1) <= self.limit)
        self.stopped = self.stopped | bad
        self._any_stopped = True
        return np.where(bad[..., None], self.parameters, moved)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {
            "parameters": self.parameters.copy(),
            "gain": self.gain.copy(),
            "stopped": self.stopped.copy(),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called.

        Raises:
            ArgumentError: If it is no state of this adaptation.
        """
        parameters = restored(state, "parameters", self.parameters.shape, self.limit)
        gain = restored(state, "gain", self.gain.shape, np.finfo(float).max)
        require_positive_definite(gain)
        stopped = restored(state, "stopped", self.stopped.shape).astype(bool)
        self.parameters, self.gain, self.stopped = parameters, gain, stopped
        self._any_stopped = bool(stopped.any())


# Adapted parameters, and projections onto physically realisable ones.


@dataclass(frozen=True, eq=False)
class ParameterSet:
    """Columns of the regressor that are adapted: τ = Y[:, columns] a.

    Attributes:
        arm: The assumed arm, whose regressor it is.
        names: What each adapted parameter is called.
        columns: Which columns of the full regressor.
        matrix: a = K π for the full parameters π.
    """

    arm: Arm
    names: tuple[str, ...]
    columns: Int[np.ndarray, " adapted"]
    matrix: Float[np.ndarray, "adapted parameters"]

    @classmethod
    def standard(cls, arm: Arm) -> ParameterSet:
        """Every parameter of every link and drive, the unidentifiable too."""
        size = arm.parameters.size
        return cls(arm, arm.parameter_names, np.arange(size), np.eye(size))

    @classmethod
    def base(cls, arm: Arm, drives: tuple[str, ...] = DRIVE_NAMES) -> ParameterSet:
        """The base parameters: the combinations that torques determine.

        Args:
            arm: The arm.
            drives: Which of the drives' parameters to adapt; those left out are taken
                to be zero.
        """
        from armwise.dynamics import base_parameters

        base = base_parameters(arm)
        columns = np.asarray(base.indices, dtype=int)
        matrix = np.asarray(base.matrix, dtype=float)
        dropped = arm.layout.drive(*(n for n in DRIVE_NAMES if n not in drives))
        is_adapted = ~np.isin(columns, dropped)
        columns = columns[is_adapted]
        names = tuple(arm.parameter_names[c] for c in columns)
        return cls(arm, names, columns, matrix[is_adapted])

    @property
    def count(self) -> int:
        """Number of adapted parameters."""
        return len(self.names)

    @property
    def is_whole(self) -> bool:
        """Whether the columns are all of the regressor's, in order."""
        return bool(np.array_equal(self.columns, np.arange(self.matrix.shape[1])))

    def values(self, arm: Arm | None = None) -> Float[np.ndarray, " adapted"]:
        """What the adapted parameters are for an arm of the same kind."""
        source = self.arm if arm is None else arm
        if source.parameters.size != self.matrix.shape[1]:
            raise ArgumentError(
                f"{source.name} has {source.parameters.size} parameters, not "
                f"{self.matrix.shape[1]} like {self.arm.name}."
            )
        adapted: np.ndarray = self.matrix @ source.parameters
        return adapted


@dataclass(frozen=True, eq=False)
class DriveProjection:
    """Keeps rotor inertias and friction from turning negative, offsets free."""

    parameters: ParameterSet

    def __call__(self, values: Float[np.ndarray, "... p"]) -> np.ndarray:
        """Return the nearest allowed parameters."""
        bounded: np.ndarray = np.maximum(values, self._lower)
        return bounded

    @property
    def _lower(self) -> np.ndarray:
        bounded = self.parameters.arm.layout.non_negative
        return np.where(np.isin(self.parameters.columns, bounded), 0.0, -np.inf)


@dataclass(frozen=True, eq=False)
class PhysicalProjection:
    """Takes each link to the nearest one a body can be, drives to no less than zero.

    A link is physical when its pseudo-inertia is positive semidefinite; negative
    eigenvalues are cut at `floor`. Only for all standard parameters at once.

    Attributes:
        parameters: From `ParameterSet.standard`.
        floor: Smallest eigenvalue of a pseudo-inertia, in [kg m²] and [kg].
    """

    parameters: ParameterSet
    # Judgement, in [kg m²] and [kg]: above zero, so that M̂ stays invertible.
    floor: float = 1e-6

    def __post_init__(self) -> None:
        if not self.parameters.is_whole:
            raise ArgumentError(
                "Projection to physical links needs all standard parameters; use "
                "ParameterSet.standard(arm), or DriveProjection with base parameters."
            )

    def __call__(self, values: Float[np.ndarray, "... p"]) -> np.ndarray:
        """Return the nearest allowed parameters."""
        layout = self.parameters.arm.layout
        ten = layout.by_link(values)
        # Clipping eigenvalues is the nearest positive semidefinite matrix in the
        # Frobenius norm.
        weights, vectors = np.linalg.eigh(_pseudo_inertia(ten))
        bounded = layout.non_negative
        out = values.copy()
        out[..., bounded] = np.maximum(values[..., bounded], 0.0)
        # Otherwise nothing is clipped, and the links stay as they are.
        if weights.min() < self.floor:
            cut = np.maximum(weights, self.floor)
            pseudo = (vectors * cut[..., None, :]) @ np.swapaxes(vectors, -1, -2)
            fixed = _ten(pseudo)
            # Links that need no projection stay bit for bit as they are.
            fine = (weights[..., 0] >= self.floor)[..., None]
            ten = np.where(fine, ten, fixed)
            out[..., layout.links] = ten.reshape(*values.shape[:-1], -1)
        return out


def _pseudo_inertia(ten: np.ndarray) -> np.ndarray:
    """4×4 pseudo-inertias of many links at once."""
    m, mx, my, mz, xx, xy, xz, yy, yz, zz = np.moveaxis(ten, -1, 0)
    half = 0.5 * (xx + yy + zz)
    rows = [
        [half - xx, -xy, -xz, mx],
        [-xy, half - yy, -yz, my],
        [-xz, -yz, half - zz, mz],
        [mx, my, mz, m],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _ten(pseudo: np.ndarray) -> np.ndarray:
    """Back from pseudo-inertias to the ten parameters."""
    sigma = pseudo[..., :3, :3]
    trace = np.trace(sigma, axis1=-2, axis2=-1)
    s = [[sigma[..., i, j] for j in range(3)] for i in range(3)]
    moments = [pseudo[..., 3, 3], *(pseudo[..., i, 3] for i in range(3))]
    inertia = [
        trace - s[0][0],
        -s[0][1],
        -s[0][2],
        trace - s[1][1],
        -s[1][2],
        trace - s[2][2],
    ]
    return np.stack([*moments, *inertia], axis=-1)
