"""Wrench on a body held at a frame: linear in the body's ten parameters.

    [f]   [ p̈−g   [ω̇×]+[ω×][ω×]        0          ]
    [n] = [  0       [(g−p̈)×]     [·ω̇]+[ω×][·ω]   ] φ      (`aah1986` Eq. 8)

in the frame's axes, about its origin: what an arm exerts on what it holds, so that the
force at rest is −m g. With the body's momentum μ = B(v, ω) φ the same wrench is
d/dt(B) φ + V(v, ω, g) φ, which needs no accelerations (`aah1986` App. II).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters
from armwise.dynamics.kinematics import link_poses
from armwise.dynamics.mechanism import mechanism_of
from armwise.dynamics.newton_euler import (
    LinkMotion,
    Twist,
    accelerations,
    body_motion,
    cross_joints,
    link_twists,
    link_wrench,
    twist_motion,
)
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    clean,
    cross,
    dot,
    mul,
    total,
    turn,
    vadd,
    vector,
    vsub,
)
from armwise.errors import ArgumentError
from armwise.programs import Backend, Kernel, Program, resolve_backend, trace

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

_kernels: dict[tuple[str, ...], Kernel] = {}


def wrench_regressor(
    acceleration: ArrayLike,
    omega: ArrayLike,
    alpha: ArrayLike,
    backend: Backend = "auto",
) -> Float[np.ndarray, "*batch 6 10"]:
    """Regressor A of the wrench on a body, from the motion of its own frame.

    Args:
        acceleration: p̈ − g of the frame's origin in its own axes in [m/s²]: what an
            accelerometer there would read.
        omega: Angular velocity ω in those axes in [rad/s].
        alpha: Angular acceleration ω̇ in [rad/s²].
        backend: As in `Dynamics`.
    """

    def function(a: list[Scalar], w: list[Scalar], dw: list[Scalar]) -> dict:
        spin = _vector(w)
        motion = body_motion(spin, spin, _vector(dw), _vector(a))
        return {"A": unit_wrenches(motion)}

    kernel = _kernel(("body",), backend, function, {"a": 3, "w": 3, "dw": 3})
    arrays = [
        _rows(name, x, 3, "one per axis")
        for name, x in (
            ("acceleration", acceleration),
            ("omega", omega),
            ("alpha", alpha),
        )
    ]
    return _run(kernel, arrays)


def unit_wrenches(motion: LinkMotion) -> list[list[Scalar]]:
    """Six rows of ten: force, then moment, of unit parameters in a user's order."""
    columns = [link_wrench(motion, [float(x) for x in unit]) for unit in np.eye(10)]
    inner = [[*force, *moment] for force, moment in columns]
    return [
        [
            total(*[mul(float(w), inner[k][row]) for k, w in enumerate(user)])
            for user in _INTERNAL.T
        ]
        for row in range(6)
    ]


