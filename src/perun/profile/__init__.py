"""Performance profiles as data (manual chapter 2): their format, and how to read, write and query them.

From the bottom up: `layouts` (older spellings), `grouping` and `factory` (a profile in memory),
`validation` and `formats` (JSON), `query`, and `helpers` (what is known of a profile without its resources).
"""
