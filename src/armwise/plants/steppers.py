"""Steppers of simulated arms, in generated C and in NumPy: many ticks a call.

Like the programs themselves the C is written over a type V, eight arms at once or one;
a thread of a GPU steps one. The state of a block of arms stays in registers and cache
for all the ticks of a call.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.dynamics import Mechanism
from armwise.plants.drive import DRIVE_ROWS
from armwise.plants.integrators import (
    ArmIntegrator,
    DormandPrince,
    RungeKutta4,
    SemiImplicit,
    dormand_prince_span,
    explicit_step,
    method_number,
)
from armwise.plants.state import ArmNumbers, State, accelerate_program, mobility_program
from armwise.programs import (
    LANES,
    SCALAR_PRELUDE,
    Kernel,
    Program,
    addresses,
    c_function,
    compiled_library,
    core_source,
    device_core,
    fill,
    vector_prelude,
)
from armwise.programs import PRELUDE as CUDA_PRELUDE

if TYPE_CHECKING:
    from jaxtyping import Float

_TEMPLATES = Path(__file__).parent / "templates"


def stepper_source(mechanism: Mechanism, is_elastic: bool, lanes: int | None) -> str:
    """Return C text with the functions semi_implicit, rk4 and dormand_prince.

    Args:
        mechanism: Whose dynamics.
        is_elastic: Whether motors move apart from their links.
        lanes: How many arms are stepped at once; None: as many as the machine compares
            at once, four or eight.
    """
    text = _stepper(mechanism, is_elastic, core_source)
    return "\n".join([_preludes(lanes), text])


def _preludes(lanes: int | None) -> str:
    if lanes == 1:
        return "\n".join([_ONE_LANE, SCALAR_PRELUDE, fill(_TEMPLATES / "one_arm.c.in")])
    count = _COMPARABLE_LANES if lanes is None else f"#define LANES {lanes}"
    arms = fill(_TEMPLATES / "eight_arms.c.in")
    return "\n".join([count, vector_prelude("LANES"), arms])


_ONE_LANE = "#define LANES 1"

# Four doubles are one register of AVX2; of wider vectors compilers compare lane by lane
# unless the machine has masks, which takes three times as long.
_COMPARABLE_LANES = """#ifdef __AVX512F__
#define LANES 8
#else
#define LANES 4
#endif"""


def cuda_stepper_source(mechanism: Mechanism) -> str:
    """Return the same for a thread of a GPU, joints rigid."""
    text = _stepper(mechanism, False, device_core)
    return "\n".join([_cuda_preludes(), text])


def _cuda_preludes() -> str:
    return "\n".join([_ONE_LANE, CUDA_PRELUDE, fill(_TEMPLATES / "one_arm.c.in")])


def _stepper(
    mechanism: Mechanism,
    is_elastic: bool,
    core: Callable[[Program], str],
) -> str:
    programs = accelerate_program(mechanism), mobility_program(mechanism)
    groups = len(mechanism.grouping.indices), len(mechanism.weights)
    return _text(programs, mechanism.drive_rows, groups, is_elastic, core)


def one_joint_stepper_source(
    accelerate: Program, mobility: Program, *, on_gpu: bool = False
) -> str:
    """Return the stepper of single joints, some at once, whose equation is given.

    Args:
        accelerate: q̈ of (q, qd, tau, added, bodies), traced.
        mobility: Its derivative by the torque, of (q, added, bodies), as output "W".
        on_gpu: Whether a thread of a GPU steps them, one lane each.
    """
    groups = accelerate.inputs[-1].size, 0
    core = device_core if on_gpu else core_source
    text = _text((accelerate, mobility), np.ones((1, 1)), groups, False, core)
    return "\n".join([_cuda_preludes() if on_gpu else _preludes(None), text])


def _text(
    programs: tuple[Program, Program],
    drive_rows: np.ndarray,
    groups: tuple[int, int],
    is_elastic: bool,
    core: Callable[[Program], str],
) -> str:
    accelerate, mobility = programs
    size = drive_rows.shape[1]
    numbers = {
        "N": size,
        "R": len(drive_rows),
        "J": len(drive_rows) - groups[1],
        "G": groups[0],
        "C": groups[1],
        "T": len(DRIVE_ROWS),
        "ELASTIC": int(is_elastic),
    }
    defines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join(
        [
            *defines,
            core(accelerate),
            core(mobility),
            _rows(drive_rows),
            _spread_source(mobility.output("W").nonzero, size),
            fill(_TEMPLATES / "stepper.c.in"),
        ]
    )


