"""`python -m ra` is `ra`."""

from ra.cli.main import main

main()
