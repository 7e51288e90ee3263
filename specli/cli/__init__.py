"""The command line: glue only, one module a command."""
