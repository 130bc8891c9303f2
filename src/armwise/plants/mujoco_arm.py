"""MujocoArm: the same protocol on an engine that no one here wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.errors import ArgumentError, ArmError
from armwise.plants.actuator import Actuator
from armwise.plants.clock import Clock
from armwise.plants.instruments import IDEAL_SENSORS
from armwise.plants.mujoco_engine import MujocoEngine
from armwise.plants.mujoco_model import import_mujoco, model_from_arm
from armwise.plants.payload import Payload
from armwise.plants.rig import Rig
from armwise.plants.rigged import RiggedPlant
from armwise.plants.sensors import Sensor, WristSensor

if TYPE_CHECKING:
    from jaxtyping import Float


class MujocoArm(RiggedPlant):
    """An arm, or a batch of equal arms, simulated by MuJoCo.

    Args:
        arm: An Arm, a URDF or DH file or bundled name (rebuilt without geometry), or
            an MJCF file (taken as it is, its own actuators switched off).
        sensors: What is measured and how it errs; exact q, q̇, τ when not given.
        seed: Seed of all randomness.
        batch: Number of arms side by side.
        actuator: What lies between command and torque.
        payload: A load in the hand (not with MJCF files).
        control_rate_hz: Torques per second.
        plant_rate_hz: Steps of MuJoCo per second, at least.
        integrator: "euler", "rk4", "implicit" or "implicitfast".
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
        keeps_truth: Whether recordings hold the true motion as well; for a single
            arm only when not given.
    """

    def __init__(
        self,
        arm: Arm | str | Path,
        *,
        sensors: Sequence[Sensor] | None = None,
        seed: int = 0,
        batch: int = 1,
        actuator: Actuator | None = None,
        payload: Payload | None = None,
        control_rate_hz: float = 1000.0,
        plant_rate_hz: float = 2000.0,
        integrator: str = "implicitfast",
        speed_bound: float = 1e3,
        keeps_truth: bool | None = None,
    ) -> None:
        sensors = IDEAL_SENSORS if sensors is None else tuple(sensors)
        actuator = actuator or Actuator()
        wrist = [x.frame for x in sensors if isinstance(x, WristSensor)]
        self.arm, model = _model(arm, payload, wrist[0] if wrist else None)
        clock = Clock.from_rates(control_rate_hz, plant_rate_hz, actuator.delay)
        engine = MujocoEngine(
            model,
            batch=batch,
            tick=clock.tick,
            integrator=integrator,
            speed_bound=speed_bound,
            offset=_offsets(self.arm),
            joints=self.arm.coordinate_names if self.arm else None,
        )
        self.joint_names = engine.joint_names
        self._engine = engine
        truth = batch == 1 if keeps_truth is None else keeps_truth
        self._rig = Rig(engine, clock, actuator, sensors, seed, engine.wrench, truth)

    @property
    def model(self) -> Any:
        """The MuJoCo model."""
        return self._engine.model


def _model(
    source: Arm | str | Path, payload: Payload | None, wrist: str | None
) -> tuple[Arm | None, Any]:
    if isinstance(source, Arm):
        return source, model_from_arm(source, payload, wrist)
    path = Path(source)
    if not _is_mjcf(path):
        arm = load_arm(source)
        return arm, model_from_arm(arm, payload, wrist)
    if payload is not None or wrist is not None:
        raise ArgumentError(
            f"{path.name}: a payload or a wrist sensor needs an Arm; "
            "load the file with load_arm first."
        )
    mujoco = import_mujoco()
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise ArmError(f"MuJoCo cannot read {path}: {error}") from None
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    return None, model


def _is_mjcf(path: Path) -> bool:
    if path.suffix.lower() not in (".xml", ".mjcf") or not path.is_file():
        return False
    with path.open("rb") as stream:
        return b"<mujoco" in stream.read(65_536)


def _offsets(arm: Arm | None) -> Float[np.ndarray, " dof"] | None:
    """Constant torques of the drives, couplings included, seen at the coordinates."""
    if arm is None:
        return None
    offsets = arm.coupling_matrix.T @ [joint.drive.offset for joint in arm.joints]
    for coupling in arm.couplings:
        offsets = offsets + coupling.weights * coupling.drive.offset
    return np.asarray(offsets, dtype=float)