class HeldBody:
    """Equations of a body held at a named frame of an arm, without its parameters.

    Args:
        arm: The arm that holds it.
        frame: Name of a link or frame; wrenches and parameters are in its axes.
        backend: As in `Dynamics`.
    """

    def __init__(self, arm: Arm, frame: str, backend: Backend = "auto") -> None:
        self.arm = arm
        self.frame = frame
        self.backend = resolve_backend(backend)
        self.link, self.pose = arm.find_frame(frame)
        if self.link == BASE:
            raise ArgumentError(f"{frame!r} is fixed to the base and carries nothing.")
        self._mechanism = mechanism_of(arm)
        inner = self._mechanism.skeleton.segments[self.link].from_user @ self.pose
        self._rotation, self._offset = clean(inner[:3, :3]), vector(inner[:3, 3])

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> Float[np.ndarray, "*batch 6 10"]:
        """Regressor A with wrench = A φ, φ the ten parameters in the frame."""
        return self._call(self._regressor, q, qd, qdd)

    def bound_regressor(
        self, inputs: Sequence[np.ndarray], out: np.ndarray
    ) -> Callable[[], None]:
        """Return a fast call that reads q, q̇, q̈ (1, n) and writes A (1, 6, 10)."""
        return self._regressor.bound(inputs, [out])

    @property
    def regressor_program(self) -> Program:
        """The equations of `regressor`, for generated code."""
        return self._regressor.program

    def motion(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> Float[np.ndarray, "*batch 3 3"]:
        """Rows p̈ − g, ω and ω̇ of the frame, in its own axes."""
        return self._call(self._motion, q, qd, qdd)

    def momentum_regressor(
        self, q: ArrayLike, qd: ArrayLike
    ) -> Float[np.ndarray, "*batch 6 10"]:
        """B with B φ the momentum, linear and about the frame's origin, in its axes."""
        return self._call(self._momentum, q, qd)

    def velocity_regressor(
        self, q: ArrayLike, qd: ArrayLike
    ) -> Float[np.ndarray, "*batch 6 10"]:
        """V with A = dB/dt + V: gravity, and the turning of the axes."""
        return self._call(self._velocity, q, qd)

    @cached_property
    def _regressor(self) -> Kernel:
        return self._traced("regressor", 3, lambda m: {"A": unit_wrenches(m)})

    @cached_property
    def _motion(self) -> Kernel:
        def rows(motion: LinkMotion) -> dict[str, object]:
            return {"rows": [motion.acceleration, motion.omega, motion.alpha]}

        return self._traced("motion", 3, rows)

    @cached_property
    def _momentum(self) -> Kernel:
        def function(q: Sequence[Scalar], qd: Sequence[Scalar]) -> dict[str, object]:
            return {"B": unit_wrenches(twist_motion(self._twist(q, qd)))}

        return self._kernel("momentum", function, 2)

    @cached_property
    def _velocity(self) -> Kernel:
        def function(q: Sequence[Scalar], qd: Sequence[Scalar]) -> dict[str, object]:
            twist = self._twist(q, qd)
            # d/dt in turning axes adds ω × p; gravity is not in the momentum.
            carried = vsub(cross(twist.omega, twist.velocity), self._gravity(q))
            steady = body_motion(twist.omega, twist.omega, ZERO, carried)
            return {"V": unit_wrenches(steady)}

        return self._kernel("velocity", function, 2)

    def _traced(
        self, name: str, inputs: int, give: Callable[[LinkMotion], dict[str, object]]
    ) -> Kernel:
        m = self._mechanism

        def function(
            q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar]
        ) -> dict[str, object]:
            crossings = cross_joints(m.skeleton, m.joints(q, is_position=True))
            speeds = m.joints(qd)
            links = accelerations(m.skeleton, crossings, speeds, speeds, m.joints(qdd))
            return give(self._at_frame(links[self.link]))

        return self._kernel(name, function, inputs)

    def _at_frame(self, link: LinkMotion) -> LinkMotion:
        """The motion of the frame, in its axes, from that of the link it is on."""
        R = self._rotation.T
        reach = tuple(dot(row, self._offset) for row in link.rates)
        origin = turn(R, vadd(link.acceleration, reach))
        omega = turn(R, link.omega)
        return body_motion(omega, omega, turn(R, link.alpha), origin)

    def _twist(self, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Twist:
        m = self._mechanism
        crossings = cross_joints(m.skeleton, m.joints(q, is_position=True))
        link = link_twists(m.skeleton, crossings, m.joints(qd))[self.link]
        velocity = vadd(link.velocity, cross(link.omega, self._offset))
        R = self._rotation.T
        return Twist(turn(R, link.omega), turn(R, velocity))

    def _gravity(self, q: Sequence[Scalar]) -> Vector:
        """Free fall in the frame's axes."""
        m = self._mechanism
        poses = link_poses(m.skeleton, m.joints(q, is_position=True))
        columns, _ = poses[self.link]
        g = vector(self.arm.gravity)
        return turn(self._rotation.T, (*(dot(c, g) for c in columns),))

    def _kernel(
        self, name: str, function: Callable[..., dict[str, object]], inputs: int
    ) -> Kernel:
        # By link and pose, not by the frame's name: equal frames share a kernel.
        key = (self._mechanism.key, str(self.link), self.pose.tobytes().hex(), name)
        sizes = dict.fromkeys(("q", "qd", "qdd")[:inputs], self._mechanism.dof)
        return _kernel(key, self.backend, function, sizes)

    def _call(self, kernel: Kernel, *inputs: ArrayLike) -> np.ndarray:
        what = f"one per joint of {self.arm.name}"
        names = ("q", "qd", "qdd")
        arrays = [
            _rows(name, x, self.arm.dof, what)
            for name, x in zip(names, inputs, strict=False)
        ]
        return _run(kernel, arrays)


def _kernel(
    key: tuple[str, ...],
    backend: Backend,
    function: Callable[..., dict[str, object]],
    sizes: dict[str, int],
) -> Kernel:
    resolved = resolve_backend(backend)
    if (*key, resolved) not in _kernels:
        program = trace(f"held_{key[-1]}", function, sizes)
        _kernels[(*key, resolved)] = Kernel(program, resolved)
    return _kernels[(*key, resolved)]


def _run(kernel: Kernel, arrays: list[np.ndarray]) -> np.ndarray:
    shape = arrays[0].shape[:-1]
    # Broadcasting copies; equal shapes do not need it.
    if any(x.shape[:-1] != shape for x in arrays):
        shape = np.broadcast_shapes(*[x.shape[:-1] for x in arrays])
        arrays = [np.broadcast_to(x, (*shape, x.shape[-1])) for x in arrays]
    flat = [np.ascontiguousarray(x.reshape(-1, x.shape[-1])) for x in arrays]
    (result,) = kernel(flat)
    return result.reshape(*shape, *result.shape[1:])


def _rows(name: str, values: ArrayLike, size: int, what: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ArgumentError(
            f"{name} must end in {size} values, {what}, but has shape {array.shape}."
        )
    return array


def _vector(x: Sequence[Scalar]) -> Vector:
    return x[0], x[1], x[2]


def _internal_columns() -> np.ndarray:
    """Ten parameters → [m, h, Σ], both in the same frame."""
    columns = []
    for unit in np.eye(10):
        P = InertialParameters(unit).pseudo_inertia
        # The upper triangle of Σ by rows, the order of `link_wrench`.
        sigma = P[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
        columns.append([P[3, 3], *P[:3, 3], *sigma])
    return np.array(columns).T


_INTERNAL = _internal_columns()
