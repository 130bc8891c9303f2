"""Plants: arms that take torques and give measurements, simulated."""

from armwise.plants.actuator import Actuator
from armwise.plants.elasticity import JointElasticity
from armwise.plants.friction import Friction
from armwise.plants.integrators import DormandPrince, RungeKutta4, SemiImplicit
from armwise.plants.mismatch import perturbed
from armwise.plants.mujoco_arm import MujocoArm
from armwise.plants.payload import Payload, carrying
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
    "SimulatedArm",
    "Tachometer",
    "TorqueSensor",
    "WristSensor",
    "carrying",
    "perturbed",
    "run",
    "run_batch",
]
