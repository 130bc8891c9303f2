"""Sections of the report on an estimate; each function turns a Subject into one."""
