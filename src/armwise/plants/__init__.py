"""Plants: arms that take torques and give measurements, simulated."""

from armwise.plants.actuator import Actuator
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

__all__ = [
    "Actuator",
    "AnalogSensor",
    "Controller",
    "CurrentSensor",
    "Encoder",
    "EncoderVelocity",
    "Measurement",
    "MujocoArm",
    "Payload",
    "Plant",
    "Tachometer",
    "TorqueSensor",
    "WristSensor",
    "carrying",
    "run",
    "run_batch",
]
