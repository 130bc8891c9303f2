"""Plants: arms that take torques and give measurements, simulated."""

from armwise.plants.drive import Actuator, Friction, JointElasticity
from armwise.plants.integrators import DormandPrince, RungeKutta4, SemiImplicit
from armwise.plants.mujoco_arm import MujocoArm, import_mujoco
from armwise.plants.payload import Payload, carrying
from armwise.plants.perturbed import perturbed
from armwise.plants.protocol import Controller, Measurement, Plant
from armwise.plants.run import run, run_batch
from armwise.plants.sensors import (
    AnalogSensor,
    CurrentSensor,
    Encoder,
    EncoderVelocity,
    Tachometer,
    TorqueSensor,
    WristSensor,
)
from armwise.plants.sensors.sensor import Sensor
from armwise.plants.simulated_arm import SimulatedArm

__all__ = [
    "Actuator",
    "AnalogSensor",
    "Controller",
    "CurrentSensor",
    "DormandPrince",
    "Encoder",
    "EncoderVelocity",
    "Friction",
    "JointElasticity",
    "Measurement",
    "MujocoArm",
    "Payload",
    "Plant",
    "RungeKutta4",
    "SemiImplicit",
    "Sensor",
    "SimulatedArm",
    "Tachometer",
    "TorqueSensor",
    "WristSensor",
    "carrying",
    "import_mujoco",
    "perturbed",
    "run",
    "run_batch",
]
