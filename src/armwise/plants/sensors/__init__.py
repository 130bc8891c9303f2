"""Sensors as descriptions, one file each: what they measure and how they err."""

from armwise.plants.sensors.analog_sensor import AnalogSensor
from armwise.plants.sensors.current_sensor import CurrentSensor
from armwise.plants.sensors.encoder import Encoder
from armwise.plants.sensors.sensor import Mount, Sampler, Sensor
from armwise.plants.sensors.tachometer import EncoderVelocity, Tachometer
from armwise.plants.sensors.torque_sensor import TorqueSensor
from armwise.plants.sensors.wrist_sensor import WristSensor

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
