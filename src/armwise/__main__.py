"""The command `armwise`, for Pythons whose scripts are not on the path."""

from armwise.cli.main import main

if __name__ == "__main__":
    main()
