"""A Kubernetes on one machine, all of whose parts are real but the kubelet and the network.

etcd, the API server, the controllers, the scheduler and kubectl are Kubernetes' own
(`programs/main.go`, built with Go, some four minutes the first time). So Deployments roll, budgets
are kept, policies are judged and admitted as in any cluster, and Helm and kubectl talk to it.

Pods have to run as processes of this machine, without containers:

- `kubelet` takes the pods that the scheduler gave its nodes, and reports what becomes of them.
- `pods` runs one: init containers and sidecars, restarts, the order in which a pod ends.
- `containers` runs one process: its probes, its preStop hook, SIGTERM, and SIGKILL at the end of
  its grace period.
- `volumes` writes files as kubelets do, and renews those of changed ConfigMaps and Secrets.
- `proxy` is HAProxy for each Service, with the endpoints that the controllers found.

A pod has a loopback address of its own. What names an address or a path of its network or its
file system (`bind: ":6650"`, /etc/broker-gateway) is changed to this machine's when it starts;
nothing else is. Resources, users and NetworkPolicies bind nobody here.
"""
