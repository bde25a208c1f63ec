"""What to say of jobs.

=============  =============================================
`queue`        why jobs wait, counted
`job`          why a job waits, or what became of it
`limits`       which limit holds a job back, and who uses it
`near_misses`  what each node lacks for a job
=============  =============================================
"""
