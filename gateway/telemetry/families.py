"""All metric families that the gateway writes: what each means, and how workers' values are merged.

The exposition, the merging of several processes and docs/metrics.md read this table; a test holds
them to it. In a text, words in 'single quotes' are values of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The type of a family, as the text format names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Merge(StrEnum):
    """How the values of several workers become that of the gateway."""

    SUM = "sum"
    LEAST = "least"
    MOST = "most"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family. `name`: without the suffix of its kind. `text`: its help. `needs`: what
    must be configured; empty: nothing."""

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    merge: Merge = Merge.SUM
    needs: str = ""

    @property
    def exposed(self) -> str:
        """Return the family's name in the text format of Prometheus, with its suffix."""
        return self.name + _SUFFIXES.get(self.kind, "")


_SUFFIXES = {Kind.COUNTER: "_total", Kind.INFO: "_info"}


class Section:
    """Metric families about one subject, in the order of docs/metrics.md. `needs`: see `Family`."""

    def __init__(self, title: str, needs: str = "") -> None:
        self.title = title
        self.needs = needs
        self.families: list[Family] = []
        SECTIONS.append(self)

    def counter(self, name: str, text: str, *labels: str, needs: str = "") -> Family:
        """Declare a counter. `needs`: what must be configured so that the counter is written."""
        return self._add(Family(name, Kind.COUNTER, text, labels, needs=needs or self.needs))

    def gauge(
        self, name: str, text: str, *labels: str, merge: Merge = Merge.SUM, needs: str = ""
    ) -> Family:
        """Declare a gauge, which shows a current value. `merge`: how the values of workers are
        merged. `needs`: what must be configured so that the gauge is written."""
        return self._add(Family(name, Kind.GAUGE, text, labels, merge, needs or self.needs))

    def histogram(self, name: str, text: str, *labels: str) -> Family:
        """Declare a histogram of durations."""
        return self._add(Family(name, Kind.HISTOGRAM, text, labels, needs=self.needs))

    def info(self, name: str, text: str, *labels: str) -> Family:
        """Declare a family whose value is always 1, and whose labels state facts. All workers state
        the same facts."""
        return self._add(Family(name, Kind.INFO, text, labels, Merge.LEAST, self.needs))

    def _add(self, family: Family) -> Family:
        self.families.append(family)
        FAMILIES[family.exposed] = family
        return family


SECTIONS: list[Section] = []
FAMILIES: dict[str, Family] = {}
"""All families, by the name that stands in the text format."""


_connections = Section("Connections")
CONNECTIONS = _connections.gauge(
    "gateway_connections",
    "Client connections: 'opening' (the broker has not responded yet), 'open', and 'draining' in "
    "place of 'open' once the gateway stops.",
    "listener",
    "state",
)
ACCEPTED = _connections.counter(
    "gateway_connections_accepted", "Connections accepted from clients.", "listener"
)
ACCEPT_FAILURES = _connections.counter(
    "gateway_accept_failures",
    "Failed accepts, mostly for want of descriptors. The clients' connections wait in the kernel.",
    "listener",
)
ENDED = _connections.counter(
    "gateway_connections_ended", "Client connections that ended, by reason.", "listener", "reason"
)
DISPLACED = _connections.counter(
    "gateway_openings_displaced",
    "Unauthenticated connections that were ended to admit newer ones (limits.unauthenticated).",
)

HANDSHAKES = _connections.counter(
    "gateway_tls_handshakes",
    "Successful TLS handshakes of clients; those of resumed sessions ('yes') take less CPU. Failed "
    "handshakes end the connection with reason 'tls_failed'.",
    *("listener", "version", "resumed"),
    needs="TLS",
)
CLIENTS = _connections.gauge(
    "gateway_clients",
    "Open connections, by the library that the client states; beyond 100 libraries '__other__'.",
    "listener",
    "library",
)

_latency = Section("Latency")
CONNECT_SECONDS = _latency.histogram(
    "gateway_connect_seconds",
    "Seconds from accepting a connection until it is open: TLS, authentication, dialling the "
    "broker.",
    "listener",
)
SEND_SECONDS = _latency.histogram(
    "gateway_send_seconds",
    "Seconds from the arrival of a producer's frame (a batch is one) to its receipt, waits for "
    "limits included.",
    "listener",
    "tenant",
)
SEND_OWN_SECONDS = _latency.histogram(
    "gateway_send_own_seconds",
    "The gateway's own part of gateway_send_seconds: until the frame is on its way to the broker.",
    "listener",
    "tenant",
)
LOOKUP_SECONDS = _latency.histogram(
    "gateway_lookup_seconds",
    "Seconds from a lookup to its response, redirects included.",
    "listener",
    "tenant",
)
FIRST_MESSAGE_SECONDS = _latency.histogram(
    "gateway_first_message_seconds",
    "Seconds from the request that opens a consumer to its first message; on a quiet topic mostly "
    "the wait for a producer.",
    "listener",
    "tenant",
)

