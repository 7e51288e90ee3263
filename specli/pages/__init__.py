"""Pages of HTML, each one file that asks nothing of a network."""
