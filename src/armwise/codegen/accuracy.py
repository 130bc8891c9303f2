"""Accuracy of generated code: reference values, rounding bounds and the self-test.

Every operation adds half a unit in the last place of its result to the errors it was
given (Higham 2002, §3.3). Evaluated beside the values in double precision, this bounds
the error of each state looked at; the largest over many states is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.codegen.c_text import ULP, Precision, fill
from armwise.codegen.code import CodeText, Routine
from armwise.codegen.model import LOAD_SIZE, CodeModel
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.programs import Program, Scalar, numpy_function

if TYPE_CHECKING:
    from jaxtyping import Float


# Judgement: usual for an industrial arm, so that velocity terms are not negligible.
_DEFAULT_SPEED, _DEFAULT_ACCELERATION = 2.0, 5.0
"""Speed in [rad/s] and acceleration in [rad/s²] where the arm's limits say nothing."""


@dataclass(frozen=True, eq=False)
class States:
    """States of an arm, one row each."""

    q: Float[np.ndarray, "states dof"]
    qd: Float[np.ndarray, "states dof"]
    qdd: Float[np.ndarray, "states dof"]
    tau: Float[np.ndarray, "states dof"]


def random_states(arm: Arm, count: int, seed: int) -> States:
    """Draw states within the arm's limits; a turn either way where there are none."""
    rng = np.random.default_rng(seed)
    lower, upper = arm.limits("lower"), arm.limits("upper")
    lower = np.where(np.isfinite(lower), lower, -np.pi)
    upper = np.where(np.isfinite(upper), upper, np.pi)
    speed, acceleration = arm.limits("velocity"), arm.limits("acceleration")
    speed = np.where(np.isfinite(speed), speed, _DEFAULT_SPEED)
    acceleration = np.where(
        np.isfinite(acceleration), acceleration, _DEFAULT_ACCELERATION
    )
    size = (count, arm.dof)
    q = rng.uniform(lower, upper, size)
    qd, qdd = (
        rng.uniform(-speed, speed, size),
        rng.uniform(-acceleration, acceleration, size),
    )
    return States(q, qd, qdd, rng.uniform(-1.0, 1.0, size))


def reference_arm(model: CodeModel, load: np.ndarray | None = None) -> Arm:
    """Return the arm that generated code is about: pruned, and with its load.

    Args:
        model: The model.
        load: Ten parameters in the frame of the model's frame, if it takes a load.
    """
    arm = model.arm
    vector = np.array(arm.parameters, dtype=float)
    K = model.mechanism.group_matrix
    if model.pruned:
        missing = np.array(model.bodies) - model.mechanism.grouped(arm.parameters)
        # The least change of the parameters whose groups are the pruned ones.
        vector[arm.layout.links] += np.linalg.lstsq(K, missing, rcond=None)[0]
    if load is not None:
        link, T = arm.find_frame(model.frame)
        load_vector = InertialParameters(load).transformed(T).vector
        vector[arm.layout.link(link)] += load_vector
    return arm.with_parameters(vector)


def random_load(seed: int) -> Float[np.ndarray, " 10"]:
    """Return the ten parameters of some solid box, to test with."""
    rng = np.random.default_rng(seed)
    # Judgement: a workpiece, 5 to 20 cm and 0.5 to 2 kg.
    size = rng.uniform(0.05, 0.2, 3)
    mass = float(rng.uniform(0.5, 2.0))
    central = np.diag(mass / 12 * (size @ size - size**2))
    at = rng.uniform(-0.1, 0.1, 3)
    load = InertialParameters.from_center_of_mass(mass, at, central).vector
    assert load.size == LOAD_SIZE
    return load


