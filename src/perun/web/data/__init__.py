"""The data of the dashboard: what each of its pages shows, in named pieces that are JSON, free of HTML.

`commits` are the versions that pages know, `state` is all that is read of a store at one moment; `overview`,
`series`, `grid`, `coverage`, `versions` and `comparing` make the pieces of it, `pieces` knows their names.
"""
