"""Whether speculation changed anything: greedy answers compared, draws tested."""
