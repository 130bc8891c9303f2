"""Plants: arms that take torques and give measurements, simulated."""

from armwise.plants.protocol import Controller, Measurement, Plant

__all__ = ["Controller", "Measurement", "Plant"]
