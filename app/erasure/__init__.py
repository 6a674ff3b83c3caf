"""Erasure as an operator meets it: the purge and its receipt, the scrub of the disk, the search of the files."""
