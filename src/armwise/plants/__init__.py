"""Plants: arms that take torques and give measurements, simulated."""

from armwise.plants.altered_arms import Payload, carrying, perturbed
from armwise.plants.drive import Actuator, Friction, JointElasticity
from armwise.plants.integrators import (
    CashKarp,
    DormandPrince,
    Integrator,
    RungeKutta4,
    SemiImplicit,
    Tableau,
    explicit_step,
    step_error,
    unsupported_integrator,
)
from armwise.plants.mujoco_arm import MujocoArm, import_mujoco
from armwise.plants.protocol import Controller, Measurement, Plant
from armwise.plants.run import run, run_batch
from armwise.plants.sensors import (
    AnalogSensor,
    CurrentSensor,
    Encoder,
    EncoderVelocity,
    Sensor,
    Tachometer,
    TorqueSensor,
    WristSensor,
)
from armwise.plants.simulated_arm import SimulatedArm
from armwise.plants.socket_plant import SocketPlant, serve_plant
from armwise.plants.steppers import (
    cuda_stepper_source,
    one_joint_stepper_source,
    stepper_source,
)

__all__ = [
    "Actuator",
    "AnalogSensor",
    "CashKarp",
    "Controller",
    "CurrentSensor",
    "DormandPrince",
    "Encoder",
    "EncoderVelocity",
    "Friction",
    "Integrator",
    "JointElasticity",
    "Measurement",
    "MujocoArm",
    "Payload",
    "Plant",
    "RungeKutta4",
    "SemiImplicit",
    "Sensor",
    "SimulatedArm",
    "SocketPlant",
    "Tableau",
    "Tachometer",
    "TorqueSensor",
    "WristSensor",
    "carrying",
    "cuda_stepper_source",
    "explicit_step",
    "import_mujoco",
    "one_joint_stepper_source",
    "perturbed",
    "run",
    "run_batch",
    "serve_plant",
    "step_error",
    "stepper_source",
    "unsupported_integrator",
]
