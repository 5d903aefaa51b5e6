"""Contracts on what programs cost: a committed file of them, and whether they hold."""
