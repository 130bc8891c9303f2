"""An arm's motion with drives, friction and springs, over arrays of arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import Mechanism
from armwise.plants.dry_friction import dry_level, guessed_friction, solve_friction
from armwise.plants.equations import accelerate_program, mobility_program
from armwise.plants.numbers import ArmNumbers
from armwise.programs import Kernel

if TYPE_CHECKING:
    from jaxtyping import Float


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
        assert self._springs is not None
        k, d = self._springs[:, 0], self._springs[:, 1]
        torque: np.ndarray = k * (y[2] - y[0]) + d * (y[3] - y[1])
        return torque

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
        middle, added = q + 0.5 * h * qd, self._diagonal(h)
        speeds = qd @ self._rows.T
        level, guess = guessed_friction(self.drives, speeds, friction)
        torque = self._net_torque(qd, tau, guess)
        after = qd + h * self._solve(middle, qd, torque, added)
        found = guess
        if _is_wrong(level, speeds, after @ self._rows.T):
            pull = self._inverse(middle, added) @ self._rows.T
            A = h * self._rows @ pull
            found = solve_friction(A, level, guess, after @ self._rows.T)
            after = after - h * np.einsum("bik,bk->bi", pull, found - guess)
            held = (np.abs(found) < level * (1.0 - 1e-9))[:, : self._own]
            after = np.where(held @ (self._rows[: self._own] != 0), 0.0, after)
        return np.stack([middle + 0.5 * h * after, after]), found

    def _elastic_step(
        self, y: np.ndarray, tau: np.ndarray, friction: np.ndarray, h: float
    ) -> tuple[np.ndarray, np.ndarray]:
        assert self._springs is not None
        q, qd, motor_q, motor_qd = y
        inertia, viscous, *_, offset = self.drives
        k, d = self._springs[:, 0], self._springs[:, 1]
        level, guess = guessed_friction(self.drives, motor_qd, friction)
        stretch, stiff = h * k * (motor_q - q), h * (d + h * k)
        motor = inertia + h * viscous + stiff
        share = stiff / motor
        push = inertia * motor_qd + h * (tau - offset) - stretch
        added = stiff - share * stiff
        torque = (stretch + share * (push - h * guess) - added * qd) / h
        after = qd + h * self._solve(q, qd, torque, added)
        motor_after = (push - h * guess + stiff * after) / motor
        found = guess
        if _is_wrong(level, motor_qd, motor_after):
            W = self._inverse(q, added)
            A = h * share[:, :, None] * W * share[:, None, :]
            diagonal = np.arange(share.shape[1])
            A[:, diagonal, diagonal] += h / motor
            found = solve_friction(A, level, guess, motor_after)
            after = after - h * np.einsum("bik,bk->bi", W, share * (found - guess))
            motor_after = (push - h * found + stiff * after) / motor
            held = np.abs(found) < level * (1.0 - 1e-9)
            motor_after = np.where(held, 0.0, motor_after)
        motion = [q + h * after, after, motor_q + h * motor_after, motor_after]
        return np.stack(motion), found


def _is_wrong(level: np.ndarray, before: np.ndarray, after: np.ndarray) -> bool:
    """Whether some drive that can stick was not sliding one way before and after."""
    return bool(np.any((level > 0) & ~(before * after > 0)))
