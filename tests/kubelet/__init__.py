"""As much of Kubernetes as a Deployment needs, on one machine: see `pods`."""
