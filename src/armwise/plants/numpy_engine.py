"""Arm stepper in NumPy, for machines without a compiler; the same steps as in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import Mechanism
from armwise.plants.integrators import (
    ArmIntegrator,
    DormandPrince,
    RungeKutta4,
    SemiImplicit,
    dormand_prince_span,
    explicit_step,
)
from armwise.plants.state import ArmNumbers, State, accelerate_program, mobility_program
from armwise.programs import Kernel

if TYPE_CHECKING:
    from jaxtyping import Float


# Dry friction of a batch of drives: its bound, and its value.

# Judgement: a cap for ill-conditioned A; the loop ends when nothing changes.
_SWEEPS = 200
"""Gauss–Seidel sweeps; a few suffice unless joints are strongly coupled."""

_HELD = 1.0 - 1e-9
"""Fraction of its level below which dry friction holds a drive: above, it slides."""


def dry_level(
    drives: Float[np.ndarray, "6 batch drives"],
    speed: Float[np.ndarray, "batch drives"],
) -> Float[np.ndarray, "batch drives"]:
    """Return the largest dry friction in [N m] at a speed: fs at rest, then fc."""
    coulomb, static, stribeck_speed = drives[2:5]
    level: np.ndarray = coulomb + (static - coulomb) / (
        1 + (speed / stribeck_speed) ** 2
    )
    return level


def guessed_friction(
    drives: Float[np.ndarray, "6 batch drives"],
    speed: Float[np.ndarray, "batch drives"],
    last: Float[np.ndarray, "batch drives"],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the level and the friction if sliding goes on and rest stays."""
    level = dry_level(drives, speed)
    held = np.clip(last, -level, level)
    return level, np.where(speed == 0.0, held, level * np.sign(speed))


def solve_friction(
    A: Float[np.ndarray, "batch drives drives"],
    level: Float[np.ndarray, "batch drives"],
    guess: Float[np.ndarray, "batch drives"],
    speed: Float[np.ndarray, "batch drives"],
) -> Float[np.ndarray, "batch drives"]:
    """Find the friction, within its level, that opposes the speeds it leaves.

    Speeds after a step are speed − A (f − guess). By Gauss–Seidel over the drives,
    which converges because A is positive definite.
    """
    f, u = guess.copy(), speed.copy()
    for _ in range(_SWEEPS):
        change = 0.0
        for k in range(f.shape[1]):
            # A drive that moves nothing has A_kk = 0; its level is masked out below.
            with np.errstate(divide="ignore", invalid="ignore"):
                holding = f[:, k] + u[:, k] / A[:, k, k]
            bounded = np.clip(holding, -level[:, k], level[:, k])
            step = np.where(level[:, k] > 0, bounded - f[:, k], 0.0)
            u -= A[:, :, k] * step[:, None]
            f[:, k] += step
            relative = np.abs(step) / (level[:, k] + 1e-300)  # a drive without any
            change = max(change, float(relative.max()))
        if change < 1e-12:  # rounding, relative to the level
            break
    return f


# Equations of motion with drives, friction and springs, over arrays of arms.