def reference_values(
    name: str, arm: Arm, frame: str, states: States
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return what a function takes and must give, arrays by name, states first."""
    dynamics = Dynamics(arm)
    q, qd, qdd, tau = states.q, states.qd, states.qdd, states.tau
    zero = np.zeros_like(q)
    match name:
        case "inverse_dynamics":
            arguments = {"q": q, "qd": qd, "qdd": qdd}
            return arguments, {"tau": dynamics.inverse_dynamics(q, qd, qdd)}
        case "mass_matrix":
            return {"q": q}, {"M": dynamics.mass_matrix(q)}
        case "gravity_torque":
            return {"q": q}, {"tau": dynamics.gravity_torque(q)}
        case "mass_matrix_and_gravity":
            both = {"M": dynamics.mass_matrix(q), "g": dynamics.gravity_torque(q)}
            return {"q": q}, both
        case "velocity_torque":
            return {"q": q, "qd": qd}, {"tau": dynamics.velocity_torque(q, qd)}
        case "friction":
            return {"qd": qd}, {"tau": friction_torque(arm, qd)}
        case "synchronous_torque":
            M = dynamics.mass_matrix(q)
            h = dynamics.velocity_torque(q, qd) + dynamics.gravity_torque(q)
            torque = (M @ qdd[..., None])[..., 0] + h + friction_torque(arm, qd)
            return {"M": M, "h": h, "qd": qd, "qdd": qdd}, {"tau": torque}
        case "forward_dynamics":
            # Near what the state needs by itself: torques at random would accelerate a
            # light wrist beyond anything a bound should be taken over.
            rest_torque = dynamics.inverse_dynamics(q, qd, zero)
            push = rest_torque + tau
            result = {"qdd": dynamics.forward_dynamics(q, qd, push)}
            return {"q": q, "qd": qd, "tau": push}, result
        case "link_pose":
            return {"q": q}, {"pose": dynamics.link_pose(q, frame)}
        case "jacobian":
            return {"q": q}, {"jacobian": dynamics.jacobian(q, frame)}
        case "regressor":
            arguments = {"q": q, "qd": qd, "qdd": qdd}
            return arguments, {"Y": dynamics.regressor(q, qd, qdd)}
    # Another velocity than q̇, or C(q, q̇) could be any matrix with the right product.
    arguments = {"q": q, "qd": qd, "qdr": 0.5 * qd[::-1], "qddr": qdd}
    return arguments, {"Y": dynamics.slotine_li_regressor(*arguments.values())}


def friction_torque(arm: Arm, qd: np.ndarray) -> np.ndarray:
    """Friction alone: inverse dynamics of the drives, without any link."""
    vector = np.array(arm.parameters, dtype=float)
    vector[arm.layout.links] = 0.0
    # Without links and gravity only the drives' torques are left.
    bare = replace(arm, gravity=np.zeros(3)).with_parameters(vector)
    zero = np.zeros_like(qd)
    return Dynamics(bare).inverse_dynamics(zero, qd, zero)


# Rounding: a running error bound, and what is measured.


def rounding_bound(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    precision: Precision,
) -> dict[str, float]:
    """Return the largest error bound of each output, over the given states.

    Args:
        program: The program, in the very order the code runs it.
        inputs: Arrays (states, size), or (size,) for those given once per call.
        precision: What the code computes in; inputs are taken as given in it.
    """
    unit = precision.unit
    values: dict[int, np.ndarray] = {}
    errors: dict[int, np.ndarray] = {}
    for step in program.steps:
        value, error = _step(step, values, errors, inputs, unit)
        values[step.index], errors[step.index] = value, error
    bounds: dict[str, float] = {}
    for item in program.outputs:
        worst = [
            float(np.max(errors[x.index]))
            if isinstance(x, Scalar)
            else unit * abs(float(x))
            for x in item.entries
        ]
        bounds[item.name] = max(worst, default=0.0)
    return bounds


def _step(
    step: Scalar,
    values: Mapping[int, np.ndarray],
    errors: Mapping[int, np.ndarray],
    inputs: Mapping[str, np.ndarray],
    unit: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Value and error bound of one operation."""
    if step.op == "constant":
        # A number is rounded once, when it is written into the code.
        value = np.asarray(float(step.value))  # type: ignore[arg-type]
        return value, unit * np.abs(value)
    if step.op == "input":
        name, index = step.value  # type: ignore[misc]
        # Inputs are what the caller gives: exact by definition.
        value = inputs[str(name)][..., int(index)]
        return value, np.zeros_like(value)
    a, ea = values[step.args[0].index], errors[step.args[0].index]
    if len(step.args) == 2:
        b, eb = values[step.args[1].index], errors[step.args[1].index]
        match step.op:
            case "add":
                value, error = a + b, ea + eb
            case "sub":
                value, error = a - b, ea + eb
            case "mul":
                # With the product of the errors it is a bound, not a first-order
                # estimate.
                value, error = a * b, np.abs(a) * eb + np.abs(b) * ea + ea * eb
            case _:
                # A divisor that may be zero has no bound; tiny makes it huge instead.
                least = np.maximum(np.abs(b) - eb, np.finfo(float).tiny)
                value, error = a / b, (ea + np.abs(a / b) * eb) / least
        return value, error + unit * np.abs(value)
    match step.op:
        case "neg":
            return -a, ea
        case "sin":
            # |sin'| ≤ 1 passes the argument's error on; ULP counts whole units in the
            # last place, `unit` is half of one.
            value = np.sin(a)
            return value, ea + 2 * ULP * unit * np.abs(value)
        case "cos":
            value = np.cos(a)
            return value, ea + 2 * ULP * unit * np.abs(value)
        case "sign":
            # Right unless rounding moves a speed across zero, where friction jumps
            # anyway: no bound could cover that.
            return np.sign(a), np.zeros_like(ea)
        case "abs":
            return np.abs(a), ea
    raise ArgumentError(f"No rounding bound is known for {step.op!r}.")


STATES = 500
"""Random states that bounds are taken over; a run of all functions takes a second."""
_SEED = 7


@dataclass(frozen=True)
class PrecisionError:
    """What rounding does to the results of a function.

    Attributes:
        bound: Largest running error bound over the states, in the results' units.
        measured: Largest difference from double precision over the same states.
        scale: Largest result.
        states: How many states were looked at.
    """

    bound: float
    measured: float
    scale: float
    states: int


def precision_error(code: CodeText, routine: Routine) -> PrecisionError:
    """Bound and measure a function's rounding errors on states within limits."""
    kind = np.float32 if code.precision.name == "float" else np.float64
    load = random_load(_SEED) if code.model.has_load else None
    arm = reference_arm(code.model, load)
    states = random_states(arm, STATES, _SEED)
    arguments, expected = reference_values(
        routine.function.name, arm, code.model.frame, states
    )
    inputs = {
        # Rounded to what the code can be given: errors of the inputs are not the
        # code's.
        k: v.reshape(STATES, -1).astype(kind).astype(float)
        for k, v in arguments.items()
    }
    parameters = _open_values(code.model, load)
    bound = rounding_bound(routine.program, {**inputs, **parameters}, code.precision)
    measured = _measured(routine, inputs, parameters, kind)
    scale = max(float(np.abs(v).max(initial=0.0)) for v in expected.values())
    return PrecisionError(max(bound.values()), measured, scale, STATES)


def _measured(
    routine: Routine,
    inputs: dict[str, np.ndarray],
    parameters: dict[str, np.ndarray],
    kind: type[np.floating],
) -> float:
    """Run the very program in the code's precision and in a better one."""
    run = numpy_function(routine.program)
    # Where long double is no longer than double, nothing is measured: zero.
    better = np.float64 if kind is np.float32 else np.longdouble
    results = []
    for type_ in (kind, better):
        rows = [
            np.ascontiguousarray(inputs[i.name].T).astype(type_)
            for i in routine.program.inputs
            if not i.is_uniform
        ]
        uniform = [
            parameters[i.name].astype(type_)
            for i in routine.program.inputs
            if i.is_uniform
        ]
        results.append(run(rows, uniform))
    return max(
        (
            float(np.max(np.abs(np.asarray(a) - b)))
            for a, b in zip(*results, strict=True)
        ),
        default=0.0,
    )


# The self-test that comes with generated code.

SELFTEST_STATES = 4
"""Few: they are numbers in a file that people read and a controller compiles."""
_SELFTEST_SEED = 1992
_WIDTH = 8
"""Numbers in a line."""


def selftest_file(code: CodeText) -> str:
    """Return NAME_selftest.c: states within limits, expected values, allowed errors."""
    load = random_load(_SELFTEST_SEED) if code.model.has_load else None
    arm = reference_arm(code.model, load)
    states = random_states(arm, SELFTEST_STATES, _SELFTEST_SEED)
    if code.precision.name == "float":  # so that the inputs are exact in the code
        rounded = (x.astype(np.float32).astype(float) for x in vars(states).values())
        states = type(states)(*rounded)
        load = None if load is None else load.astype(np.float32).astype(float)
        arm = reference_arm(code.model, load)
    tests, calls = [], []
    for routine in code.routines:
        name = routine.function.name
        arguments, expected = reference_values(name, arm, code.model.frame, states)
        flat = {k: v.reshape(SELFTEST_STATES, -1) for k, v in arguments.items()}
        goal = {k: v.reshape(SELFTEST_STATES, -1) for k, v in expected.items()}
        tests.append(_test(code, routine, flat, goal, load))
        calls.append(f"  wrong += test_{name}();\n")
    return fill(
        "selftest.c.in",
        NAME=code.name,
        TYPE=code.precision.type,
        STATES=SELFTEST_STATES,
        TESTS="\n".join(tests),
        CALLS="".join(calls),
    )


def allowed_error(
    code: CodeText,
    routine: Routine,
    arguments: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    load: np.ndarray | None,
) -> float:
    """What rounding can do to the code's results and to those it is compared with."""
    inputs = {**arguments, **_open_values(code.model, load)}
    bound = rounding_bound(routine.program, inputs, code.precision)
    scale = max((float(np.abs(x).max()) for x in expected.values()), default=0.0)
    # Twice: the compiler may order sums otherwise. The references are rounded too.
    return 2.0 * max(bound.values()) + 1e-13 * scale


def _open_values(model: CodeModel, load: np.ndarray | None) -> dict[str, np.ndarray]:
    values = {
        "body": np.array(model.bodies),
        "drive": np.array(model.drives),
    }
    if load is not None:
        values["load"] = load
    return values


def _test(
    code: CodeText,
    routine: Routine,
    inputs: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    load: np.ndarray | None,
) -> str:
    name, kind = routine.function.name, code.precision.type
    lines = [f"static int test_{name}(void)", "{"]
    number = code.precision.number
    for key, values in inputs.items():
        lines += _array(f"{kind} {key}", values, number)
    for key, values in expected.items():
        lines += _array(f"double want_{key}", values, repr)
    arguments = [f"{key}[s]" for key in inputs] + list(expected)
    if routine.takes_struct:
        lines += _open_lines(code, load)
        arguments.insert(0, "&p")
    lines += ["  double worst = 0;", "  for (int s = 0; s < STATES; s++) {"]
    lines += [f"    {kind} {key}[{v.shape[1]}];" for key, v in expected.items()]
    lines.append(f"    {code.name}_{name}({', '.join(arguments)});")
    for key, values in expected.items():
        lines.append(
            f"    worst = differ({key}, want_{key}[s], {values.shape[1]}, worst);"
        )
    bound = allowed_error(code, routine, inputs, expected, load)
    lines += ["  }", f'  return report("{name}", worst, {bound!r});', "}", ""]
    return "\n".join(lines)


def _open_lines(code: CodeText, load: np.ndarray | None) -> list[str]:
    lines = [f"  {code.name}_parameters p;", f"  {code.name}_defaults(&p);"]
    if load is not None:
        kind, number = code.precision.type, code.precision.number
        rows = ", ".join(number(float(x)) for x in load)
        lines.append(f"  static const {kind} load[10] = {{{rows}}};")
        lines.append("  for (int i = 0; i < 10; i++) p.load[i] = load[i];")
        lines.append(f"  {code.name}_prepare(&p);")
    return lines


def _array(declaration: str, values: np.ndarray, number: object) -> list[str]:
    """Write rows of numbers as a C array."""
    size = values.shape[1]
    lines = [f"  static const {declaration}[STATES][{size}] = {{"]
    for row in values:
        texts = [number(float(x)) for x in row]  # type: ignore[operator]
        for k in range(0, size, _WIDTH):
            start = "    {" if k == 0 else "     "
            end = "}," if k + _WIDTH >= size else ","
            lines.append(start + ", ".join(texts[k : k + _WIDTH]) + end)
    return [*lines, "  };"]
