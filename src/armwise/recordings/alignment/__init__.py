"""Alignment of torque with motion: lag, cut-off, velocity source."""