class NumpyEquations:
    """Rates and semi-implicit steps of a batch of arms.

    Motion is stacked as (q, q̇) or, where joints are elastic, (q, q̇, θ, θ̇).
    """

    def __init__(
        self, mechanism: Mechanism, numbers: ArmNumbers, smoothing: float
    ) -> None:
        self._rows = mechanism.drive_rows
        self._own = len(mechanism.coupling)
        split = len(mechanism.grouping.indices)
        self._bodies = np.ascontiguousarray(numbers.bodies[:, :split])
        self._coupled = np.ascontiguousarray(numbers.bodies[:, split:])
        self.drives = np.moveaxis(numbers.drives, 1, 0)
        self._springs = numbers.springs
        self._smoothing = smoothing
        self._accelerate = Kernel(accelerate_program(mechanism), "numpy")
        self._mobility = Kernel(mobility_program(mechanism), "numpy")
        self._lower = np.tril_indices(mechanism.dof)

    def rate(
        self, y: Float[np.ndarray, "parts batch dof"], tau: np.ndarray
    ) -> Float[np.ndarray, "parts batch dof"]:
        """Return dy/dt with dry friction smoothed."""
        speeds = self._drive_speeds(y)
        smooth = speeds / np.sqrt(speeds**2 + self._smoothing**2)
        dry = dry_level(self.drives, speeds) * smooth
        return self._rate(y, tau, dry)

    def observed(
        self, y: np.ndarray, tau: np.ndarray, friction: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return q̈ and the torque that reaches the links."""
        _, dry = guessed_friction(self.drives, self._drive_speeds(y), friction)
        qdd = self._rate(y, tau, dry)[1]
        if self._springs is not None:
            return qdd, self._spring_torque(y)
        rotors = (self.drives[0] * (qdd @ self._rows.T)) @ self._rows
        return qdd, self._net_torque(y[1], tau, dry) - rotors

    def semi_implicit(
        self, y: np.ndarray, tau: np.ndarray, friction: np.ndarray, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take one step of h [s]; return the motion and the dry friction it found."""
        if self._springs is None:
            return self._rigid_step(y, tau, friction, h)
        return self._elastic_step(y, tau, friction, h)

    def _drive_speeds(self, y: np.ndarray) -> np.ndarray:
        speeds: np.ndarray = y[3] if self._springs is not None else y[1] @ self._rows.T
        return speeds

    def _rate(self, y: np.ndarray, tau: np.ndarray, dry: np.ndarray) -> np.ndarray:
        if self._springs is None:
            torque = self._net_torque(y[1], tau, dry)
            return np.stack(
                [y[1], self._solve(y[0], y[1], torque, self._diagonal(0.0))]
            )
        inertia, viscous, *_, offset = self.drives
        spring = self._spring_torque(y)
        motors = (tau - viscous * y[3] - dry - offset - spring) / inertia
        links = self._solve(y[0], y[1], spring, np.zeros_like(spring))
        return np.stack([y[1], links, y[3], motors])

    def _net_torque(
        self, qd: np.ndarray, tau: np.ndarray, dry: np.ndarray
    ) -> np.ndarray:
        lost = self.drives[1] * (qd @ self._rows.T) + dry + self.drives[5]
        net: np.ndarray = tau - lost @ self._rows
        return net

    def _spring_torque(self, y: np.ndarray) -> np.ndarray:
        k, d, beyond = self._engaged(y[2] - y[0])
        torque: np.ndarray = k * beyond + d * (y[3] - y[1])
        return torque

    def _engaged(self, twist: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Stiffness and damping, none while a gear is within its play; twist beyond."""
        assert self._springs is not None
        k, d, slack = np.moveaxis(self._springs, 1, 0)
        touches = ~(np.abs(twist) < slack)
        return k * touches, d * touches, twist - np.clip(twist, -slack, slack)

    def _diagonal(self, h: float) -> np.ndarray:
        own = self.drives[0] + h * self.drives[1]
        diagonal: np.ndarray = own[:, : self._own] @ self._rows[: self._own] ** 2
        return diagonal

    def _solve(self, *varying: np.ndarray) -> np.ndarray:
        (qdd,) = self._accelerate(self._inputs(varying))
        return qdd

    def _inverse(self, *varying: np.ndarray) -> np.ndarray:
        (stored,) = self._mobility(self._inputs(varying))
        batch, dof = varying[0].shape
        W = np.zeros((batch, dof, dof))
        i, j = self._lower
        # Only the lower triangle is computed: an inverse mass matrix is symmetric.
        W[:, i, j] = W[:, j, i] = stored
        return W

    def _inputs(self, varying: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        parameters = [self._bodies]
        if self._coupled.shape[1]:
            parameters.append(self._coupled)
        return [*varying, *parameters]

    def _rigid_step(
        self, y: np.ndarray, tau: np.ndarray, friction: np.ndarray, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        q, qd = y
        # Drift, kick, drift: accelerations at the middle of the step, as in leapfrog.
        middle, added = q + 0.5 * h * qd, self._diagonal(h)
        speeds = qd @ self._rows.T
        level, guess = guessed_friction(self.drives, speeds, friction)
        torque = self._net_torque(qd, tau, guess)
        after = qd + h * self._solve(middle, qd, torque, added)
        dry = guess
        if _is_wrong(level, speeds, after @ self._rows.T):
            pull = self._inverse(middle, added) @ self._rows.T
            A = h * self._rows @ pull
            dry = solve_friction(A, level, guess, after @ self._rows.T)
            after = after - h * np.einsum("bik,bk->bi", pull, dry - guess)
            # What friction holds stands still exactly, not to the last digit but one.
            held = (np.abs(dry) < level * _HELD)[:, : self._own]
            after = np.where(held @ (self._rows[: self._own] != 0), 0.0, after)
        return np.stack([middle + 0.5 * h * after, after]), dry

    def _elastic_step(
        self, y: np.ndarray, tau: np.ndarray, friction: np.ndarray, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        assert self._springs is not None
        q, qd, motor_q, motor_qd = y
        inertia, viscous, *_, offset = self.drives
        k, d, beyond = self._engaged(motor_q - q)
        level, guess = guessed_friction(self.drives, motor_qd, friction)
        stretch, stiff = h * k * beyond, h * (d + h * k)
        # Springs at the end of the step are linear in the motors' speeds, which are
        # eliminated; what remains is added to the diagonal of the mass matrix.
        motor = inertia + h * viscous + stiff
        fraction = stiff / motor
        push = inertia * motor_qd + h * (tau - offset) - stretch
        added = stiff - fraction * stiff
        torque = (stretch + fraction * (push - h * guess) - added * qd) / h
        after = qd + h * self._solve(q, qd, torque, added)
        motor_after = (push - h * guess + stiff * after) / motor
        dry = guess
        if _is_wrong(level, motor_qd, motor_after):
            W = self._inverse(q, added)
            A = h * fraction[:, :, None] * W * fraction[:, None, :]
            diagonal = np.arange(fraction.shape[1])
            A[:, diagonal, diagonal] += h / motor
            dry = solve_friction(A, level, guess, motor_after)
            after = after - h * np.einsum("bik,bk->bi", W, fraction * (dry - guess))
            motor_after = (push - h * dry + stiff * after) / motor
            held = np.abs(dry) < level * _HELD
            motor_after = np.where(held, 0.0, motor_after)
        motion = [q + h * after, after, motor_q + h * motor_after, motor_after]
        return np.stack(motion), dry


def _is_wrong(level: np.ndarray, before: np.ndarray, after: np.ndarray) -> bool:
    """Whether some drive that can stick was not sliding one way before and after."""
    # Negated product: rest (zero) and NaN also count as a possible change of sense.
    return bool(np.any((level > 0) & ~(before * after > 0)))


# Engine.


class NumpyEngine:
    """Steps a batch of arms with arrays; arguments as in CEngine."""

    def __init__(
        self,
        mechanism: Mechanism,
        numbers: ArmNumbers,
        integrator: ArmIntegrator,
        *,
        tick: float,
        smoothing: float,
        speed_bound: float,
    ) -> None:
        batch = len(numbers.bodies)
        self._is_elastic = numbers.springs is not None
        self.state = State.at_rest(batch, mechanism.dof, self._is_elastic)
        self._equations = NumpyEquations(mechanism, numbers, smoothing)
        self._integrator = integrator
        self._tick, self._bound = tick, speed_bound
        self._friction = np.zeros((batch, len(mechanism.drive_rows)))
        self._trial = 0.0

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        state = self.state
        state.time = 0.0
        state.q[:] = state.motor_q[:] = q
        state.qd[:] = state.motor_qd[:] = qd
        state.tau[:] = self._friction[:] = 0.0
        state.diverged[:] = False
        self._trial = 0.0
        self._observe(self._motion())

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        motion = self._motion()
        # An arm that runs away overflows; it is flagged as diverged, not warned about.
        with np.errstate(over="ignore", invalid="ignore"):
            motion = self._carried(motion, ticks)
            self._observe(motion)

    def _motion(self) -> Float[np.ndarray, "parts batch dof"]:
        s = self.state
        parts = [s.q, s.qd, s.motor_q, s.motor_qd] if self._is_elastic else [s.q, s.qd]
        return np.stack(parts)

    def _carried(self, motion: np.ndarray, ticks: int) -> np.ndarray:
        equations, tau, h = self._equations, self.state.tau, self._tick

        def rates(y: np.ndarray, node: float) -> np.ndarray:
            return equations.rate(self._bounded(y), tau)

        if isinstance(self._integrator, DormandPrince):
            motion, self._trial = dormand_prince_span(
                rates, motion, ticks * h, self._trial, self._integrator
            )
            return motion
        for _ in range(ticks):
            motion = self._bounded(motion)
            if isinstance(self._integrator, SemiImplicit):
                motion, self._friction = equations.semi_implicit(
                    motion, tau, self._friction, h
                )
            else:
                motion, _ = explicit_step(RungeKutta4.tableau, rates, motion, h)
        return motion

    def _bounded(self, motion: np.ndarray) -> np.ndarray:
        """Let arms that run away stand still, so that the others can go on."""
        with np.errstate(invalid="ignore"):
            # No joint turns 10⁹ rad: sines of such angles have lost their digits.
            ok = (np.abs(motion[0]) <= 1e9) & (np.abs(motion[1]) <= self._bound)
        lost = ~ok.all(axis=1)
        if not lost.any():
            return motion
        self.state.diverged |= lost
        bounded = motion.copy()
        bounded[:, lost] = 0.0
        return bounded

    def _observe(self, motion: np.ndarray) -> None:
        motion, state = self._bounded(motion), self.state
        qdd, link_tau = self._equations.observed(motion, state.tau, self._friction)
        good = ~state.diverged
        for array, values in (
            *zip((state.q, state.qd), motion, strict=False),
            (state.qdd, qdd),
            (state.link_tau, link_tau),
        ):
            array[good] = values[good]
        if self._is_elastic:
            state.motor_q[good], state.motor_qd[good] = motion[2:, good]
