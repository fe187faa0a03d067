"""Limits that are shared by processes: the workers of one gateway, and its replicas.

- `store`: where they are shared, as the others see it
- `valkey`: a Valkey or Redis that replicas share; `scripts` is what happens there, `link` the one
  connection, `troubles` what goes wrong with it
- `stores`: the one that a configuration names
- `supplier`: asks it for all limits of a process
- `parent`: workers share them through their parent
"""