DIAL_SECONDS = _latency.histogram(
    "gateway_dial_seconds",
    "Seconds that successful dials of a broker for a client took, TLS included.",
    "cluster",
)
LOOP_DELAY_SECONDS = _latency.histogram(
    "gateway_event_loop_delay_seconds",
    "Seconds by which a task wakes up late, measured each second: how long other work of the "
    "process delays everything.",
)

_identity = Section("Identity and rights")
AUTHENTICATIONS = _identity.counter(
    "gateway_authentications",
    "Clients' credentials that the gateway 'accepted' or 'refused'. A method that the listener "
    "does not know is 'other'.",
    *("listener", "method", "outcome"),
    needs="identity by the gateway",
)
ACCESS_DENIED = _identity.counter(
    "gateway_access_denied",
    "Denied rights. The rule is empty if no rule allows the right, '(opa)' if the policy agent "
    "denied it.",
    *("listener", "rule", "right", "mode"),
    needs="rules or a policy agent",
)
AGENT_KNOWN = _identity.gauge(
    "gateway_policy_agent_known",
    "Decisions of the policy agent in the cache.",
    needs="a policy agent",
)
AGENT_ANSWERS = _identity.counter(
    "gateway_policy_agent_answers",
    "Questions to the policy agent about a right: 'allowed', 'denied', 'failed' (no usable "
    "response), 'stated' (decided by opa.while_away without asking, in the second after a "
    "failure).",
    "outcome",
    needs="a policy agent",
)
ISSUER_KEYS = _identity.gauge(
    "gateway_issuer_keys",
    "Known keys of an issuer of tokens.",
    "issuer",
    merge=Merge.LEAST,
    needs="key sets",
)
ISSUER_FETCHES = _identity.counter(
    "gateway_issuer_fetches",
    "Fetches of an issuer's keys: 'fetched', 'failed'.",
    "issuer",
    "outcome",
    needs="key sets",
)
TLS_RELOADS = _identity.counter(
    "gateway_tls_reloads",
    "Reloads of changed TLS files: 'loaded', or 'refused' because a file is wrong.",
    "outcome",
    needs="TLS",
)
TLS_EXPIRY = _identity.gauge(
    "gateway_tls_expiry_timestamp_seconds",
    "Time when a TLS file of a listener or cluster (the owner) expires: that of its first "
    "'certificate' or 'authority' to expire, or when the next list of 'revocations' is due.",
    *("owner", "kind", "file"),
    merge=Merge.LEAST,  # the worker that has not loaded a new one yet
    needs="TLS",
)

_brokers = Section("Lookups and brokers")
LOOKUPS = _brokers.counter(
    "gateway_lookups",
    "Topic lookups: 'connect' (the client got a sealed name), 'failed' (by the broker), 'refused' "
    "(by the gateway: the address cannot be advertised, a redirect cannot be followed, or too many"
    " lookups are in flight).",
    "cluster",
    "outcome",
)
REDIRECTS = _brokers.counter(
    "gateway_lookup_redirects", "Redirects that the gateway followed for lookups.", "cluster"
)
ANSWER_ERRORS = _brokers.counter(
    "gateway_answer_errors",
    "Errors in responses to clients, by request and error code: one for each partition, topic or "
    "response with an error, topics that the gateway denied included. Errors in Metadata and "
    "DescribeTopicPartitions do not count.",
    "cluster",
    "request",
    "code",
    needs="Kafka",
)
MIGRATIONS = _brokers.counter(
    "gateway_migrations",
    "Topics that migrated to another cluster: 'told' (clients got the address of its gateway), "
    "'withheld' (no gateway is configured for it).",
    "cluster",
    "outcome",
)
BROKER_HEALTHY = _brokers.gauge(
    "gateway_broker_healthy",
    "1 if the last connection to this address of a broker succeeded, otherwise 0.",
    "cluster",
    "broker",
    merge=Merge.LEAST,  # a broker that one worker does not reach is not healthy
)
BROKER_CONNECTIONS = _brokers.gauge(
    "gateway_broker_connections",
    "Open connections to a broker for clients; beyond 1000 brokers of a listener '__other__'.",
    "listener",
    "broker",
)
BROKER_BYTES = _brokers.counter(
    "gateway_broker_bytes",
    "Bytes of all frames on open connections to a broker for clients: 'to_broker' or 'to_client'.",
    *("listener", "broker", "direction"),
)
BROKER_FAILURES = _brokers.counter(
    "gateway_broker_failures",
    "Failed dials of a broker: 'refused' (connection error), 'timed_out', 'silent' (accepted, no "
    "response), 'unresolved' (name lookup), 'tls' (handshake), 'own' (the gateway has no "
    "descriptor, port or memory left).",
    "cluster",
    "cause",
)

