"""The demonstration: real parts on one machine, brought up and ended by one command."""
