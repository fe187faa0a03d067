"""Limits that are shared by processes: the workers of one gateway, and its replicas.

- `store`: where they are shared, as the others see it
- `parent`: workers share them through their parent
"""
