"""Dynamics of one arm: every equation of motion, over batches of samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics.equations import (
    equations,
    frame_equations,
    trace_equation,
)
from armwise.dynamics.mechanism import Mechanism, mechanism_of
from armwise.errors import ArgumentError
from armwise.programs import Backend, Kernel, Program, resolve_backend

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

BLOCK = 256
"""Samples per block of `regressor_blocks`: a block stays in cache."""

# A compiler's time grows with the square of a program's length: ten seconds at 6,000
# steps, minutes at 30,000 (32 joints). NumPy runs a thousand samples of such a program
# in a tenth of a second.
_LONG_PROGRAM = 6_000
"""Steps beyond which a program is run by NumPy, unless C was asked for by name."""

_kernels: dict[tuple[object, ...], Kernel] = {}


class Dynamics:
    """The equations of motion of an arm.

    Arrays are samples first, (..., n), in [rad] or [m] and their time derivatives;
    torques in [N m] or [N]. One sample or a million: the same call.

    Args:
        arm: The arm, with the parameters to use.
        backend: "c" runs generated C, "numpy" needs no compiler, "auto" picks: C, but
            for programs so long that compiling them would take minutes.
    """

    def __init__(self, arm: Arm, backend: Backend = "auto") -> None:
        self.arm = arm
        self.backend = resolve_backend(backend)
        self._is_compiled_whole = backend != "auto"
        self.mechanism: Mechanism = mechanism_of(arm)

    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> Float[np.ndarray, "*batch dof"]:
        """Torque for a motion: M q̈ + C q̇ + g, rotor inertia, friction and offset."""
        return self._call("inverse_dynamics", q=q, qd=qd, qdd=qdd)

    def inverse_dynamics_of(
        self,
        parameters: Float[np.ndarray, " parameters"],
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
    ) -> Float[np.ndarray, "*batch dof"]:
        """The same with other parameters; cheaper than an arm that has them."""
        kernel, inputs = (
            self._kernel("inverse_dynamics"),
            {"q": q, "qd": qd, "qdd": qdd},
        )
        return self._run(kernel, inputs, self._uniforms(parameters))

    def mass_matrix(self, q: ArrayLike) -> Float[np.ndarray, "*batch dof dof"]:
        """Mass matrix M(q), rotor inertias included."""
        return self._call("mass_matrix", q=q)

    def gravity_torque(self, q: ArrayLike) -> Float[np.ndarray, "*batch dof"]:
        """Torque g(q) that holds the arm still against gravity."""
        return self._call("gravity_torque", q=q)

    def velocity_torque(
        self, q: ArrayLike, qd: ArrayLike
    ) -> Float[np.ndarray, "*batch dof"]:
        """Coriolis and centrifugal torque C(q, q̇) q̇, without gravity or friction."""
        return self._call("velocity_torque", q=q, qd=qd)

    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike
    ) -> Float[np.ndarray, "*batch dof dof"]:
        """C(q, q̇) from Christoffel's symbols: Ṁ − 2C is skew."""
        return self._call("coriolis_matrix", q=q, qd=qd)

    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike
    ) -> Float[np.ndarray, "*batch dof"]:
        """Acceleration under a torque, friction included."""
        return self._call("forward_dynamics", q=q, qd=qd, tau=tau)

    def kinetic_energy(
        self, q: ArrayLike, qd: ArrayLike
    ) -> Float[np.ndarray, "*batch"]:
        """Kinetic energy in [J], rotors included."""
        return self._call("kinetic_energy", q=q, qd=qd)

    def potential_energy(self, q: ArrayLike) -> Float[np.ndarray, "*batch"]:
        """Energy against gravity in [J], zero for mass at the base's origin."""
        return self._call("potential_energy", q=q)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> Float[np.ndarray, "*batch dof parameters"]:
        """Regressor Y with Y @ arm.parameters == inverse_dynamics."""
        return self._call("regressor", q=q, qd=qd, qdd=qdd)

    def slotine_li_regressor(
        self, q: ArrayLike, qd: ArrayLike, qdr: ArrayLike, qddr: ArrayLike
    ) -> Float[np.ndarray, "*batch dof parameters"]:
        """Y with Y π = M q̈r + C(q, q̇) q̇r + g, viscous friction at q̇r, Coulomb at q̇."""
        return self._call("slotine_li_regressor", q=q, qd=qd, qdr=qdr, qddr=qddr)

    def momentum_regressor(
        self, q: ArrayLike, qd: ArrayLike
    ) -> Float[np.ndarray, "*batch dof parameters"]:
        """Y with Y π = M q̇; friction and offset have no momentum."""
        return self._call("momentum_regressor", q=q, qd=qd)

    def kinetic_gradient_regressor(
        self, q: ArrayLike, qd: ArrayLike
    ) -> Float[np.ndarray, "*batch dof parameters"]:
        """Y with Y π = ∂T/∂q: τ = d(M q̇)/dt − ∂T/∂q + g + friction."""
        return self._call("kinetic_gradient_regressor", q=q, qd=qd)

    def link_pose(self, q: ArrayLike, link: str) -> Float[np.ndarray, "*batch 4 4"]:
        """T_base_link of a link or named frame."""
        return self._call_frame("link_pose", link, q)

    def jacobian(self, q: ArrayLike, link: str) -> Float[np.ndarray, "*batch 6 dof"]:
        """Jacobian of a link's or frame's origin: linear, then angular; base axes."""
        return self._call_frame("jacobian", link, q)

    def regressor_blocks(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, block: int = BLOCK
    ) -> Iterator[tuple[slice, Float[np.ndarray, "samples dof parameters"]]]:
        """Yield the regressor of a long log block by block, in one reused buffer."""
        arrays = [self._array(k, v) for k, v in (("q", q), ("qd", qd), ("qdd", qdd))]
        kernel = self._kernel("regressor")
        samples = arrays[0].shape[0]
        # Zeros once: kernels never write structural zeros, so that they stay.
        buffer = np.zeros((block, self.arm.dof, self.arm.parameters.size))
        for start in range(0, samples, block):
            part = slice(start, min(start + block, samples))
            out = buffer[: part.stop - start]
            kernel([a[part] for a in arrays], (), [out])
            yield part, out

    def program(self, name: str) -> Program:
        """Return the traced program behind one of the functions."""
        return self._kernel(name).program

    def kernel(self, name: str) -> Kernel:
        """Return the compiled kernel behind one of the functions."""
        return self._kernel(name)

    @cached_property
    def uniforms(self) -> dict[str, np.ndarray]:
        """The arm's parameters as the programs take them."""
        return self._uniforms(self.arm.parameters)

    def _uniforms(self, parameters: np.ndarray) -> dict[str, np.ndarray]:
        layout = self.arm.layout
        tens = layout.by_link(parameters)[..., None]
        links = np.ascontiguousarray((self.mechanism.to_internal @ tens).ravel())
        return {
            "bodies": np.ascontiguousarray(self.mechanism.grouped(parameters)),
            "drives": np.ascontiguousarray(parameters[layout.drives]),
            "links": links,
        }

    def _kernel(self, name: str) -> Kernel:
        key = (self.mechanism.key, name, self.backend, self._is_compiled_whole)
        if key not in _kernels:
            available = equations(self.mechanism)
            if name not in available:
                raise ArgumentError(
                    f"No equation {name!r}. Known: {', '.join(available)}."
                )
            program = trace_equation(self.mechanism, name, available[name])
            is_long = len(program.steps) > _LONG_PROGRAM
            interpret = is_long and self.backend == "c" and not self._is_compiled_whole
            _kernels[key] = Kernel(program, "numpy" if interpret else self.backend)
        return _kernels[key]

    def _frame_kernel(self, name: str, frame: str) -> Kernel:
        link, T = self.arm.find_frame(frame)
        # Frames differ in pose, not only in name: the key holds every bit of T.
        key = (self.mechanism.key, f"{name}:{link}:{T.tobytes().hex()}", self.backend)
        if key not in _kernels:
            equation = frame_equations(self.mechanism, link, T)[name]
            program = trace_equation(self.mechanism, name, equation)
            _kernels[key] = Kernel(program, self.backend)
        return _kernels[key]

    def _call(self, name: str, **inputs: ArrayLike) -> np.ndarray:
        return self._run(self._kernel(name), inputs)

    def _call_frame(self, name: str, frame: str, q: ArrayLike) -> np.ndarray:
        return self._run(self._frame_kernel(name, frame), {"q": q})

    def _run(
        self,
        kernel: Kernel,
        inputs: dict[str, ArrayLike],
        uniforms: dict[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        arrays = [self._array(name, value) for name, value in inputs.items()]
        shape = arrays[0].shape
        # Broadcasting copies; equal shapes, the usual case, do not need it.
        if any(array.shape != shape for array in arrays):
            shape = np.broadcast_shapes(*[array.shape for array in arrays])
            arrays = [np.ascontiguousarray(np.broadcast_to(a, shape)) for a in arrays]
        flat = [_rows(array) for array in arrays]
        names = [i.name for i in kernel.program.inputs if i.is_uniform]
        values = self.uniforms if uniforms is None else uniforms
        (result,) = kernel(flat, [values[name] for name in names])
        return result.reshape((*shape[:-1], *result.shape[1:]))

    def _array(self, name: str, value: ArrayLike) -> np.ndarray:
        """Take joint values as float64, or say what is wrong with them."""
        array = np.asarray(value)
        if array.dtype != np.float64:
            if array.dtype.kind not in "fiu":
                raise ArgumentError(
                    f"{name} must hold real numbers, not {array.dtype}."
                )
            array = array.astype(np.float64)
        if array.ndim == 0 or array.shape[-1] != self.arm.dof:
            raise ArgumentError(
                f"{name} must end in {self.arm.dof} values, one per joint of "
                f"{self.arm.name} ({', '.join(self.arm.coordinate_names)}), "
                f"but has shape {array.shape}."
            )
        return array


def _rows(array: np.ndarray) -> np.ndarray:
    """See an array as (samples, n) with contiguous rows, without copying if it can."""
    rows = array.reshape(-1, array.shape[-1])
    # Kernels take any distance between rows but read a row's floats in sequence.
    return rows if rows.strides[-1] == 8 else np.ascontiguousarray(rows)
