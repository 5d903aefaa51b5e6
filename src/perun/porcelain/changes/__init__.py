"""`perun changes`: which versions changed the level of a series.

`history` walks the versions and reads what each measured, `detecting` finds the steps of each series,
`events` says what they are together: one commit that changed several series, cost that moved from one
function to another, a step that a later one takes back, a function that went away.
"""
