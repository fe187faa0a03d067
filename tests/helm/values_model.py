"""The values of the Helm chart, of which its schema is made; texts and defaults are in values.yaml.

Values of Kubernetes' own types are not looked into: the API server checks them. All are required,
as Helm fills in defaults before it checks.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.json_schema import WithJsonSchema

NETWORK = r"^[0-9a-fA-F.:]+(/[0-9]{1,3})?$"
"""10.0.0.0/8, fd00::/8, or one address."""

Object = dict[str, Any]
Objects = list[Object]
Texts = dict[str, str]
Count = Annotated[int, Field(ge=1)]
NAME = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
Name = Annotated[str, Field(pattern=f"^{NAME}$")]
NameOrNone = Annotated[str, Field(pattern=f"^({NAME})?$")]
Key = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]
Network = Annotated[str, Field(pattern=NETWORK)]
Duration = Annotated[str, Field(pattern=r"^([0-9]+(h|m|s|ms))+$")]
Cores = Annotated[
    str,
    WithJsonSchema({"type": ["string", "number"], "pattern": r"^([0-9]+(\.[0-9]+)?|[0-9]+m)?$"}),
]
Port = Annotated[int, Field(ge=1, le=65535)]


class Part(BaseModel):
    """Any part of the values: without unknown keys, which are written as Kubernetes does."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class Item(Part):
    """A key of a Secret, and its file."""

    key: Key
    path: Key


class Secret(Part):
    """A Secret that the configuration names."""

    secret_name: Name
    items: Annotated[list[Item], Field(min_length=1)] | None = None


class Issuer(Part):
    """Who signs certificates."""

    name: NameOrNone
    kind: Literal["Issuer", "ClusterIssuer"]
    group: Name


class CertManager(Part):
    """A certificate that cert-manager makes."""

    enabled: bool
    issuer: Issuer
    dns_names: list[str]
    duration: Duration
    renew_before: Duration


class Tls(Part):
    """The certificate of listeners."""

    secret_name: NameOrNone
    cert_manager: CertManager


class SealKeys(Part):
    """The keys that seal brokers' names."""

    existing_secret: NameOrNone
    names: Annotated[list[Key], Field(min_length=1, json_schema_extra={"uniqueItems": True})]


class Image(Part):
    """The gateway's image."""

    repository: Annotated[str, Field(min_length=1)]
    tag: Annotated[str, Field(pattern=r"^[\w.-]{0,128}$")]
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]
    pull_policy: Literal["IfNotPresent", "Always", "Never"]


class Probe(Part):
    """When and how often Kubernetes asks."""

    initial_delay_seconds: Annotated[int, Field(ge=0)] | None = None
    period_seconds: Count
    timeout_seconds: Count
    failure_threshold: Count


class Probes(Part):
    """What Kubernetes asks the gateway."""

    startup: Probe
    liveness: Probe
    readiness: Probe


class PodDisruptionBudget(Part):
    """How many pods may be away."""

    enabled: bool
    max_unavailable: Count


class Connections(Part):
    """Scaling by connections."""

    average: Annotated[int, Field(ge=0)]
    metric: Annotated[str, Field(min_length=1)]


class ScaleDown(Part):
    """How slowly pods become fewer."""

    window: Annotated[int, Field(ge=0, le=3600)]
    period: Annotated[int, Field(ge=1, le=1800)]


class Autoscaling(Part):
    """How the number of pods follows the load."""

    enabled: bool
    min_replicas: Count
    max_replicas: Count
    cpu: Cores
    connections: Connections
    scale_down: ScaleDown


class Service(Part):
    """How clients reach the gateway."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"]
    ports: dict[Annotated[str, Field(pattern=r"^[0-9]{1,5}$")], Port]
    annotations: Texts
    external_traffic_policy: Literal["Local", "Cluster"]
    load_balancer_source_ranges: list[Network]
    load_balancer_class: str
    proxy_protocol_from: list[Network]


class Brokers(Part):
    """Where a NetworkPolicy lets pods find brokers."""

    to: Objects
    ports: Annotated[list[Port], Field(min_length=1)]


class NetworkPolicy(Part):
    """Which connections pods accept and open."""

    enabled: bool
    clients: Objects
    monitoring: Objects
    dns: Objects
    brokers: Brokers
    egress: Objects


class Watched(Part):
    """An object for Prometheus or Grafana."""

    enabled: bool
    labels: Texts


class Monitoring(Part):
    """What watches the gateway."""

    interval: Duration
    topics: bool
    service_monitor: Watched
    pod_monitor: Watched
    prometheus_rule: Watched
    dashboard: Watched


class ServiceAccount(Part):
    """As whom pods run in the cluster."""

    create: bool
    name: NameOrNone
    annotations: Texts


class Values(Part):
    """All values. `config` and `rules` have schemas of their own, from the gateway's models."""

    mode: Literal["edge", "shaper", "sidecar"]
    config: Object
    rules: Object
    secrets: dict[str, Secret]
    tls: Tls
    seal_keys: SealKeys
    env: Objects
    image: Image
    image_pull_secrets: Objects
    name_override: NameOrNone
    fullname_override: NameOrNone
    replicas: Count
    min_ready_seconds: Annotated[int, Field(ge=0)]
    pre_stop_sleep_seconds: Annotated[int, Field(ge=0)]
    termination_grace_period_seconds: Count
    resources: Object
    probes: Probes
    pod_disruption_budget: PodDisruptionBudget
    topology_spread: Objects
    autoscaling: Autoscaling
    service: Service
    network_policy: NetworkPolicy
    monitoring: Monitoring
    service_account: ServiceAccount
    data: Object
    pod_annotations: Texts
    pod_labels: Texts
    node_selector: Texts
    tolerations: Objects
    affinity: Object
    priority_class_name: NameOrNone
    # Helm gives it to each chart that is a dependency.
    globals: Annotated[Object | None, Field(alias="global")] = None
