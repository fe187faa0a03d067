"""Several processes serve the clients of one gateway: a parent, and workers.

- `parent`: binds the listening sockets, starts and stops the workers, serves the admin listener
- `crew`: starts, asks, signals and restarts the workers
- `channel`: questions and answers between parent and worker
- `briefing`: the first message to a worker
- `answers`: readiness and metrics of all workers
- `merging`: adds up the metrics of all workers, and of those that ended
- `worker`: the process that serves
"""
