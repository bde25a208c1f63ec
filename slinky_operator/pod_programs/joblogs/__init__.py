"""Output of jobs without a shared file system: a server beside slurmd, and a follower that prints one job's output.

Both run from the operator's image and use nothing but the standard library, so that they start at once and stay small.

`python -m slinky_operator.joblogs serve` runs beside slurmd and serves files of a folder that both containers mount. It
keeps no list of jobs: each request carries a token (`tokens`) that the operator has made for one file of one job, and
that says as whom it is to be opened. `server` talks to callers, opens files and deletes those that nobody needs;
`files` says what may be opened, `folders` reads folders of users in slices.

`python -m slinky_operator.joblogs follow` runs in the pod of a job, as anybody: `follower`. It reads the server with a
time limit (`timed_socket`).

`protocol` is what both sides agree on, `log` bounds what they print, `command` is the command line of all.

The server reports the room on its volume without a token, by the same code as in the agent beside slurmctld
(`slinky_operator.pod_programs.agent.volumes`).

`copies` copies files and folders between a job's nodes and volumes.

When such pods and files exist is left to the operator's controllers.
"""
