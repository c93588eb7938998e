"""Several daemons on one store: one leads, the others wait; what an old leader still wants to do is refused."""
