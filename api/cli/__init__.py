"""The command line: ``ducklm``."""
