"""Tests; a package so that the doubles can be run as modules."""
