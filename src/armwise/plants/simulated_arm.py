"""SimulatedArm: a plant with friction, elasticity, payload and sensor errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics, mechanism_of
from armwise.errors import ArgumentError
from armwise.plants.altered_arms import Payload, WristWrench, carrying
from armwise.plants.drive import Actuator, Friction, JointElasticity
from armwise.plants.integrators import (
    ArmIntegrator,
    RungeKutta4,
    SemiImplicit,
    require_arm_integrator,
)
from armwise.plants.sensors import Sensor
from armwise.plants.simulation_loop import (
    IDEAL_SENSORS,
    FrictionEngine,
    PlantEngine,
    Rig,
    RiggedPlant,
)
from armwise.plants.state import ArmNumbers, Clock, State
from armwise.plants.steppers import CEngine, NumpyEngine
from armwise.programs import Backend, resolve_backend
from armwise.regression import FrictionModel

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.plants.sensors import Sampler


class SimulatedArm(RiggedPlant):
    """An arm, or a batch of arms side by side, simulated by its own equations.

    Args:
        arm: The arm as one believes it to be.
        sensors: What is measured and how it errs; exact q, q̇, τ when not given.
        seed: Seed of all randomness.
        true_arm: The arm as it really is, if it differs: one, or one for each of a
            batch, of the same geometry.
        batch: Number of arms; that of `true_arm` or `payload` when they are several.
        payload: A load in the hand: one, or one for each of a batch.
        friction: What is added to the drives' Coulomb and viscous friction.
        elasticity: Springs between motors and links; rigid when not given.
        actuator: What lies between command and torque.
        integrator: How time is stepped; RungeKutta4() for rigid joints without
            Coulomb friction and without viscous friction too stiff for it, else
            SemiImplicit(), when not given.
        control_rate_hz: Torques per second.
        plant_rate_hz: Steps of the plant per second, at least; 2000 for RungeKutta4,
            4000 for SemiImplicit, the controller's for DormandPrince when not given.
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
        keeps_truth: Whether recordings hold the true motion as well; for a single
            arm only when not given.
        backend: "c", "numpy" or "auto".
    """

    def __init__(
        self,
        arm: Arm,
        *,
        sensors: Sequence[Sensor] | None = None,
        seed: int = 0,
        true_arm: Arm | Sequence[Arm] | None = None,
        batch: int | None = None,
        payload: Payload | Sequence[Payload] | None = None,
        friction: Friction | None = None,
        elasticity: JointElasticity | None = None,
        actuator: Actuator | None = None,
        integrator: ArmIntegrator | None = None,
        control_rate_hz: float = 1000.0,
        plant_rate_hz: float | None = None,
        # Judgement: some hundred times what arms reach; faster is divergence.
        speed_bound: float = 1e3,
        keeps_truth: bool | None = None,
        backend: Backend = "auto",
    ) -> None:
        self.arm = arm
        friction, actuator = friction or Friction(), actuator or Actuator()
        self._payloads = _several(payload, Payload)
        bare = _several(true_arm, Arm) or (arm,)
        batch = _batch_size(batch, len(bare), len(self._payloads))
        self._bare = _spread(bare, batch)
        self._payloads = _spread(self._payloads, batch)
        self.true_arms = _loaded(arm, self._bare, self._payloads)
        mechanism = mechanism_of(arm)
        numbers = ArmNumbers.of(self.true_arms, mechanism, friction, elasticity)
        self.integrator = require_arm_integrator(
            integrator or _suitable(numbers, self.true_arms[0], backend)
        )
        rate = plant_rate_hz or max(control_rate_hz, self.integrator.default_rate_hz)
        clock = Clock.from_rates(control_rate_hz, rate, actuator.delay)
        engine = CEngine if resolve_backend(backend) == "c" else NumpyEngine
        self._engine = engine(
            mechanism,
            numbers,
            self.integrator,
            tick=clock.tick,
            smoothing=friction.smoothing,
            speed_bound=speed_bound,
        )
        moving: PlantEngine = self._engine
        self._further = FrictionModel(
            arm, friction.terms, batch, friction.smoothing, clock.tick
        )
        if friction.terms:
            moving = FrictionEngine(self._engine, self._further)
        self._backend = backend
        mounted = IDEAL_SENSORS if sensors is None else tuple(sensors)
        # The truth of large batches would take more memory than their measurements.
        truth = batch == 1 if keeps_truth is None else keeps_truth
        self._rig = Rig(moving, clock, actuator, mounted, seed, self._wrench, truth)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the coordinates, in order."""
        return self.arm.coordinate_names

    def restore_friction(self, states: Float[np.ndarray, "terms batch"]) -> None:
        """Go on as if further friction terms had been through a motion, after a reset.

        Args:
            states: Of every term and arm: `Columns.friction_states`.
        """
        self._further.restore(states, None)

    def coast(self, tau: ArrayLike, steps: int) -> State:
        """Hold torques for many steps of the plant, measuring nothing on the way.

        The open-loop stepper: one call of compiled code, however many steps.

        Args:
            tau: Torques (batch, dof) or (dof,) in [N m] or [N].
            steps: Steps of `plant_period`.

        Returns:
            The truth afterwards, updated in place by whatever comes next.
        """
        self._rig.coast(np.asarray(tau, dtype=float), steps)
        return self.state

    def _wrench(self, frame: str) -> Sampler:
        wrist = WristWrench(self._bare, self._payloads, frame, self._backend)
        return wrist.averaged()


