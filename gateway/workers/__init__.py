"""Several processes serve the clients of one gateway: a parent, and workers.

- `parent`: binds, starts the workers, answers the admin listener, stops all
- `crew`: the workers as the parent sees them: started, asked, started again
- `backoff`: how soon
- `channel`: what parent and worker say to each other
- `briefing`: what a worker is told first
- `answers`: to those who ask the gateway how it is
- `merging`: metrics of all, as those of one gateway
- `past`: what those had counted that ended
- `worker`: the process that serves
"""
