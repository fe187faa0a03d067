"""Limits that several processes share: the workers of one gateway, or its replicas.

- `store`: the interface of a store that shares limits
- `valkey`: the store that replicas share, in Valkey or Redis. `scripts` has the Lua scripts that
  its server runs, `link` keeps the one connection to it, `failures` describes its errors
- `stores`: makes the store that a configuration names
- `supplier`: calls the store for all limits of a process
- `parent`: the store that workers share, which is their parent process
"""
