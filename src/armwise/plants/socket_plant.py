"""A plant behind a socket: another process or computer, in lock step, with limits.

One request, one answer: torques go out, the measurement after one control period
comes back. What runs the arm, a driver or a simulator, sits at the other end. All
numbers are doubles of the sender's byte order, little-endian on today's machines.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError, PlantDiverged
from armwise.plants.protocol import Measurement, Plant
from armwise.plants.simulation_loop import SampleLog

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

_RESET, _STEP, _STOP = b"R", b"S", b"X"
_FINE, _AWAY = b"+", b"-"


class SocketPlant:
    """An arm at the other end of a socket, stopped by its own limits.

    It stops, and `stop_reason` says why, when an answer takes longer than the timeout,
    the other side is gone, a number is not finite, or a torque, position or speed
    leaves its limit. A torque beyond its limit is never sent. What was measured up to
    there is kept; a new `SocketPlant` begins anew.

    Args:
        arm: Its joints and limits.
        port: Where the other side listens.
        host: This computer if not given: torques travel in the clear.
        control_period: Time between two torques in [s], as the other side has it.
        timeout: Longest wait for an answer in [s].
        effort: Largest torque per joint in [N m] or [N]; the arm's limits if None.
    """

    def __init__(
        self,
        arm: Arm,
        port: int,
        host: str = "127.0.0.1",
        *,
        control_period: float = 0.001,
        timeout: float = 0.1,
        effort: ArrayLike | None = None,
    ) -> None:
        self.arm, self.control_period = arm, float(control_period)
        limit = arm.limits("effort") if effort is None else effort
        self._effort = np.broadcast_to(np.asarray(limit, dtype=float), arm.dof)
        self.stop_reason = ""
        self.time = 0.0
        self._logs: dict[str, SampleLog] = {}
        self._last = Measurement()
        try:
            self._line = socket.create_connection((host, port), timeout)
        except OSError as problem:
            raise PlantDiverged(
                f"No plant answers at {host}:{port} ({problem}). Start it first."
            ) from problem
        self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> SocketPlant:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Tell the other side to stop, and hang up."""
        with contextlib.suppress(OSError):
            self._line.sendall(_STOP + bytes(16 * self.dof))
        self._line.close()

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.arm.dof

    @property
    def batch(self) -> int:
        """One: a robot stands alone."""
        return 1

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the coordinates, in order."""
        return self.arm.coordinate_names

    @property
    def diverged(self) -> Bool[np.ndarray, " 1"]:
        """Whether it has stopped."""
        return np.array([bool(self.stop_reason)])

    @property
    def logs(self) -> dict[str, SampleLog]:
        """What was measured since the last reset."""
        return self._logs

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> Measurement:
        """Ask the other side to go to a posture; return when it is there.

        A robot gets there by a motion of its own, at its own speed, and begins at rest.
        """
        self.stop_reason, self.time = "", 0.0
        units = {"q": "rad", "qd": "rad/s", "tau": "N m"}
        self._logs = {k: SampleLog(1, self.dof, u) for k, u in units.items()}
        begin = np.broadcast_to(np.asarray(q, dtype=float), (1, self.dof))[0]
        rates = np.zeros(self.dof) if qd is None else np.asarray(qd, float).reshape(-1)
        self._ask(_RESET, begin, rates)
        return self._last

    def step(self, tau: Float[np.ndarray, "batch dof"]) -> Measurement:
        """Send torques, wait for what is measured one control period later."""
        if self.stop_reason:
            return self._last
        row = np.asarray(tau, dtype=float)[0]
        beyond = ~(np.abs(row) <= self._effort)
        if beyond.any():
            j = int(np.argmax(beyond))
            self._stop(
                f"{self.joint_names[j]} was to get {row[j]:.4g} N m, beyond its limit "
                f"{self._effort[j]:.4g}; it was not sent"
            )
            return self._last
        self.time += self.control_period
        self._ask(_STEP, row, np.zeros(self.dof))
        return self._last

    def _ask(self, request: bytes, first: np.ndarray, second: np.ndarray) -> None:
        try:
            self._line.sendall(request + first.tobytes() + second.tobytes())
            answer = _receive(self._line, 1 + 24 * self.dof)
        except OSError as problem:
            self._stop(f"the plant does not answer ({problem})")
            return
        numbers = np.frombuffer(answer[1:]).reshape(3, 1, self.dof)
        if answer[:1] != _FINE or not np.all(np.isfinite(numbers)):
            self._stop("the plant says it has stopped")
            return
        self._last = Measurement(*numbers)
        for name, row in zip(("q", "qd", "tau"), numbers, strict=True):
            self._logs[name].append(self.time, row)
        self._check(*numbers[:2, 0])

    def _check(self, q: np.ndarray, qd: np.ndarray) -> None:
        bounds = {
            "position": (q, self.arm.limits("lower"), self.arm.limits("upper")),
            "speed": (qd, -self.arm.limits("velocity"), self.arm.limits("velocity")),
        }
        for what, (value, lower, upper) in bounds.items():
            beyond = (value < lower) | (value > upper)
            if beyond.any():
                j = int(np.argmax(beyond))
                self._stop(
                    f"{self.joint_names[j]} has the {what} {value[j]:.4g}, beyond its "
                    f"limits {lower[j]:.4g} to {upper[j]:.4g}"
                )

    def _stop(self, reason: str) -> None:
        self.stop_reason = reason
        with contextlib.suppress(OSError):
            self._line.sendall(_STOP + bytes(16 * self.dof))


def serve_plant(plant: Plant, listener: socket.socket) -> None:
    """Let others drive a plant through a socket, one at a time, until the end.

    The other side of `SocketPlant`, around a simulated plant; on a robot write the
    same loop around its driver. When the line is cut the plant gets no more torques:
    what then holds the arm (brakes) is this side's duty.

    Args:
        plant: A batch of one that measures q, qd and tau.
        listener: A socket that listens; bind it to 127.0.0.1 unless you mean otherwise.
    """
    if plant.batch != 1:
        raise ArgumentError("A socket serves one plant, not a batch.")
    while True:
        line, _ = listener.accept()
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with line, contextlib.suppress(OSError):
            _serve(plant, line)


def _serve(plant: Plant, line: socket.socket) -> None:
    while True:
        request = _receive(line, 1 + 16 * plant.dof)
        first, second = np.frombuffer(request[1:]).reshape(2, plant.dof)
        if request[:1] == _RESET:
            measurement = plant.reset(first, second)
        elif request[:1] == _STEP:
            measurement = plant.step(first[None, :])
        else:
            return
        status = _AWAY if plant.diverged[0] else _FINE
        rows = [measurement.need(name) for name in ("q", "qd", "tau")]
        line.sendall(status + b"".join(row.tobytes() for row in rows))


def _receive(line: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        more = line.recv(size - len(parts))
        if not more:
            raise ConnectionError("the other side hung up")
        parts += more
    return bytes(parts)
