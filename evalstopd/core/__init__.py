"""Pure decisions: standard library only, no clock, no input or output, no logging."""
