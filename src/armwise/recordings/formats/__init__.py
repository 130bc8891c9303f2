"""Readers of log files: CSV, JSON lines, Parquet, NPZ, MAT, ROS 2 bags."""