def _several(value: object, kind: type) -> tuple:
    if value is None:
        return ()
    return (value,) if isinstance(value, kind) else tuple(value)  # type: ignore[arg-type]


def _batch_size(batch: int | None, *counts: int) -> int:
    sizes = {count for count in counts if count > 1} | ({batch} if batch else set())
    if batch is not None and batch < 1:
        raise ArgumentError(f"A batch needs at least one arm, not {batch}.")
    if len(sizes - {1}) > 1 or (batch == 1 and len(sizes) > 1):
        raise ArgumentError(
            f"Arms, payloads and batch disagree: {sorted(sizes)}. Give as many of "
            "each, or one for all."
        )
    return max(sizes, default=1)


def _spread(values: tuple, batch: int) -> tuple:
    return values * batch if len(values) == 1 else values


def _loaded(
    arm: Arm, bare: tuple[Arm, ...], payloads: tuple[Payload, ...]
) -> tuple[Arm, ...]:
    key = mechanism_of(arm).key
    for other in set(bare):
        if mechanism_of(other).key != key:
            raise ArgumentError(
                f"The true arm {other.name!r} has another geometry than {arm.name!r}; "
                "they may differ in parameters only."
            )
    if not payloads:
        return bare
    return tuple(carrying(a, p) for a, p in zip(bare, payloads, strict=True))


def _suitable(numbers: ArmNumbers, arm: Arm, backend: Backend) -> ArmIntegrator:
    has_dry_friction = bool(np.any(numbers.drives[:, 2:4]))
    if has_dry_friction or numbers.springs is not None:
        return SemiImplicit()
    if numbers.drives[:, 1].any() and _is_stiff(arm, backend):
        return SemiImplicit()
    return RungeKutta4()


def _is_stiff(arm: Arm, backend: Backend) -> bool:
    """Whether viscous friction stops a light joint faster than RungeKutta4 can step."""
    viscous = np.zeros((arm.dof, arm.dof))
    for joint, row in zip(arm.joints, arm.coupling_matrix, strict=True):
        viscous += joint.drive.viscous * np.outer(row, row)
    mass = Dynamics(arm, backend=backend).mass_matrix(arm.rest)
    # Rates of decay in [1/s]; a mass matrix that rounding made singular is stiff too.
    values = np.linalg.eigvals(np.linalg.pinv(mass, hermitian=True) @ viscous)
    fastest = float(np.abs(values).max())
    singular = bool(np.linalg.eigvalsh(mass)[0] <= 0)
    # Judgement: a fifth of the limit of stability, since other postures are lighter.
    bound = 0.2 * RungeKutta4.stability_limit * RungeKutta4.default_rate_hz
    return singular or fastest > bound
