"""Measuring on a pool of machines: `perun run matrix --on POOL` and `perun pool check`.

Perun plans, leases jobs and keeps the journal; dask.distributed ships them to the machines. On a machine each
job is a process of its own, which builds its version, waits until nothing else is measured there, and leaves
its profile in a folder until the client has stored it.
"""