_memory = Section("Memory and the data plane")
BUFFERED = _memory.gauge(
    "gateway_buffered_bytes",
    "Bytes that wait for slow peers, decisions or the rest of a frame (limits.buffered).",
)
COLLECTED = _memory.gauge(
    "gateway_collected_bytes",
    "Part of gateway_buffered_bytes: incomplete frames that must be held whole.",
)
HELD = _memory.gauge(
    "gateway_held_bytes",
    "Part of gateway_buffered_bytes: frames that wait for a rule's limit.",
)
REMEMBERED = _memory.gauge(
    "gateway_remembered_bytes",
    "Bytes that connections, producers, consumers and in-flight lookups take (limits.remembered).",
)
RESETS = _memory.counter(
    "gateway_producer_resets",
    "Producers told to reopen and send again, because their messages waited too long.",
)
TURNS = _memory.counter("gateway_reactor_turns", "Turns of the data plane.")
TURN_SECONDS = _memory.counter(
    "gateway_reactor_turn_seconds",
    "Seconds spent in turns of the data plane; the rate is the share of time in which messages are"
    " moved.",
)

_rules = Section("Rules and limits", "rules")
RULE_LIMITS = _rules.gauge(
    "gateway_rule_limits",
    "How many limits a rule has, for example one for each tenant, by kind (publish.messages) and "
    "mode ('enforce', 'shadow').",
    *("rule", "limit", "mode"),
)
RULE_WAITING = _rules.gauge(
    "gateway_rule_waiting",
    "Producers, consumers or requests that wait for a limit now.",
    *("rule", "limit", "mode"),
)
RULE_WAITS = _rules.counter("gateway_rule_waits", "Waits for a limit.", *("rule", "limit", "mode"))
RULE_WAIT_SECONDS = _rules.counter(
    "gateway_rule_wait_seconds",
    "Seconds of all waits for a limit; for a shadow rule, seconds in which somebody would have "
    "waited.",
    *("rule", "limit", "mode"),
)
RULE_FILL = _rules.gauge(
    "gateway_rule_fill_ratio",
    "How full the rule's fullest limit is: the used share of its burst, or of its maximum number. "
    "At 1 somebody waits or is refused.",
    "rule",
    "limit",
    "mode",
    merge=Merge.MOST,
)
RULE_REFUSED = _rules.counter(
    "gateway_rule_refused",
    "Requests refused because a maximum number was reached or the wait would be too long; for a "
    "shadow rule, requests that would have been refused.",
    *("rule", "limit", "mode"),
)
RULE_SHADOW_HELD = _rules.counter(
    "gateway_rule_shadow_held",
    "Messages, bytes or requests that a shadow rule would have delayed.",
    "rule",
    "limit",
)
RULES_RELOADS = _rules.counter(
    "gateway_rules_reloads",
    "Reloads of rules: 'loaded', or 'refused' because a file is wrong.",
    "outcome",
)
RULES_GENERATION = _rules.gauge(
    "gateway_rules_generation",
    "1 for the rules of the start; one more whenever a reload changes rules or a rule expires.",
    merge=Merge.LEAST,  # rules are in force everywhere once the last worker has them
)
RULES_EXPIRED = _rules.gauge(
    "gateway_rules_expired",
    "Rules without effect because they have expired.",
    merge=Merge.MOST,  # each has the same rules
)
RULES_LOADED_AT = _rules.gauge(
    "gateway_rules_last_reload_timestamp_seconds",
    "Time when the files of rules were last read without a mistake, the start included.",
    merge=Merge.LEAST,
)

