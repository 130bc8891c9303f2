"""Sensors: what they measure and their errors, one file each."""

from armwise.plants.sensors.position import (
    AnalogSensor,
    Encoder,
    EncoderVelocity,
    Tachometer,
)
from armwise.plants.sensors.sensor import Mount, Sampler, Sensor
from armwise.plants.sensors.torque import CurrentSensor, TorqueSensor
from armwise.plants.sensors.wrist import WristSensor

__all__ = [
    "AnalogSensor",
    "CurrentSensor",
    "Encoder",
    "EncoderVelocity",
    "Mount",
    "Sampler",
    "Sensor",
    "Tachometer",
    "TorqueSensor",
    "WristSensor",
]
