"""The command line: one subcommand per verb, next of kin in one file, no logic."""
