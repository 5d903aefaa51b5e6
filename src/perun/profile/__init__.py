"""Performance profiles as data (manual chapter 2).

`format` says what a profile is, in memory and as JSON; `factory`, `query`, `convert`, `table` and `series`
read and write it; `helpers` is what is known of a profile without its resources.
"""
