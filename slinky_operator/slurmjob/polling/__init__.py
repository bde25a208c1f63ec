"""How the jobs of a Cluster are seen.

One poll for all its SlurmJobs (`queues`), the job of one of them (`job_list`), jobs just submitted (`young_jobs`).
"""
