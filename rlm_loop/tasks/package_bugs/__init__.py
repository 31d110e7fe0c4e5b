"""Bugs in real packages: source distributions with one slip each, judged by the tests that they carry."""