_store = Section("Shared limits", "rules, and a store or workers")
STORE_UP = _store.gauge(
    "gateway_store_up",
    "1 if the store of shared limits responds, 0 if it is lost.",
    merge=Merge.LEAST,
)
STORE_PROCESSES = _store.gauge(
    "gateway_store_processes",
    "Processes that share limits, by the last response of the store.",
    merge=Merge.LEAST,  # each counts all; the last to learn of a change decides
)
STORE_CALLS = _store.counter("gateway_store_calls", "Calls to the store.")
STORE_FAILURES = _store.counter(
    "gateway_store_failures",
    "Calls to the store that got no usable response in time.",
)
STORE_QUESTIONS = _store.counter(
    "gateway_store_questions",
    "Reservations requested from the store; one call has several.",
)
STORE_REFUSALS = _store.counter(
    "gateway_store_refusals",
    "Reservations that failed because something else wrote to the limit's keys (limits_lost in the "
    "log).",
)


@dataclass(frozen=True, slots=True)
class Traffic:
    """The metric families about the traffic of a topic, a tenant or a principal. All but the last
    two are by direction; `waits` and `wait_seconds` by rule too."""

    messages: Family
    bytes: Family
    frames: Family
    receipts: Family
    damaged: Family
    redelivered: Family
    refused: Family
    held: Family
    waits: Family
    wait_seconds: Family
    producers: Family
    consumers: Family


def _traffic(section: Section, of: str, *labels: str) -> Traffic:
    """Declare the families of traffic. `of`: whose, in their names."""
    name = f"gateway_{of}_"
    directed = (*labels, "direction")
    return Traffic(
        messages=section.counter(
            f"{name}messages",
            "Messages that were forwarded 'to_broker' (produced) or 'to_client' (consumed); each "
            "message of a batch counts.",
            *directed,
        ),
        bytes=section.counter(f"{name}bytes", "Bytes of forwarded frames.", *directed),
        frames=section.counter(
            f"{name}frames", "Forwarded frames; a batch is one frame.", *directed
        ),
        receipts=section.counter(
            f"{name}receipts",
            "Producers' frames for which the broker sent a receipt or an error; 0 for 'to_client'.",
            *directed,
        ),
        damaged=section.counter(
            f"{name}checksum_failures",
            "Frames with a wrong checksum.",
            *directed,
            needs="checksums: verify",
        ),
        redelivered=section.counter(
            f"{name}redelivered_frames",
            "Frames that the broker marks as delivered before; 'to_client' only.",
            *directed,
        ),
        refused=section.counter(
            f"{name}refused_frames",
            "Producers' frames that were refused because too many waited for a limit (on_overflow:"
            " reject).",
            *directed,
        ),
        held=section.gauge(
            f"{name}held_bytes", "Bytes of frames that wait for a rule's limit.", *directed
        ),
        waits=section.counter(
            f"{name}waits",
            "Waits of producers or consumers for a rule's limit.",
            *directed,
            "rule",
        ),
        wait_seconds=section.counter(
            f"{name}wait_seconds",
            "Seconds that producers or consumers waited for a rule's limit.",
            *directed,
            "rule",
        ),
        producers=section.gauge(f"{name}producers", "Open producers.", *labels),
        consumers=section.gauge(f"{name}consumers", "Open consumers.", *labels),
    )


_tenants = Section("Tenants")
_TENANT = ("cluster", "tenant")
TENANT = _traffic(_tenants, "tenant", *_TENANT)
TENANT_WANTED = _tenants.gauge(
    "gateway_tenant_wanted_messages",
    "Messages that open consumers have requested in advance and not received yet.",
    *_TENANT,
)
TENANT_DENIED = _tenants.counter(
    "gateway_tenant_access_denied",
    "Denied rights to topics of the tenant; tenants without traffic count as '__other__'.",
    *("listener", "tenant", "right", "mode"),
    needs="rules or a policy agent",
)

_principals = Section(
    "Principals",
    needs="authenticated clients and log.principals: plain; beyond 1000 principals `__other__`",
)
PRINCIPAL = _traffic(_principals, "principal", "cluster", "principal")

_topics = Section("Topics, at /metrics/topics")
_TOPIC = ("cluster", "tenant", "namespace", "topic")
TOPIC = _traffic(_topics, "topic", *_TOPIC)
TOPIC_DENIED = _topics.counter(
    "gateway_topic_access_denied",
    "Denied rights to the topic, if the topic has figures of its own.",
    *_TOPIC,
    "right",
    needs="rules or a policy agent",
)
TOPIC_SUBSCRIPTIONS = _topics.gauge(
    "gateway_topic_subscriptions",
    "Subscriptions with open consumers; each worker counts its own subscriptions.",
    *_TOPIC,
)
TOPIC_WANTED = _topics.gauge(
    "gateway_topic_wanted_messages",
    "Messages that open consumers have requested in advance and not received yet. 0: consumers do "
    "not keep up; above 0 while nothing comes: the topic is empty.",
    *_TOPIC,
)

