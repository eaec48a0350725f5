"""Lets `python -m pdtui` start the console."""

from pdtui.cli import main

if __name__ == "__main__":
    main()
