"""`python -m helicube`."""

from helicube.cli.main import main

main()
