"""Readers of log files: CSV, Parquet, NPZ, MAT, ROS 2 bags."""
