"""`python -m evalstopd`: the same as the command `evalstopd`."""

from evalstopd.cli import main

main()
