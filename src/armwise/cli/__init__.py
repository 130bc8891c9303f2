"""The command line: one subcommand per verb, one file per subcommand, no logic."""