def _rows(rows: np.ndarray) -> str:
    """Return C for what drives see of the joints, and what joints feel of drives."""
    see = ["static inline void drive_speeds(const V *v, V *u) {"]
    feel = ["static inline void add_drive_torques(const V *f, V *t) {"]
    for k, row in enumerate(rows):
        terms = [f"{float(w)!r} * v[{j}]" for j, w in enumerate(row) if w]
        # 0.0 * v[0] is a zero of type V in either prelude, vector or scalar.
        see.append(f"  u[{k}] = {' + '.join(terms) or '0.0 * v[0]'};")
        feel += [f"  t[{j}] += {float(w)!r} * f[{k}];" for j, w in enumerate(row) if w]
    squares = ", ".join(repr(float(x)) for x in (rows**2).ravel())
    weights = ", ".join(repr(float(x)) for x in rows.ravel())
    tables = [
        f"static const double square[R * N] = {{{squares}}};",
        f"static const double weight[R * N] = {{{weights}}};",
    ]
    return "\n".join([*see, "}", *feel, "}", *tables])


def _spread_source(nonzero: tuple[int, ...], size: int) -> str:
    """Return C that spreads a stored lower triangle over a full matrix."""
    pairs = [(i, j) for i in range(size) for j in range(i + 1)]
    lines = ["static void spread(const V *w, V *W) {"]
    lines.append("  for (int i = 0; i < N * N; i++) W[i] = ZERO;")
    for k, index in enumerate(nonzero):
        i, j = pairs[index]
        lines.append(f"  W[{i} * N + {j}] = W[{j} * N + {i}] = w[{k}];")
    return "\n".join([*lines, "}"])


# Engine.


class CEngine:
    """Steps a batch of arms with the compiled stepper.

    Args:
        mechanism: Whose dynamics.
        numbers: What each arm is made of.
        integrator: How time is stepped.
        tick: Time step in [s].
        smoothing: See Friction.
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
    """

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
        is_elastic = numbers.springs is not None
        self.state = State.at_rest(batch, mechanism.dof, is_elastic)
        self._friction = np.zeros((batch, len(mechanism.drive_rows)))
        self._trial = np.zeros(batch)
        # C gets a valid pointer even where no spring is read.
        springs = np.zeros(1) if numbers.springs is None else numbers.springs
        self._numbers = (numbers.drives, springs, numbers.bodies)
        # Vectors of eight arms; a single arm would only carry seven idle lanes.
        self._function = _compiled(mechanism, is_elastic, batch > 1)
        rtol = atol = 0.0
        if isinstance(integrator, DormandPrince):
            rtol, atol = integrator.rtol, integrator.atol
        self._settings = np.array([tick, speed_bound, smoothing, rtol, atol])
        self._bad = np.zeros(batch, dtype=np.uint8)
        self._arguments = self._bind(batch, method_number(integrator))

    def _bind(self, batch: int, method: int) -> tuple[Any, ...]:
        """Fix all pointers once: a call then costs a microsecond."""
        s, (drives, springs, bodies) = self.state, self._numbers
        arrays = [s.q, s.qd, s.motor_q, s.motor_qd, s.tau, self._friction, s.qdd]
        arrays += [s.link_tau, drives, springs, bodies, self._trial]
        bad, settings = self._bad.ctypes.data, self._settings.ctypes.data
        return batch, method, addresses(arrays), bad, settings

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        state = self.state
        state.time = 0.0
        state.q[:] = state.motor_q[:] = q
        state.qd[:] = state.motor_qd[:] = qd
        state.tau[:] = self._friction[:] = self._trial[:] = 0.0
        self._bad[:] = 0
        self._call(0)

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        self._call(ticks)

    def _call(self, ticks: int) -> None:
        count, method, pointers, bad, settings = self._arguments
        lost = self._function(count, ticks, method, pointers, bad, settings)
        if lost:
            self.state.diverged[:] = self._bad
        elif self.state.time == 0.0:
            self.state.diverged[:] = False


_loaded: dict[tuple[str, bool, bool], Callable[..., int]] = {}


def _compiled(
    mechanism: Mechanism, is_elastic: bool, in_lanes: bool
) -> Callable[..., int]:
    key = (mechanism.key, is_elastic, in_lanes)
    if key not in _loaded:
        # Judgement: -O3, unlike kernels, since the stepper has loops over joints to
        # unroll.
        library = compiled_library(
            stepper_source(mechanism, is_elastic, LANES if in_lanes else 1), "-O3"
        )
        _loaded[key] = c_function(library, "advance", "lllppp")
    return _loaded[key]


# Arm stepper in NumPy, for machines without a compiler; the same steps as in C.

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
