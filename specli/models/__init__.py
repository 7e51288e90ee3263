"""Which models there are, where their files lie, and which of them go together."""
