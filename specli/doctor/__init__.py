"""What this machine is, what is installed on it, and what stands in the way: no printing."""
