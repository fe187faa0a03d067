"""Limits that several processes share: the workers of one gateway, or its replicas.

- `store`: the interface of a store that shares limits
- `valkey`: the store that replicas share in Valkey or Redis; `scripts` runs at the server, `link`
  keeps the one connection, `failures` describes its errors
- `stores`: makes the store that a configuration names
- `supplier`: calls the store for all limits of a process
- `parent`: the store of workers, which is their parent process
"""