_progress = Section("Groups, at /metrics/topics", needs="Kafka")
PARTITION_END = _progress.gauge(
    "gateway_partition_end_offset",
    "Offset after a partition's last message, as brokers last told clients; for at most 10,000 "
    "topics.",
    *("cluster", "topic", "partition"),
    merge=Merge.MOST,  # each process has clients of some partitions
)
GROUP_OFFSET = _progress.gauge(
    "gateway_group_offset",
    "Offset up to which a group has committed a partition, for at most 10,000 partitions; the lag "
    "is gateway_partition_end_offset minus this offset.",
    *("cluster", "group", "topic", "partition"),
    merge=Merge.MOST,
)

_usage = Section("Usage records", needs="usage records")
RECORDS = _usage.counter("gateway_usage_records", "Usage records written, by kind.", "stream")
RECORDS_DROPPED = _usage.counter(
    "gateway_usage_records_dropped",
    "Usage records lost because the disk was full or too slow. Readers of the records see the gap.",
    "stream",
)
RECORD_BYTES = _usage.counter(
    "gateway_usage_written_bytes", "Compressed bytes of usage records written.", "stream"
)
RECORD_FILES = _usage.counter(
    "gateway_usage_files_closed", "Files of usage records closed.", "stream"
)
RECORD_FILES_REMOVED = _usage.counter(
    "gateway_usage_files_removed",
    "Oldest files of usage records removed to make room (usage.disk).",
    "stream",
)
_SENT = "usage.topic"
RECORDS_SHIPPED = _usage.counter(
    "gateway_usage_shipped_records",
    "Usage records that the topic confirmed. After a crash some records are sent, and counted, "
    "twice.",
    "stream",
    needs=_SENT,
)
RECORDS_UNSENT = _usage.counter(
    "gateway_usage_unsent_records_removed",
    "Usage records in files that were removed before the topic (usage.topic) had the records.",
    "stream",
)
FILES_UNSHIPPED = _usage.gauge(
    "gateway_usage_unshipped_files",
    "Closed files whose records the topic does not have yet.",
    "stream",
    needs=_SENT,
)
SHIPPING_FAILURES = _usage.counter(
    "gateway_usage_shipping_failures",
    "Failed attempts to reach the topic of usage records; each is repeated.",
    needs=_SENT,
)
SHIPPER_RESTARTS = _usage.counter(
    "gateway_usage_shipper_restarts",
    "Restarts of the process that sends usage records.",
    needs=_SENT,
)

_export = Section("OpenTelemetry", needs="otlp")
EXPORT_MADE = _export.counter(
    "gateway_otlp_records",
    "Spans and log lines made for the collector. Those that are neither sent nor failed wait, or "
    "were dropped for newer ones.",
    "records",
)
EXPORT_SENT = _export.counter(
    "gateway_otlp_records_sent", "Spans and log lines that the collector accepted.", "records"
)
EXPORT_FAILED = _export.counter(
    "gateway_otlp_records_failed",
    "Spans and log lines that the collector did not accept.",
    "records",
)

_process = Section("The process")
BUILD = _process.info(
    "gateway_build",
    "Versions of the gateway and of Python, and whether the hot loops are compiled or pure.",
    "version",
    "python",
    "implementation",
)
LOG_DROPPED = _process.counter(
    "gateway_log_lines_dropped",
    "Log lines dropped because their reader was too slow or gone.",
)
AUDIT_DROPPED = _process.counter(
    "gateway_audit_lines_dropped",
    "Audit lines dropped because the disk was full, or their reader too slow or gone.",
    needs="an audit",
)
WORKERS = _process.gauge("gateway_workers", "Processes that serve clients.", needs="workers")
RESTARTS = _process.counter(
    "gateway_worker_restarts", "Workers started in place of one that ended.", needs="workers"
)
# These are collected by prometheus_client.
_process.counter("process_cpu_seconds", "Total user and system CPU time spent in seconds.")
_process.gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
_process.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")
_process.gauge(
    "process_open_fds",
    "Number of open file descriptors.",
    merge=Merge.MOST,  # each process has its own bound: the one nearest to it counts
)
_process.gauge("process_max_fds", "Maximum number of open file descriptors.", merge=Merge.LEAST)
_process.gauge(
    "process_start_time_seconds",
    "Start time of the process since unix epoch in seconds.",
    merge=Merge.LEAST,  # the gateway started when its parent did
)
