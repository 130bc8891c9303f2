"""Readers of arm descriptions: URDF, MJCF, DH tables, Izaguirre specifications."""
