"""`python -m evalstopd_sim`: the simulator's commands on their own."""

from evalstopd_sim.commands import app

app(prog_name="python -m evalstopd_sim")
