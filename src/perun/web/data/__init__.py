"""The data of the dashboard: what each of its pages shows, in named pieces that are JSON, free of HTML.

`state` is all that is read of a store at one moment, with the versions that pages know; `overview`, `series`,
`versions` and `comparing` make the pieces of it, `pieces` knows their names.
"""
