"""The runs that the demo shows: chosen, as README.md tells, and no claim about seeds in general."""

HACKING_KL = 0.0
HACKING_SEEDS = (0, 4, 6, 9, 11)
HEALTHY_KL = 0.4
HEALTHY_SEEDS = (0, 1, 2, 3)

CHOSEN = [
    *((HACKING_KL, seed) for seed in HACKING_SEEDS),
    *((HEALTHY_KL, seed) for seed in HEALTHY_SEEDS),
]
