"""Made by proto/kafka.py of the messages of Kafka 4.3.1 and 3.9.1: do not edit.

`APIS`, by key: the name, where it is offered, and the schemas of request and response. A schema:
the first and the last version, the first flexible one, and the fields, each with its name, type,
first and last version, first version in which it may be null, first version in which it is tagged,
its tag, what it names (topicName, groupId), and the fields of its struct. 32767 is a version that
never comes.
"""

RELEASE = "4.3.1"

# fmt: off
APIS = {
    0: ("Produce", ("broker",),
        (0, 13, 9, (
            ("TransactionalId", "string", 3, 13, 3, 32767, -1, "transactionalId", ()),
            ("Acks", "int16", 0, 13, 32767, 32767, -1, "", ()),
            ("TimeoutMs", "int32", 0, 13, 32767, 32767, -1, "", ()),
            ("TopicData", "[]{}", 0, 13, 32767, 32767, -1, "", (
                ("Name", "string", 0, 12, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 13, 13, 32767, 32767, -1, "", ()),
                ("PartitionData", "[]{}", 0, 13, 32767, 32767, -1, "", (
                    ("Index", "int32", 0, 13, 32767, 32767, -1, "", ()),
                    ("Records", "records", 0, 13, 0, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 13, 9, (
            ("Responses", "[]{}", 0, 13, 32767, 32767, -1, "", (
                ("Name", "string", 0, 12, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 13, 13, 32767, 32767, -1, "", ()),
                ("PartitionResponses", "[]{}", 0, 13, 32767, 32767, -1, "", (
                    ("Index", "int32", 0, 13, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 13, 32767, 32767, -1, "", ()),
                    ("BaseOffset", "int64", 0, 13, 32767, 32767, -1, "", ()),
                    ("LogAppendTimeMs", "int64", 2, 13, 32767, 32767, -1, "", ()),
                    ("LogStartOffset", "int64", 5, 13, 32767, 32767, -1, "", ()),
                    ("RecordErrors", "[]{}", 8, 13, 32767, 32767, -1, "", (
                        ("BatchIndex", "int32", 8, 13, 32767, 32767, -1, "", ()),
                        ("BatchIndexErrorMessage", "string", 8, 13, 8, 32767, -1, "", ()),
                    )),
                    ("ErrorMessage", "string", 8, 13, 8, 32767, -1, "", ()),
                    ("CurrentLeader", "{}", 10, 13, 32767, 10, 0, "", (
                        ("LeaderId", "int32", 10, 13, 32767, 32767, -1, "brokerId", ()),
                        ("LeaderEpoch", "int32", 10, 13, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("ThrottleTimeMs", "int32", 1, 13, 32767, 32767, -1, "", ()),
            ("NodeEndpoints", "[]{}", 10, 13, 32767, 10, 0, "", (
                ("NodeId", "int32", 10, 13, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 10, 13, 32767, 32767, -1, "", ()),
                ("Port", "int32", 10, 13, 32767, 32767, -1, "", ()),
                ("Rack", "string", 10, 13, 10, 32767, -1, "", ()),
            )),
        )),
    ),
    1: ("Fetch", ("broker", "controller",),
        (0, 18, 12, (
            ("ClusterId", "string", 12, 18, 12, 12, 0, "", ()),
            ("ReplicaId", "int32", 0, 14, 32767, 32767, -1, "brokerId", ()),
            ("ReplicaState", "{}", 15, 18, 32767, 15, 1, "", (
                ("ReplicaId", "int32", 15, 18, 32767, 32767, -1, "brokerId", ()),
                ("ReplicaEpoch", "int64", 15, 18, 32767, 32767, -1, "", ()),
            )),
            ("MaxWaitMs", "int32", 0, 18, 32767, 32767, -1, "", ()),
            ("MinBytes", "int32", 0, 18, 32767, 32767, -1, "", ()),
            ("MaxBytes", "int32", 3, 18, 32767, 32767, -1, "", ()),
            ("IsolationLevel", "int8", 4, 18, 32767, 32767, -1, "", ()),
            ("SessionId", "int32", 7, 18, 32767, 32767, -1, "", ()),
            ("SessionEpoch", "int32", 7, 18, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 18, 32767, 32767, -1, "", (
                ("Topic", "string", 0, 12, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 13, 18, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 18, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 18, 32767, 32767, -1, "", ()),
                    ("CurrentLeaderEpoch", "int32", 9, 18, 32767, 32767, -1, "", ()),
                    ("FetchOffset", "int64", 0, 18, 32767, 32767, -1, "", ()),
                    ("LastFetchedEpoch", "int32", 12, 18, 32767, 32767, -1, "", ()),
                    ("LogStartOffset", "int64", 5, 18, 32767, 32767, -1, "", ()),
                    ("PartitionMaxBytes", "int32", 0, 18, 32767, 32767, -1, "", ()),
                    ("ReplicaDirectoryId", "uuid", 17, 18, 32767, 17, 0, "", ()),
                    ("HighWatermark", "int64", 18, 18, 32767, 18, 1, "", ()),
                )),
            )),
            ("ForgottenTopicsData", "[]{}", 7, 18, 32767, 32767, -1, "", (
                ("Topic", "string", 7, 12, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 13, 18, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 7, 18, 32767, 32767, -1, "", ()),
            )),
            ("RackId", "string", 11, 18, 32767, 32767, -1, "", ()),
        )),
        (0, 18, 12, (
            ("ThrottleTimeMs", "int32", 1, 18, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 7, 18, 32767, 32767, -1, "", ()),
            ("SessionId", "int32", 7, 18, 32767, 32767, -1, "", ()),
            ("Responses", "[]{}", 0, 18, 32767, 32767, -1, "", (
                ("Topic", "string", 0, 12, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 13, 18, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 18, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 18, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 18, 32767, 32767, -1, "", ()),
                    ("HighWatermark", "int64", 0, 18, 32767, 32767, -1, "", ()),
                    ("LastStableOffset", "int64", 4, 18, 32767, 32767, -1, "", ()),
                    ("LogStartOffset", "int64", 5, 18, 32767, 32767, -1, "", ()),
                    ("DivergingEpoch", "{}", 12, 18, 32767, 12, 0, "", (
                        ("Epoch", "int32", 12, 18, 32767, 32767, -1, "", ()),
                        ("EndOffset", "int64", 12, 18, 32767, 32767, -1, "", ()),
                    )),
                    ("CurrentLeader", "{}", 12, 18, 32767, 12, 1, "", (
                        ("LeaderId", "int32", 12, 18, 32767, 32767, -1, "brokerId", ()),
                        ("LeaderEpoch", "int32", 12, 18, 32767, 32767, -1, "", ()),
                    )),
                    ("SnapshotId", "{}", 12, 18, 32767, 12, 2, "", (
                        ("EndOffset", "int64", 12, 18, 32767, 32767, -1, "", ()),
                        ("Epoch", "int32", 12, 18, 32767, 32767, -1, "", ()),
                    )),
                    ("AbortedTransactions", "[]{}", 4, 18, 4, 32767, -1, "", (
                        ("ProducerId", "int64", 4, 18, 32767, 32767, -1, "producerId", ()),
                        ("FirstOffset", "int64", 4, 18, 32767, 32767, -1, "", ()),
                    )),
                    ("PreferredReadReplica", "int32", 11, 18, 32767, 32767, -1, "brokerId", ()),
                    ("Records", "records", 0, 18, 0, 32767, -1, "", ()),
                )),
            )),
            ("NodeEndpoints", "[]{}", 16, 18, 32767, 16, 0, "", (
                ("NodeId", "int32", 16, 18, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 16, 18, 32767, 32767, -1, "", ()),
                ("Port", "int32", 16, 18, 32767, 32767, -1, "", ()),
                ("Rack", "string", 16, 18, 16, 32767, -1, "", ()),
            )),
        )),
    ),
    2: ("ListOffsets", ("broker",),
        (0, 11, 6, (
            ("ReplicaId", "int32", 0, 11, 32767, 32767, -1, "brokerId", ()),
            ("IsolationLevel", "int8", 2, 11, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 11, 32767, 32767, -1, "", (
                ("Name", "string", 0, 11, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 11, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 11, 32767, 32767, -1, "", ()),
                    ("CurrentLeaderEpoch", "int32", 4, 11, 32767, 32767, -1, "", ()),
                    ("Timestamp", "int64", 0, 11, 32767, 32767, -1, "", ()),
                    ("MaxNumOffsets", "int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
            ("TimeoutMs", "int32", 10, 11, 32767, 32767, -1, "", ()),
        )),
        (0, 11, 6, (
            ("ThrottleTimeMs", "int32", 2, 11, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 11, 32767, 32767, -1, "", (
                ("Name", "string", 0, 11, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 11, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 11, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 11, 32767, 32767, -1, "", ()),
                    ("OldStyleOffsets", "[]int64", 0, 0, 32767, 32767, -1, "", ()),
                    ("Timestamp", "int64", 1, 11, 32767, 32767, -1, "", ()),
                    ("Offset", "int64", 1, 11, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 4, 11, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    3: ("Metadata", ("broker",),
        (0, 13, 9, (
            ("Topics", "[]{}", 0, 13, 1, 32767, -1, "", (
                ("TopicId", "uuid", 10, 13, 32767, 32767, -1, "", ()),
                ("Name", "string", 0, 13, 10, 32767, -1, "topicName", ()),
            )),
            ("AllowAutoTopicCreation", "bool", 4, 13, 32767, 32767, -1, "", ()),
            ("IncludeClusterAuthorizedOperations", "bool", 8, 10, 32767, 32767, -1, "", ()),
            ("IncludeTopicAuthorizedOperations", "bool", 8, 13, 32767, 32767, -1, "", ()),
        )),
        (0, 13, 9, (
            ("ThrottleTimeMs", "int32", 3, 13, 32767, 32767, -1, "", ()),
            ("Brokers", "[]{}", 0, 13, 32767, 32767, -1, "", (
                ("NodeId", "int32", 0, 13, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 0, 13, 32767, 32767, -1, "", ()),
                ("Port", "int32", 0, 13, 32767, 32767, -1, "", ()),
                ("Rack", "string", 1, 13, 1, 32767, -1, "", ()),
            )),
            ("ClusterId", "string", 2, 13, 2, 32767, -1, "", ()),
            ("ControllerId", "int32", 1, 13, 32767, 32767, -1, "brokerId", ()),
            ("Topics", "[]{}", 0, 13, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 13, 32767, 32767, -1, "", ()),
                ("Name", "string", 0, 13, 12, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 10, 13, 32767, 32767, -1, "", ()),
                ("IsInternal", "bool", 1, 13, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 13, 32767, 32767, -1, "", (
                    ("ErrorCode", "int16", 0, 13, 32767, 32767, -1, "", ()),
                    ("PartitionIndex", "int32", 0, 13, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 13, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 7, 13, 32767, 32767, -1, "", ()),
                    ("ReplicaNodes", "[]int32", 0, 13, 32767, 32767, -1, "brokerId", ()),
                    ("IsrNodes", "[]int32", 0, 13, 32767, 32767, -1, "brokerId", ()),
                    ("OfflineReplicas", "[]int32", 5, 13, 32767, 32767, -1, "brokerId", ()),
                )),
                ("TopicAuthorizedOperations", "int32", 8, 13, 32767, 32767, -1, "", ()),
            )),
            ("ClusterAuthorizedOperations", "int32", 8, 10, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 13, 13, 32767, 32767, -1, "", ()),
        )),
    ),
    8: ("OffsetCommit", ("broker",),
        (0, 10, 8, (
            ("GroupId", "string", 0, 10, 32767, 32767, -1, "groupId", ()),
            ("GenerationIdOrMemberEpoch", "int32", 1, 10, 32767, 32767, -1, "", ()),
            ("MemberId", "string", 1, 10, 32767, 32767, -1, "", ()),
            ("GroupInstanceId", "string", 7, 10, 7, 32767, -1, "", ()),
            ("RetentionTimeMs", "int64", 2, 4, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 10, 32767, 32767, -1, "", (
                ("Name", "string", 0, 9, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 10, 10, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 10, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 10, 32767, 32767, -1, "", ()),
                    ("CommittedOffset", "int64", 0, 10, 32767, 32767, -1, "", ()),
                    ("CommittedLeaderEpoch", "int32", 6, 10, 32767, 32767, -1, "", ()),
                    ("CommitTimestamp", "int64", 1, 1, 32767, 32767, -1, "", ()),
                    ("CommittedMetadata", "string", 0, 10, 0, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 10, 8, (
            ("ThrottleTimeMs", "int32", 3, 10, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 10, 32767, 32767, -1, "", (
                ("Name", "string", 0, 9, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 10, 10, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 10, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 10, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 10, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    9: ("OffsetFetch", ("broker",),
        (0, 10, 6, (
            ("GroupId", "string", 0, 7, 32767, 32767, -1, "groupId", ()),
            ("Topics", "[]{}", 0, 7, 2, 32767, -1, "", (
                ("Name", "string", 0, 7, 32767, 32767, -1, "topicName", ()),
                ("PartitionIndexes", "[]int32", 0, 7, 32767, 32767, -1, "", ()),
            )),
            ("Groups", "[]{}", 8, 10, 32767, 32767, -1, "", (
                ("GroupId", "string", 8, 10, 32767, 32767, -1, "groupId", ()),
                ("MemberId", "string", 9, 10, 9, 32767, -1, "", ()),
                ("MemberEpoch", "int32", 9, 10, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 8, 10, 8, 32767, -1, "", (
                    ("Name", "string", 8, 9, 32767, 32767, -1, "topicName", ()),
                    ("TopicId", "uuid", 10, 10, 32767, 32767, -1, "", ()),
                    ("PartitionIndexes", "[]int32", 8, 10, 32767, 32767, -1, "", ()),
                )),
            )),
            ("RequireStable", "bool", 7, 10, 32767, 32767, -1, "", ()),
        )),
        (0, 10, 6, (
            ("ThrottleTimeMs", "int32", 3, 10, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 7, 32767, 32767, -1, "", (
                ("Name", "string", 0, 7, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 7, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 7, 32767, 32767, -1, "", ()),
                    ("CommittedOffset", "int64", 0, 7, 32767, 32767, -1, "", ()),
                    ("CommittedLeaderEpoch", "int32", 5, 7, 32767, 32767, -1, "", ()),
                    ("Metadata", "string", 0, 7, 0, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 7, 32767, 32767, -1, "", ()),
                )),
            )),
            ("ErrorCode", "int16", 2, 7, 32767, 32767, -1, "", ()),
            ("Groups", "[]{}", 8, 10, 32767, 32767, -1, "", (
                ("GroupId", "string", 8, 10, 32767, 32767, -1, "groupId", ()),
                ("Topics", "[]{}", 8, 10, 32767, 32767, -1, "", (
                    ("Name", "string", 8, 9, 32767, 32767, -1, "topicName", ()),
                    ("TopicId", "uuid", 10, 10, 32767, 32767, -1, "", ()),
                    ("Partitions", "[]{}", 8, 10, 32767, 32767, -1, "", (
                        ("PartitionIndex", "int32", 8, 10, 32767, 32767, -1, "", ()),
                        ("CommittedOffset", "int64", 8, 10, 32767, 32767, -1, "", ()),
                        ("CommittedLeaderEpoch", "int32", 8, 10, 32767, 32767, -1, "", ()),
                        ("Metadata", "string", 8, 10, 8, 32767, -1, "", ()),
                        ("ErrorCode", "int16", 8, 10, 32767, 32767, -1, "", ()),
                    )),
                )),
                ("ErrorCode", "int16", 8, 10, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    10: ("FindCoordinator", ("broker",),
        (0, 6, 3, (
            ("Key", "string", 0, 3, 32767, 32767, -1, "", ()),
            ("KeyType", "int8", 1, 6, 32767, 32767, -1, "", ()),
            ("CoordinatorKeys", "[]string", 4, 6, 32767, 32767, -1, "", ()),
        )),
        (0, 6, 3, (
            ("ThrottleTimeMs", "int32", 1, 6, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 1, 3, 1, 32767, -1, "", ()),
            ("NodeId", "int32", 0, 3, 32767, 32767, -1, "brokerId", ()),
            ("Host", "string", 0, 3, 32767, 32767, -1, "", ()),
            ("Port", "int32", 0, 3, 32767, 32767, -1, "", ()),
            ("Coordinators", "[]{}", 4, 6, 32767, 32767, -1, "", (
                ("Key", "string", 4, 6, 32767, 32767, -1, "", ()),
                ("NodeId", "int32", 4, 6, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 4, 6, 32767, 32767, -1, "", ()),
                ("Port", "int32", 4, 6, 32767, 32767, -1, "", ()),
                ("ErrorCode", "int16", 4, 6, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 4, 6, 4, 32767, -1, "", ()),
            )),
        )),
    ),
    11: ("JoinGroup", ("broker",),
        (0, 9, 6, (
            ("GroupId", "string", 0, 9, 32767, 32767, -1, "groupId", ()),
            ("SessionTimeoutMs", "int32", 0, 9, 32767, 32767, -1, "", ()),
            ("RebalanceTimeoutMs", "int32", 1, 9, 32767, 32767, -1, "", ()),
            ("MemberId", "string", 0, 9, 32767, 32767, -1, "", ()),
            ("GroupInstanceId", "string", 5, 9, 5, 32767, -1, "", ()),
            ("ProtocolType", "string", 0, 9, 32767, 32767, -1, "", ()),
            ("Protocols", "[]{}", 0, 9, 32767, 32767, -1, "", (
                ("Name", "string", 0, 9, 32767, 32767, -1, "", ()),
                ("Metadata", "bytes", 0, 9, 32767, 32767, -1, "", ()),
            )),
            ("Reason", "string", 8, 9, 8, 32767, -1, "", ()),
        )),
        (0, 9, 6, (
            ("ThrottleTimeMs", "int32", 2, 9, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 9, 32767, 32767, -1, "", ()),
            ("GenerationId", "int32", 0, 9, 32767, 32767, -1, "", ()),
            ("ProtocolType", "string", 7, 9, 7, 32767, -1, "", ()),
            ("ProtocolName", "string", 0, 9, 7, 32767, -1, "", ()),
            ("Leader", "string", 0, 9, 32767, 32767, -1, "", ()),
            ("SkipAssignment", "bool", 9, 9, 32767, 32767, -1, "", ()),
            ("MemberId", "string", 0, 9, 32767, 32767, -1, "", ()),
            ("Members", "[]{}", 0, 9, 32767, 32767, -1, "", (
                ("MemberId", "string", 0, 9, 32767, 32767, -1, "", ()),
                ("GroupInstanceId", "string", 5, 9, 5, 32767, -1, "", ()),
                ("Metadata", "bytes", 0, 9, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    12: ("Heartbeat", ("broker",),
        (0, 4, 4, (
            ("GroupId", "string", 0, 4, 32767, 32767, -1, "groupId", ()),
            ("GenerationId", "int32", 0, 4, 32767, 32767, -1, "", ()),
            ("MemberId", "string", 0, 4, 32767, 32767, -1, "", ()),
            ("GroupInstanceId", "string", 3, 4, 3, 32767, -1, "", ()),
        )),
        (0, 4, 4, (
            ("ThrottleTimeMs", "int32", 1, 4, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 4, 32767, 32767, -1, "", ()),
        )),
    ),
    13: ("LeaveGroup", ("broker",),
        (0, 5, 4, (
            ("GroupId", "string", 0, 5, 32767, 32767, -1, "groupId", ()),
            ("MemberId", "string", 0, 2, 32767, 32767, -1, "", ()),
            ("Members", "[]{}", 3, 5, 32767, 32767, -1, "", (
                ("MemberId", "string", 3, 5, 32767, 32767, -1, "", ()),
                ("GroupInstanceId", "string", 3, 5, 3, 32767, -1, "", ()),
                ("Reason", "string", 5, 5, 5, 32767, -1, "", ()),
            )),
        )),
        (0, 5, 4, (
            ("ThrottleTimeMs", "int32", 1, 5, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 5, 32767, 32767, -1, "", ()),
            ("Members", "[]{}", 3, 5, 32767, 32767, -1, "", (
                ("MemberId", "string", 3, 5, 32767, 32767, -1, "", ()),
                ("GroupInstanceId", "string", 3, 5, 3, 32767, -1, "", ()),
                ("ErrorCode", "int16", 3, 5, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    14: ("SyncGroup", ("broker",),
        (0, 5, 4, (
            ("GroupId", "string", 0, 5, 32767, 32767, -1, "groupId", ()),
            ("GenerationId", "int32", 0, 5, 32767, 32767, -1, "", ()),
            ("MemberId", "string", 0, 5, 32767, 32767, -1, "", ()),
            ("GroupInstanceId", "string", 3, 5, 3, 32767, -1, "", ()),
            ("ProtocolType", "string", 5, 5, 5, 32767, -1, "", ()),
            ("ProtocolName", "string", 5, 5, 5, 32767, -1, "", ()),
            ("Assignments", "[]{}", 0, 5, 32767, 32767, -1, "", (
                ("MemberId", "string", 0, 5, 32767, 32767, -1, "", ()),
                ("Assignment", "bytes", 0, 5, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 5, 4, (
            ("ThrottleTimeMs", "int32", 1, 5, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 5, 32767, 32767, -1, "", ()),
            ("ProtocolType", "string", 5, 5, 5, 32767, -1, "", ()),
            ("ProtocolName", "string", 5, 5, 5, 32767, -1, "", ()),
            ("Assignment", "bytes", 0, 5, 32767, 32767, -1, "", ()),
        )),
    ),
    15: ("DescribeGroups", ("broker",),
        (0, 6, 5, (
            ("Groups", "[]string", 0, 6, 32767, 32767, -1, "groupId", ()),
            ("IncludeAuthorizedOperations", "bool", 3, 6, 32767, 32767, -1, "", ()),
        )),
        (0, 6, 5, (
            ("ThrottleTimeMs", "int32", 1, 6, 32767, 32767, -1, "", ()),
            ("Groups", "[]{}", 0, 6, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 6, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 6, 6, 6, 32767, -1, "", ()),
                ("GroupId", "string", 0, 6, 32767, 32767, -1, "groupId", ()),
                ("GroupState", "string", 0, 6, 32767, 32767, -1, "", ()),
                ("ProtocolType", "string", 0, 6, 32767, 32767, -1, "", ()),
                ("ProtocolData", "string", 0, 6, 32767, 32767, -1, "", ()),
                ("Members", "[]{}", 0, 6, 32767, 32767, -1, "", (
                    ("MemberId", "string", 0, 6, 32767, 32767, -1, "", ()),
                    ("GroupInstanceId", "string", 4, 6, 4, 32767, -1, "", ()),
                    ("ClientId", "string", 0, 6, 32767, 32767, -1, "", ()),
                    ("ClientHost", "string", 0, 6, 32767, 32767, -1, "", ()),
                    ("MemberMetadata", "bytes", 0, 6, 32767, 32767, -1, "", ()),
                    ("MemberAssignment", "bytes", 0, 6, 32767, 32767, -1, "", ()),
                )),
                ("AuthorizedOperations", "int32", 3, 6, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    16: ("ListGroups", ("broker",),
        (0, 5, 3, (
            ("StatesFilter", "[]string", 4, 5, 32767, 32767, -1, "", ()),
            ("TypesFilter", "[]string", 5, 5, 32767, 32767, -1, "", ()),
        )),
        (0, 5, 3, (
            ("ThrottleTimeMs", "int32", 1, 5, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 5, 32767, 32767, -1, "", ()),
            ("Groups", "[]{}", 0, 5, 32767, 32767, -1, "", (
                ("GroupId", "string", 0, 5, 32767, 32767, -1, "groupId", ()),
                ("ProtocolType", "string", 0, 5, 32767, 32767, -1, "", ()),
                ("GroupState", "string", 4, 5, 32767, 32767, -1, "", ()),
                ("GroupType", "string", 5, 5, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    17: ("SaslHandshake", ("broker", "controller",),
        (0, 1, 32767, (
            ("Mechanism", "string", 0, 1, 32767, 32767, -1, "", ()),
        )),
        (0, 1, 32767, (
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("Mechanisms", "[]string", 0, 1, 32767, 32767, -1, "", ()),
        )),
    ),
    18: ("ApiVersions", ("broker", "controller",),
        (0, 4, 3, (
            ("ClientSoftwareName", "string", 3, 4, 32767, 32767, -1, "", ()),
            ("ClientSoftwareVersion", "string", 3, 4, 32767, 32767, -1, "", ()),
        )),
        (0, 4, 3, (
            ("ErrorCode", "int16", 0, 4, 32767, 32767, -1, "", ()),
            ("ApiKeys", "[]{}", 0, 4, 32767, 32767, -1, "", (
                ("ApiKey", "int16", 0, 4, 32767, 32767, -1, "", ()),
                ("MinVersion", "int16", 0, 4, 32767, 32767, -1, "", ()),
                ("MaxVersion", "int16", 0, 4, 32767, 32767, -1, "", ()),
            )),
            ("ThrottleTimeMs", "int32", 1, 4, 32767, 32767, -1, "", ()),
            ("SupportedFeatures", "[]{}", 3, 4, 32767, 3, 0, "", (
                ("Name", "string", 3, 4, 32767, 32767, -1, "", ()),
                ("MinVersion", "int16", 3, 4, 32767, 32767, -1, "", ()),
                ("MaxVersion", "int16", 3, 4, 32767, 32767, -1, "", ()),
            )),
            ("FinalizedFeaturesEpoch", "int64", 3, 4, 32767, 3, 1, "", ()),
            ("FinalizedFeatures", "[]{}", 3, 4, 32767, 3, 2, "", (
                ("Name", "string", 3, 4, 32767, 32767, -1, "", ()),
                ("MaxVersionLevel", "int16", 3, 4, 32767, 32767, -1, "", ()),
                ("MinVersionLevel", "int16", 3, 4, 32767, 32767, -1, "", ()),
            )),
            ("ZkMigrationReady", "bool", 3, 4, 32767, 3, 3, "", ()),
        )),
    ),
    19: ("CreateTopics", ("broker", "controller",),
        (0, 7, 5, (
            ("Topics", "[]{}", 0, 7, 32767, 32767, -1, "", (
                ("Name", "string", 0, 7, 32767, 32767, -1, "topicName", ()),
                ("NumPartitions", "int32", 0, 7, 32767, 32767, -1, "", ()),
                ("ReplicationFactor", "int16", 0, 7, 32767, 32767, -1, "", ()),
                ("Assignments", "[]{}", 0, 7, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 7, 32767, 32767, -1, "", ()),
                    ("BrokerIds", "[]int32", 0, 7, 32767, 32767, -1, "brokerId", ()),
                )),
                ("Configs", "[]{}", 0, 7, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 7, 32767, 32767, -1, "", ()),
                    ("Value", "string", 0, 7, 0, 32767, -1, "", ()),
                )),
            )),
            ("timeoutMs", "int32", 0, 7, 32767, 32767, -1, "", ()),
            ("validateOnly", "bool", 1, 7, 32767, 32767, -1, "", ()),
        )),
        (0, 7, 5, (
            ("ThrottleTimeMs", "int32", 2, 7, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 7, 32767, 32767, -1, "", (
                ("Name", "string", 0, 7, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 7, 7, 32767, 32767, -1, "", ()),
                ("ErrorCode", "int16", 0, 7, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 1, 7, 0, 32767, -1, "", ()),
                ("TopicConfigErrorCode", "int16", 5, 7, 32767, 5, 0, "", ()),
                ("NumPartitions", "int32", 5, 7, 32767, 32767, -1, "", ()),
                ("ReplicationFactor", "int16", 5, 7, 32767, 32767, -1, "", ()),
                ("Configs", "[]{}", 5, 7, 5, 32767, -1, "", (
                    ("Name", "string", 5, 7, 32767, 32767, -1, "", ()),
                    ("Value", "string", 5, 7, 5, 32767, -1, "", ()),
                    ("ReadOnly", "bool", 5, 7, 32767, 32767, -1, "", ()),
                    ("ConfigSource", "int8", 5, 7, 32767, 32767, -1, "", ()),
                    ("IsSensitive", "bool", 5, 7, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    20: ("DeleteTopics", ("broker", "controller",),
        (0, 6, 4, (
            ("Topics", "[]{}", 6, 6, 32767, 32767, -1, "", (
                ("Name", "string", 6, 6, 6, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 6, 6, 32767, 32767, -1, "", ()),
            )),
            ("TopicNames", "[]string", 0, 5, 32767, 32767, -1, "topicName", ()),
            ("TimeoutMs", "int32", 0, 6, 32767, 32767, -1, "", ()),
        )),
        (0, 6, 4, (
            ("ThrottleTimeMs", "int32", 1, 6, 32767, 32767, -1, "", ()),
            ("Responses", "[]{}", 0, 6, 32767, 32767, -1, "", (
                ("Name", "string", 0, 6, 6, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 6, 6, 32767, 32767, -1, "", ()),
                ("ErrorCode", "int16", 0, 6, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 5, 6, 5, 32767, -1, "", ()),
            )),
        )),
    ),
    21: ("DeleteRecords", ("broker",),
        (0, 2, 2, (
            ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("Name", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("Offset", "int64", 0, 2, 32767, 32767, -1, "", ()),
                )),
            )),
            ("TimeoutMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 2, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("Name", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("LowWatermark", "int64", 0, 2, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    22: ("InitProducerId", ("broker",),
        (0, 6, 2, (
            ("TransactionalId", "string", 0, 6, 0, 32767, -1, "transactionalId", ()),
            ("TransactionTimeoutMs", "int32", 0, 6, 32767, 32767, -1, "", ()),
            ("ProducerId", "int64", 3, 6, 32767, 32767, -1, "producerId", ()),
            ("ProducerEpoch", "int16", 3, 6, 32767, 32767, -1, "", ()),
            ("Enable2Pc", "bool", 6, 6, 32767, 32767, -1, "", ()),
            ("KeepPreparedTxn", "bool", 6, 6, 32767, 32767, -1, "", ()),
        )),
        (0, 6, 2, (
            ("ThrottleTimeMs", "int32", 0, 6, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 6, 32767, 32767, -1, "", ()),
            ("ProducerId", "int64", 0, 6, 32767, 32767, -1, "producerId", ()),
            ("ProducerEpoch", "int16", 0, 6, 32767, 32767, -1, "", ()),
            ("OngoingTxnProducerId", "int64", 6, 6, 32767, 32767, -1, "producerId", ()),
            ("OngoingTxnProducerEpoch", "int16", 6, 6, 32767, 32767, -1, "", ()),
        )),
    ),
    23: ("OffsetForLeaderEpoch", ("broker",),
        (0, 4, 4, (
            ("ReplicaId", "int32", 3, 4, 32767, 32767, -1, "brokerId", ()),
            ("Topics", "[]{}", 0, 4, 32767, 32767, -1, "", (
                ("Topic", "string", 0, 4, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 4, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 4, 32767, 32767, -1, "", ()),
                    ("CurrentLeaderEpoch", "int32", 2, 4, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 0, 4, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 4, 4, (
            ("ThrottleTimeMs", "int32", 2, 4, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 4, 32767, 32767, -1, "", (
                ("Topic", "string", 0, 4, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 4, 32767, 32767, -1, "", (
                    ("ErrorCode", "int16", 0, 4, 32767, 32767, -1, "", ()),
                    ("Partition", "int32", 0, 4, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 1, 4, 32767, 32767, -1, "", ()),
                    ("EndOffset", "int64", 0, 4, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    24: ("AddPartitionsToTxn", ("broker",),
        (0, 5, 3, (
            ("Transactions", "[]{}", 4, 5, 32767, 32767, -1, "", (
                ("TransactionalId", "string", 4, 5, 32767, 32767, -1, "transactionalId", ()),
                ("ProducerId", "int64", 4, 5, 32767, 32767, -1, "producerId", ()),
                ("ProducerEpoch", "int16", 4, 5, 32767, 32767, -1, "", ()),
                ("VerifyOnly", "bool", 4, 5, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 4, 5, 32767, 32767, -1, "", (
                    ("Name", "string", 4, 5, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]int32", 4, 5, 32767, 32767, -1, "", ()),
                )),
            )),
            ("V3AndBelowTransactionalId", "string", 0, 3, 32767, 32767, -1, "transactionalId", ()),
            ("V3AndBelowProducerId", "int64", 0, 3, 32767, 32767, -1, "producerId", ()),
            ("V3AndBelowProducerEpoch", "int16", 0, 3, 32767, 32767, -1, "", ()),
            ("V3AndBelowTopics", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("Name", "string", 0, 3, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]int32", 0, 3, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 5, 3, (
            ("ThrottleTimeMs", "int32", 0, 5, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 4, 5, 32767, 32767, -1, "", ()),
            ("ResultsByTransaction", "[]{}", 4, 5, 32767, 32767, -1, "", (
                ("TransactionalId", "string", 4, 5, 32767, 32767, -1, "transactionalId", ()),
                ("TopicResults", "[]{}", 4, 5, 32767, 32767, -1, "", (
                    ("Name", "string", 4, 5, 32767, 32767, -1, "topicName", ()),
                    ("ResultsByPartition", "[]{}", 4, 5, 32767, 32767, -1, "", (
                        ("PartitionIndex", "int32", 4, 5, 32767, 32767, -1, "", ()),
                        ("PartitionErrorCode", "int16", 4, 5, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("ResultsByTopicV3AndBelow", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("Name", "string", 0, 3, 32767, 32767, -1, "topicName", ()),
                ("ResultsByPartition", "[]{}", 0, 3, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 3, 32767, 32767, -1, "", ()),
                    ("PartitionErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    25: ("AddOffsetsToTxn", ("broker",),
        (0, 4, 3, (
            ("TransactionalId", "string", 0, 4, 32767, 32767, -1, "transactionalId", ()),
            ("ProducerId", "int64", 0, 4, 32767, 32767, -1, "producerId", ()),
            ("ProducerEpoch", "int16", 0, 4, 32767, 32767, -1, "", ()),
            ("GroupId", "string", 0, 4, 32767, 32767, -1, "groupId", ()),
        )),
        (0, 4, 3, (
            ("ThrottleTimeMs", "int32", 0, 4, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 4, 32767, 32767, -1, "", ()),
        )),
    ),
    26: ("EndTxn", ("broker",),
        (0, 5, 3, (
            ("TransactionalId", "string", 0, 5, 32767, 32767, -1, "transactionalId", ()),
            ("ProducerId", "int64", 0, 5, 32767, 32767, -1, "producerId", ()),
            ("ProducerEpoch", "int16", 0, 5, 32767, 32767, -1, "", ()),
            ("Committed", "bool", 0, 5, 32767, 32767, -1, "", ()),
        )),
        (0, 5, 3, (
            ("ThrottleTimeMs", "int32", 0, 5, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 5, 32767, 32767, -1, "", ()),
            ("ProducerId", "int64", 5, 5, 32767, 32767, -1, "producerId", ()),
            ("ProducerEpoch", "int16", 5, 5, 32767, 32767, -1, "", ()),
        )),
    ),
    27: ("WriteTxnMarkers", ("broker",),
        (0, 2, 1, (
            ("Markers", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("ProducerId", "int64", 0, 2, 32767, 32767, -1, "producerId", ()),
                ("ProducerEpoch", "int16", 0, 2, 32767, 32767, -1, "", ()),
                ("TransactionResult", "bool", 0, 2, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                    ("PartitionIndexes", "[]int32", 0, 2, 32767, 32767, -1, "", ()),
                )),
                ("CoordinatorEpoch", "int32", 0, 2, 32767, 32767, -1, "", ()),
                ("TransactionVersion", "int8", 2, 2, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 2, 1, (
            ("Markers", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("ProducerId", "int64", 0, 2, 32767, 32767, -1, "producerId", ()),
                ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                        ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                        ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
        )),
    ),
    28: ("TxnOffsetCommit", ("broker",),
        (0, 5, 3, (
            ("TransactionalId", "string", 0, 5, 32767, 32767, -1, "transactionalId", ()),
            ("GroupId", "string", 0, 5, 32767, 32767, -1, "groupId", ()),
            ("ProducerId", "int64", 0, 5, 32767, 32767, -1, "producerId", ()),
            ("ProducerEpoch", "int16", 0, 5, 32767, 32767, -1, "", ()),
            ("GenerationId", "int32", 3, 5, 32767, 32767, -1, "", ()),
            ("MemberId", "string", 3, 5, 32767, 32767, -1, "", ()),
            ("GroupInstanceId", "string", 3, 5, 3, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 5, 32767, 32767, -1, "", (
                ("Name", "string", 0, 5, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 5, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 5, 32767, 32767, -1, "", ()),
                    ("CommittedOffset", "int64", 0, 5, 32767, 32767, -1, "", ()),
                    ("CommittedLeaderEpoch", "int32", 2, 5, 32767, 32767, -1, "", ()),
                    ("CommittedMetadata", "string", 0, 5, 0, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 5, 3, (
            ("ThrottleTimeMs", "int32", 0, 5, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 5, 32767, 32767, -1, "", (
                ("Name", "string", 0, 5, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 5, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 5, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 5, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    29: ("DescribeAcls", ("broker", "controller",),
        (0, 3, 2, (
            ("ResourceTypeFilter", "int8", 0, 3, 32767, 32767, -1, "", ()),
            ("ResourceNameFilter", "string", 0, 3, 0, 32767, -1, "", ()),
            ("PatternTypeFilter", "int8", 1, 3, 32767, 32767, -1, "", ()),
            ("PrincipalFilter", "string", 0, 3, 0, 32767, -1, "", ()),
            ("HostFilter", "string", 0, 3, 0, 32767, -1, "", ()),
            ("Operation", "int8", 0, 3, 32767, 32767, -1, "", ()),
            ("PermissionType", "int8", 0, 3, 32767, 32767, -1, "", ()),
        )),
        (0, 3, 2, (
            ("ThrottleTimeMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 3, 0, 32767, -1, "", ()),
            ("Resources", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("ResourceType", "int8", 0, 3, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("PatternType", "int8", 1, 3, 32767, 32767, -1, "", ()),
                ("Acls", "[]{}", 0, 3, 32767, 32767, -1, "", (
                    ("Principal", "string", 0, 3, 32767, 32767, -1, "", ()),
                    ("Host", "string", 0, 3, 32767, 32767, -1, "", ()),
                    ("Operation", "int8", 0, 3, 32767, 32767, -1, "", ()),
                    ("PermissionType", "int8", 0, 3, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    30: ("CreateAcls", ("broker", "controller",),
        (0, 3, 2, (
            ("Creations", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("ResourceType", "int8", 0, 3, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("ResourcePatternType", "int8", 1, 3, 32767, 32767, -1, "", ()),
                ("Principal", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("Host", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("Operation", "int8", 0, 3, 32767, 32767, -1, "", ()),
                ("PermissionType", "int8", 0, 3, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 3, 2, (
            ("ThrottleTimeMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 3, 0, 32767, -1, "", ()),
            )),
        )),
    ),
    31: ("DeleteAcls", ("broker", "controller",),
        (0, 3, 2, (
            ("Filters", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("ResourceTypeFilter", "int8", 0, 3, 32767, 32767, -1, "", ()),
                ("ResourceNameFilter", "string", 0, 3, 0, 32767, -1, "", ()),
                ("PatternTypeFilter", "int8", 1, 3, 32767, 32767, -1, "", ()),
                ("PrincipalFilter", "string", 0, 3, 0, 32767, -1, "", ()),
                ("HostFilter", "string", 0, 3, 0, 32767, -1, "", ()),
                ("Operation", "int8", 0, 3, 32767, 32767, -1, "", ()),
                ("PermissionType", "int8", 0, 3, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 3, 2, (
            ("ThrottleTimeMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
            ("FilterResults", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 3, 0, 32767, -1, "", ()),
                ("MatchingAcls", "[]{}", 0, 3, 32767, 32767, -1, "", (
                    ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 3, 0, 32767, -1, "", ()),
                    ("ResourceType", "int8", 0, 3, 32767, 32767, -1, "", ()),
                    ("ResourceName", "string", 0, 3, 32767, 32767, -1, "", ()),
                    ("PatternType", "int8", 1, 3, 32767, 32767, -1, "", ()),
                    ("Principal", "string", 0, 3, 32767, 32767, -1, "", ()),
                    ("Host", "string", 0, 3, 32767, 32767, -1, "", ()),
                    ("Operation", "int8", 0, 3, 32767, 32767, -1, "", ()),
                    ("PermissionType", "int8", 0, 3, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    32: ("DescribeConfigs", ("broker", "controller",),
        (0, 4, 4, (
            ("Resources", "[]{}", 0, 4, 32767, 32767, -1, "", (
                ("ResourceType", "int8", 0, 4, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 4, 32767, 32767, -1, "", ()),
                ("ConfigurationKeys", "[]string", 0, 4, 0, 32767, -1, "", ()),
            )),
            ("IncludeSynonyms", "bool", 1, 4, 32767, 32767, -1, "", ()),
            ("IncludeDocumentation", "bool", 3, 4, 32767, 32767, -1, "", ()),
        )),
        (0, 4, 4, (
            ("ThrottleTimeMs", "int32", 0, 4, 32767, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 4, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 4, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 4, 0, 32767, -1, "", ()),
                ("ResourceType", "int8", 0, 4, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 4, 32767, 32767, -1, "", ()),
                ("Configs", "[]{}", 0, 4, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 4, 32767, 32767, -1, "", ()),
                    ("Value", "string", 0, 4, 0, 32767, -1, "", ()),
                    ("ReadOnly", "bool", 0, 4, 32767, 32767, -1, "", ()),
                    ("IsDefault", "bool", 0, 0, 32767, 32767, -1, "", ()),
                    ("ConfigSource", "int8", 1, 4, 32767, 32767, -1, "", ()),
                    ("IsSensitive", "bool", 0, 4, 32767, 32767, -1, "", ()),
                    ("Synonyms", "[]{}", 1, 4, 32767, 32767, -1, "", (
                        ("Name", "string", 1, 4, 32767, 32767, -1, "", ()),
                        ("Value", "string", 1, 4, 0, 32767, -1, "", ()),
                        ("Source", "int8", 1, 4, 32767, 32767, -1, "", ()),
                    )),
                    ("ConfigType", "int8", 3, 4, 32767, 32767, -1, "", ()),
                    ("Documentation", "string", 3, 4, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    33: ("AlterConfigs", ("broker", "controller",),
        (0, 2, 2, (
            ("Resources", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("ResourceType", "int8", 0, 2, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 2, 32767, 32767, -1, "", ()),
                ("Configs", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 2, 32767, 32767, -1, "", ()),
                    ("Value", "string", 0, 2, 0, 32767, -1, "", ()),
                )),
            )),
            ("ValidateOnly", "bool", 0, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 2, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("Responses", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 2, 0, 32767, -1, "", ()),
                ("ResourceType", "int8", 0, 2, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 2, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    34: ("AlterReplicaLogDirs", ("broker",),
        (0, 2, 2, (
            ("Dirs", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("Path", "string", 0, 2, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]int32", 0, 2, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 2, 2, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    35: ("DescribeLogDirs", ("broker",),
        (0, 5, 2, (
            ("Topics", "[]{}", 0, 5, 0, 32767, -1, "", (
                ("Topic", "string", 0, 5, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]int32", 0, 5, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 5, 2, (
            ("ThrottleTimeMs", "int32", 0, 5, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 3, 5, 32767, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 5, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 5, 32767, 32767, -1, "", ()),
                ("LogDir", "string", 0, 5, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 0, 5, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 5, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]{}", 0, 5, 32767, 32767, -1, "", (
                        ("PartitionIndex", "int32", 0, 5, 32767, 32767, -1, "", ()),
                        ("PartitionSize", "int64", 0, 5, 32767, 32767, -1, "", ()),
                        ("OffsetLag", "int64", 0, 5, 32767, 32767, -1, "", ()),
                        ("IsFutureKey", "bool", 0, 5, 32767, 32767, -1, "", ()),
                    )),
                )),
                ("TotalBytes", "int64", 4, 5, 32767, 32767, -1, "", ()),
                ("UsableBytes", "int64", 4, 5, 32767, 32767, -1, "", ()),
                ("IsCordoned", "bool", 5, 5, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    36: ("SaslAuthenticate", ("broker", "controller",),
        (0, 2, 2, (
            ("AuthBytes", "bytes", 0, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 2, (
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 2, 0, 32767, -1, "", ()),
            ("AuthBytes", "bytes", 0, 2, 32767, 32767, -1, "", ()),
            ("SessionLifetimeMs", "int64", 1, 2, 32767, 32767, -1, "", ()),
        )),
    ),
    37: ("CreatePartitions", ("broker", "controller",),
        (0, 3, 2, (
            ("Topics", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("Name", "string", 0, 3, 32767, 32767, -1, "topicName", ()),
                ("Count", "int32", 0, 3, 32767, 32767, -1, "", ()),
                ("Assignments", "[]{}", 0, 3, 0, 32767, -1, "", (
                    ("BrokerIds", "[]int32", 0, 3, 32767, 32767, -1, "brokerId", ()),
                )),
            )),
            ("TimeoutMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
            ("ValidateOnly", "bool", 0, 3, 32767, 32767, -1, "", ()),
        )),
        (0, 3, 2, (
            ("ThrottleTimeMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("Name", "string", 0, 3, 32767, 32767, -1, "topicName", ()),
                ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 3, 0, 32767, -1, "", ()),
            )),
        )),
    ),
    38: ("CreateDelegationToken", ("broker", "controller",),
        (0, 3, 2, (
            ("OwnerPrincipalType", "string", 3, 3, 3, 32767, -1, "", ()),
            ("OwnerPrincipalName", "string", 3, 3, 3, 32767, -1, "", ()),
            ("Renewers", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("PrincipalType", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("PrincipalName", "string", 0, 3, 32767, 32767, -1, "", ()),
            )),
            ("MaxLifetimeMs", "int64", 0, 3, 32767, 32767, -1, "", ()),
        )),
        (0, 3, 2, (
            ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
            ("PrincipalType", "string", 0, 3, 32767, 32767, -1, "", ()),
            ("PrincipalName", "string", 0, 3, 32767, 32767, -1, "", ()),
            ("TokenRequesterPrincipalType", "string", 3, 3, 32767, 32767, -1, "", ()),
            ("TokenRequesterPrincipalName", "string", 3, 3, 32767, 32767, -1, "", ()),
            ("IssueTimestampMs", "int64", 0, 3, 32767, 32767, -1, "", ()),
            ("ExpiryTimestampMs", "int64", 0, 3, 32767, 32767, -1, "", ()),
            ("MaxTimestampMs", "int64", 0, 3, 32767, 32767, -1, "", ()),
            ("TokenId", "string", 0, 3, 32767, 32767, -1, "", ()),
            ("Hmac", "bytes", 0, 3, 32767, 32767, -1, "", ()),
            ("ThrottleTimeMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
        )),
    ),
    39: ("RenewDelegationToken", ("broker", "controller",),
        (0, 2, 2, (
            ("Hmac", "bytes", 0, 2, 32767, 32767, -1, "", ()),
            ("RenewPeriodMs", "int64", 0, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 2, (
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("ExpiryTimestampMs", "int64", 0, 2, 32767, 32767, -1, "", ()),
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
        )),
    ),
    40: ("ExpireDelegationToken", ("broker", "controller",),
        (0, 2, 2, (
            ("Hmac", "bytes", 0, 2, 32767, 32767, -1, "", ()),
            ("ExpiryTimePeriodMs", "int64", 0, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 2, (
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("ExpiryTimestampMs", "int64", 0, 2, 32767, 32767, -1, "", ()),
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
        )),
    ),
    41: ("DescribeDelegationToken", ("broker", "controller",),
        (0, 3, 2, (
            ("Owners", "[]{}", 0, 3, 0, 32767, -1, "", (
                ("PrincipalType", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("PrincipalName", "string", 0, 3, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 3, 2, (
            ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
            ("Tokens", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("PrincipalType", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("PrincipalName", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("TokenRequesterPrincipalType", "string", 3, 3, 32767, 32767, -1, "", ()),
                ("TokenRequesterPrincipalName", "string", 3, 3, 32767, 32767, -1, "", ()),
                ("IssueTimestamp", "int64", 0, 3, 32767, 32767, -1, "", ()),
                ("ExpiryTimestamp", "int64", 0, 3, 32767, 32767, -1, "", ()),
                ("MaxTimestamp", "int64", 0, 3, 32767, 32767, -1, "", ()),
                ("TokenId", "string", 0, 3, 32767, 32767, -1, "", ()),
                ("Hmac", "bytes", 0, 3, 32767, 32767, -1, "", ()),
                ("Renewers", "[]{}", 0, 3, 32767, 32767, -1, "", (
                    ("PrincipalType", "string", 0, 3, 32767, 32767, -1, "", ()),
                    ("PrincipalName", "string", 0, 3, 32767, 32767, -1, "", ()),
                )),
            )),
            ("ThrottleTimeMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
        )),
    ),
    42: ("DeleteGroups", ("broker",),
        (0, 2, 2, (
            ("GroupsNames", "[]string", 0, 2, 32767, 32767, -1, "groupId", ()),
        )),
        (0, 2, 2, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("GroupId", "string", 0, 2, 32767, 32767, -1, "groupId", ()),
                ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    43: ("ElectLeaders", ("broker", "controller",),
        (0, 2, 2, (
            ("ElectionType", "int8", 1, 2, 32767, 32767, -1, "", ()),
            ("TopicPartitions", "[]{}", 0, 2, 0, 32767, -1, "", (
                ("Topic", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]int32", 0, 2, 32767, 32767, -1, "", ()),
            )),
            ("TimeoutMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 2, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 1, 2, 32767, 32767, -1, "", ()),
            ("ReplicaElectionResults", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("Topic", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("PartitionResult", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionId", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 2, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    44: ("IncrementalAlterConfigs", ("broker", "controller",),
        (0, 1, 1, (
            ("Resources", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("ResourceType", "int8", 0, 1, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("Configs", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Name", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("ConfigOperation", "int8", 0, 1, 32767, 32767, -1, "", ()),
                    ("Value", "string", 0, 1, 0, 32767, -1, "", ()),
                )),
            )),
            ("ValidateOnly", "bool", 0, 1, 32767, 32767, -1, "", ()),
        )),
        (0, 1, 1, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("Responses", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
                ("ResourceType", "int8", 0, 1, 32767, 32767, -1, "", ()),
                ("ResourceName", "string", 0, 1, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    45: ("AlterPartitionReassignments", ("broker", "controller",),
        (0, 1, 0, (
            ("TimeoutMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("AllowReplicationFactorChange", "bool", 1, 1, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("Name", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("Replicas", "[]int32", 0, 1, 0, 32767, -1, "brokerId", ()),
                )),
            )),
        )),
        (0, 1, 0, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("AllowReplicationFactorChange", "bool", 1, 1, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
            ("Responses", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("Name", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    46: ("ListPartitionReassignments", ("broker", "controller",),
        (0, 0, 0, (
            ("TimeoutMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("PartitionIndexes", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("Replicas", "[]int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                    ("AddingReplicas", "[]int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                    ("RemovingReplicas", "[]int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                )),
            )),
        )),
    ),
    47: ("OffsetDelete", ("broker",),
        (0, 0, 32767, (
            ("GroupId", "string", 0, 0, 32767, 32767, -1, "groupId", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 0, 32767, (
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    48: ("DescribeClientQuotas", ("broker",),
        (0, 1, 1, (
            ("Components", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("EntityType", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("MatchType", "int8", 0, 1, 32767, 32767, -1, "", ()),
                ("Match", "string", 0, 1, 0, 32767, -1, "", ()),
            )),
            ("Strict", "bool", 0, 1, 32767, 32767, -1, "", ()),
        )),
        (0, 1, 1, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
            ("Entries", "[]{}", 0, 1, 0, 32767, -1, "", (
                ("Entity", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("EntityType", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("EntityName", "string", 0, 1, 0, 32767, -1, "", ()),
                )),
                ("Values", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Key", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("Value", "float64", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    49: ("AlterClientQuotas", ("broker", "controller",),
        (0, 1, 1, (
            ("Entries", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("Entity", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("EntityType", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("EntityName", "string", 0, 1, 0, 32767, -1, "", ()),
                )),
                ("Ops", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Key", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("Value", "float64", 0, 1, 32767, 32767, -1, "", ()),
                    ("Remove", "bool", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
            ("ValidateOnly", "bool", 0, 1, 32767, 32767, -1, "", ()),
        )),
        (0, 1, 1, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("Entries", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
                ("Entity", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("EntityType", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("EntityName", "string", 0, 1, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    50: ("DescribeUserScramCredentials", ("broker", "controller",),
        (0, 0, 0, (
            ("Users", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("User", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
                ("CredentialInfos", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Mechanism", "int8", 0, 0, 32767, 32767, -1, "", ()),
                    ("Iterations", "int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    51: ("AlterUserScramCredentials", ("broker", "controller",),
        (0, 0, 0, (
            ("Deletions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Mechanism", "int8", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("Upsertions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Mechanism", "int8", 0, 0, 32767, 32767, -1, "", ()),
                ("Iterations", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("Salt", "bytes", 0, 0, 32767, 32767, -1, "", ()),
                ("SaltedPassword", "bytes", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("User", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
            )),
        )),
    ),
    52: ("Vote", ("controller",),
        (0, 2, 0, (
            ("ClusterId", "string", 0, 2, 0, 32767, -1, "", ()),
            ("VoterId", "int32", 1, 2, 32767, 32767, -1, "brokerId", ()),
            ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("ReplicaEpoch", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("ReplicaId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
                    ("ReplicaDirectoryId", "uuid", 1, 2, 32767, 32767, -1, "", ()),
                    ("VoterDirectoryId", "uuid", 1, 2, 32767, 32767, -1, "", ()),
                    ("LastOffsetEpoch", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("LastOffset", "int64", 0, 2, 32767, 32767, -1, "", ()),
                    ("PreVote", "bool", 2, 2, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 2, 0, (
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("VoteGranted", "bool", 0, 2, 32767, 32767, -1, "", ()),
                )),
            )),
            ("NodeEndpoints", "[]{}", 1, 2, 32767, 1, 0, "", (
                ("NodeId", "int32", 1, 2, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 1, 2, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 1, 2, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    53: ("BeginQuorumEpoch", ("controller",),
        (0, 1, 1, (
            ("ClusterId", "string", 0, 1, 0, 32767, -1, "", ()),
            ("VoterId", "int32", 1, 1, 32767, 32767, -1, "brokerId", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("VoterDirectoryId", "uuid", 1, 1, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 1, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
            ("LeaderEndpoints", "[]{}", 1, 1, 32767, 32767, -1, "", (
                ("Name", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Host", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 1, 1, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 1, 1, (
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 1, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
            ("NodeEndpoints", "[]{}", 1, 1, 32767, 1, 0, "", (
                ("NodeId", "int32", 1, 1, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 1, 1, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    54: ("EndQuorumEpoch", ("controller",),
        (0, 1, 1, (
            ("ClusterId", "string", 0, 1, 0, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 1, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("PreferredSuccessors", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("PreferredCandidates", "[]{}", 1, 1, 32767, 32767, -1, "", (
                        ("CandidateId", "int32", 1, 1, 32767, 32767, -1, "brokerId", ()),
                        ("CandidateDirectoryId", "uuid", 1, 1, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("LeaderEndpoints", "[]{}", 1, 1, 32767, 32767, -1, "", (
                ("Name", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Host", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 1, 1, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 1, 1, (
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 1, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
            ("NodeEndpoints", "[]{}", 1, 1, 32767, 1, 0, "", (
                ("NodeId", "int32", 1, 1, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 1, 1, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    55: ("DescribeQuorum", ("broker", "controller",),
        (0, 2, 0, (
            ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 2, 0, (
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 2, 2, 2, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 2, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 2, 2, 2, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 2, 32767, 32767, -1, "", ()),
                    ("HighWatermark", "int64", 0, 2, 32767, 32767, -1, "", ()),
                    ("CurrentVoters", "[]{}", 0, 2, 32767, 32767, -1, "", (
                        ("ReplicaId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
                        ("ReplicaDirectoryId", "uuid", 2, 2, 32767, 32767, -1, "", ()),
                        ("LogEndOffset", "int64", 0, 2, 32767, 32767, -1, "", ()),
                        ("LastFetchTimestamp", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("LastCaughtUpTimestamp", "int64", 1, 2, 32767, 32767, -1, "", ()),
                    )),
                    ("Observers", "[]{}", 0, 2, 32767, 32767, -1, "", (
                        ("ReplicaId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
                        ("ReplicaDirectoryId", "uuid", 2, 2, 32767, 32767, -1, "", ()),
                        ("LogEndOffset", "int64", 0, 2, 32767, 32767, -1, "", ()),
                        ("LastFetchTimestamp", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("LastCaughtUpTimestamp", "int64", 1, 2, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("Nodes", "[]{}", 2, 2, 32767, 32767, -1, "", (
                ("NodeId", "int32", 2, 2, 32767, 32767, -1, "brokerId", ()),
                ("Listeners", "[]{}", 2, 2, 32767, 32767, -1, "", (
                    ("Name", "string", 2, 2, 32767, 32767, -1, "", ()),
                    ("Host", "string", 2, 2, 32767, 32767, -1, "", ()),
                    ("Port", "uint16", 2, 2, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    56: ("AlterPartition", ("controller",),
        (0, 3, 0, (
            ("BrokerId", "int32", 0, 3, 32767, 32767, -1, "brokerId", ()),
            ("BrokerEpoch", "int64", 0, 3, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 2, 3, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 3, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 3, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 0, 3, 32767, 32767, -1, "", ()),
                    ("NewIsr", "[]int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
                    ("NewIsrWithEpochs", "[]{}", 3, 3, 32767, 32767, -1, "", (
                        ("BrokerId", "int32", 3, 3, 32767, 32767, -1, "brokerId", ()),
                        ("BrokerEpoch", "int64", 3, 3, 32767, 32767, -1, "", ()),
                    )),
                    ("LeaderRecoveryState", "int8", 1, 3, 32767, 32767, -1, "", ()),
                    ("PartitionEpoch", "int32", 0, 3, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 3, 0, (
            ("ThrottleTimeMs", "int32", 0, 3, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 3, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 2, 3, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 3, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 3, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 3, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 3, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 3, 32767, 32767, -1, "", ()),
                    ("Isr", "[]int32", 0, 3, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderRecoveryState", "int8", 1, 3, 32767, 32767, -1, "", ()),
                    ("PartitionEpoch", "int32", 0, 3, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    57: ("UpdateFeatures", ("broker", "controller",),
        (0, 2, 0, (
            ("timeoutMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("FeatureUpdates", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("Feature", "string", 0, 2, 32767, 32767, -1, "", ()),
                ("MaxVersionLevel", "int16", 0, 2, 32767, 32767, -1, "", ()),
                ("AllowDowngrade", "bool", 0, 0, 32767, 32767, -1, "", ()),
                ("UpgradeType", "int8", 1, 2, 32767, 32767, -1, "", ()),
            )),
            ("ValidateOnly", "bool", 1, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 0, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 2, 0, 32767, -1, "", ()),
            ("Results", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("Feature", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
            )),
        )),
    ),
    58: ("Envelope", ("controller",),
        (0, 0, 0, (
            ("RequestData", "bytes", 0, 0, 32767, 32767, -1, "", ()),
            ("RequestPrincipal", "bytes", 0, 0, 0, 32767, -1, "", ()),
            ("ClientHostAddress", "bytes", 0, 0, 32767, 32767, -1, "", ()),
        )),
        (0, 0, 0, (
            ("ResponseData", "bytes", 0, 0, 0, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
        )),
    ),
    59: ("FetchSnapshot", ("controller",),
        (0, 1, 0, (
            ("ClusterId", "string", 0, 1, 0, 0, 0, "", ()),
            ("ReplicaId", "int32", 0, 1, 32767, 32767, -1, "brokerId", ()),
            ("MaxBytes", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("Name", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("CurrentLeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("SnapshotId", "{}", 0, 1, 32767, 32767, -1, "", (
                        ("EndOffset", "int64", 0, 1, 32767, 32767, -1, "", ()),
                        ("Epoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    )),
                    ("Position", "int64", 0, 1, 32767, 32767, -1, "", ()),
                    ("ReplicaDirectoryId", "uuid", 1, 1, 32767, 1, 0, "", ()),
                )),
            )),
        )),
        (0, 1, 0, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("Name", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Index", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                    ("SnapshotId", "{}", 0, 1, 32767, 32767, -1, "", (
                        ("EndOffset", "int64", 0, 1, 32767, 32767, -1, "", ()),
                        ("Epoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    )),
                    ("CurrentLeader", "{}", 0, 1, 32767, 0, 0, "", (
                        ("LeaderId", "int32", 0, 1, 32767, 32767, -1, "brokerId", ()),
                        ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    )),
                    ("Size", "int64", 0, 1, 32767, 32767, -1, "", ()),
                    ("Position", "int64", 0, 1, 32767, 32767, -1, "", ()),
                    ("UnalignedRecords", "records", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
            ("NodeEndpoints", "[]{}", 1, 1, 32767, 1, 0, "", (
                ("NodeId", "int32", 1, 1, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 1, 1, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    60: ("DescribeCluster", ("broker", "controller",),
        (0, 2, 0, (
            ("IncludeClusterAuthorizedOperations", "bool", 0, 2, 32767, 32767, -1, "", ()),
            ("EndpointType", "int8", 1, 2, 32767, 32767, -1, "", ()),
            ("IncludeFencedBrokers", "bool", 2, 2, 32767, 32767, -1, "", ()),
        )),
        (0, 2, 0, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 2, 0, 32767, -1, "", ()),
            ("EndpointType", "int8", 1, 2, 32767, 32767, -1, "", ()),
            ("ClusterId", "string", 0, 2, 32767, 32767, -1, "", ()),
            ("ControllerId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
            ("Brokers", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("BrokerId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 0, 2, 32767, 32767, -1, "", ()),
                ("Port", "int32", 0, 2, 32767, 32767, -1, "", ()),
                ("Rack", "string", 0, 2, 0, 32767, -1, "", ()),
                ("IsFenced", "bool", 2, 2, 32767, 32767, -1, "", ()),
            )),
            ("ClusterAuthorizedOperations", "int32", 0, 2, 32767, 32767, -1, "", ()),
        )),
    ),
    61: ("DescribeProducers", ("broker",),
        (0, 0, 0, (
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("PartitionIndexes", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
                    ("ActiveProducers", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("ProducerId", "int64", 0, 0, 32767, 32767, -1, "producerId", ()),
                        ("ProducerEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("LastSequence", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("LastTimestamp", "int64", 0, 0, 32767, 32767, -1, "", ()),
                        ("CoordinatorEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("CurrentTxnStartOffset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
        )),
    ),
    62: ("BrokerRegistration", ("controller",),
        (0, 4, 0, (
            ("BrokerId", "int32", 0, 4, 32767, 32767, -1, "brokerId", ()),
            ("ClusterId", "string", 0, 4, 32767, 32767, -1, "", ()),
            ("IncarnationId", "uuid", 0, 4, 32767, 32767, -1, "", ()),
            ("Listeners", "[]{}", 0, 4, 32767, 32767, -1, "", (
                ("Name", "string", 0, 4, 32767, 32767, -1, "", ()),
                ("Host", "string", 0, 4, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 0, 4, 32767, 32767, -1, "", ()),
                ("SecurityProtocol", "int16", 0, 4, 32767, 32767, -1, "", ()),
            )),
            ("Features", "[]{}", 0, 4, 32767, 32767, -1, "", (
                ("Name", "string", 0, 4, 32767, 32767, -1, "", ()),
                ("MinSupportedVersion", "int16", 0, 4, 32767, 32767, -1, "", ()),
                ("MaxSupportedVersion", "int16", 0, 4, 32767, 32767, -1, "", ()),
            )),
            ("Rack", "string", 0, 4, 0, 32767, -1, "", ()),
            ("IsMigratingZkBroker", "bool", 1, 4, 32767, 32767, -1, "", ()),
            ("LogDirs", "[]uuid", 2, 4, 32767, 32767, -1, "", ()),
            ("PreviousBrokerEpoch", "int64", 3, 4, 32767, 32767, -1, "", ()),
        )),
        (0, 4, 0, (
            ("ThrottleTimeMs", "int32", 0, 4, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 4, 32767, 32767, -1, "", ()),
            ("BrokerEpoch", "int64", 0, 4, 32767, 32767, -1, "", ()),
        )),
    ),
    63: ("BrokerHeartbeat", ("controller",),
        (0, 2, 0, (
            ("BrokerId", "int32", 0, 2, 32767, 32767, -1, "brokerId", ()),
            ("BrokerEpoch", "int64", 0, 2, 32767, 32767, -1, "", ()),
            ("CurrentMetadataOffset", "int64", 0, 2, 32767, 32767, -1, "", ()),
            ("WantFence", "bool", 0, 2, 32767, 32767, -1, "", ()),
            ("WantShutDown", "bool", 0, 2, 32767, 32767, -1, "", ()),
            ("OfflineLogDirs", "[]uuid", 1, 2, 32767, 1, 0, "", ()),
            ("CordonedLogDirs", "[]uuid", 2, 2, 2, 2, 1, "", ()),
        )),
        (0, 2, 0, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("IsCaughtUp", "bool", 0, 2, 32767, 32767, -1, "", ()),
            ("IsFenced", "bool", 0, 2, 32767, 32767, -1, "", ()),
            ("ShouldShutDown", "bool", 0, 2, 32767, 32767, -1, "", ()),
        )),
    ),
    64: ("UnregisterBroker", ("broker", "controller",),
        (0, 0, 0, (
            ("BrokerId", "int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
        )),
    ),
    65: ("DescribeTransactions", ("broker",),
        (0, 0, 0, (
            ("TransactionalIds", "[]string", 0, 0, 32767, 32767, -1, "transactionalId", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("TransactionStates", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("TransactionalId", "string", 0, 0, 32767, 32767, -1, "transactionalId", ()),
                ("TransactionState", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("TransactionTimeoutMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("TransactionStartTimeMs", "int64", 0, 0, 32767, 32767, -1, "", ()),
                ("ProducerId", "int64", 0, 0, 32767, 32767, -1, "producerId", ()),
                ("ProducerEpoch", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Topic", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    66: ("ListTransactions", ("broker",),
        (0, 2, 0, (
            ("StateFilters", "[]string", 0, 2, 32767, 32767, -1, "", ()),
            ("ProducerIdFilters", "[]int64", 0, 2, 32767, 32767, -1, "producerId", ()),
            ("DurationFilter", "int64", 1, 2, 32767, 32767, -1, "", ()),
            ("TransactionalIdPattern", "string", 2, 2, 2, 32767, -1, "", ()),
        )),
        (0, 2, 0, (
            ("ThrottleTimeMs", "int32", 0, 2, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 2, 32767, 32767, -1, "", ()),
            ("UnknownStateFilters", "[]string", 0, 2, 32767, 32767, -1, "", ()),
            ("TransactionStates", "[]{}", 0, 2, 32767, 32767, -1, "", (
                ("TransactionalId", "string", 0, 2, 32767, 32767, -1, "transactionalId", ()),
                ("ProducerId", "int64", 0, 2, 32767, 32767, -1, "producerId", ()),
                ("TransactionState", "string", 0, 2, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    67: ("AllocateProducerIds", ("controller",),
        (0, 0, 0, (
            ("BrokerId", "int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
            ("BrokerEpoch", "int64", 0, 0, 32767, 32767, -1, "", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ProducerIdStart", "int64", 0, 0, 32767, 32767, -1, "producerId", ()),
            ("ProducerIdLen", "int32", 0, 0, 32767, 32767, -1, "", ()),
        )),
    ),
    68: ("ConsumerGroupHeartbeat", ("broker",),
        (0, 1, 0, (
            ("GroupId", "string", 0, 1, 32767, 32767, -1, "groupId", ()),
            ("MemberId", "string", 0, 1, 32767, 32767, -1, "", ()),
            ("MemberEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("InstanceId", "string", 0, 1, 0, 32767, -1, "", ()),
            ("RackId", "string", 0, 1, 0, 32767, -1, "", ()),
            ("RebalanceTimeoutMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("SubscribedTopicNames", "[]string", 0, 1, 0, 32767, -1, "topicName", ()),
            ("SubscribedTopicRegex", "string", 1, 1, 1, 32767, -1, "", ()),
            ("ServerAssignor", "string", 0, 1, 0, 32767, -1, "", ()),
            ("TopicPartitions", "[]{}", 0, 1, 0, 32767, -1, "", (
                ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 0, 1, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 1, 0, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
            ("MemberId", "string", 0, 1, 0, 32767, -1, "", ()),
            ("MemberEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("HeartbeatIntervalMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("Assignment", "{}", 0, 1, 0, 32767, -1, "", (
                ("TopicPartitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                    ("Partitions", "[]int32", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    69: ("ConsumerGroupDescribe", ("broker",),
        (0, 1, 0, (
            ("GroupIds", "[]string", 0, 1, 32767, 32767, -1, "groupId", ()),
            ("IncludeAuthorizedOperations", "bool", 0, 1, 32767, 32767, -1, "", ()),
        )),
        (0, 1, 0, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("Groups", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
                ("GroupId", "string", 0, 1, 32767, 32767, -1, "groupId", ()),
                ("GroupState", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("GroupEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                ("AssignmentEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                ("AssignorName", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("Members", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("MemberId", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("InstanceId", "string", 0, 1, 0, 32767, -1, "", ()),
                    ("RackId", "string", 0, 1, 0, 32767, -1, "", ()),
                    ("MemberEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("ClientId", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("ClientHost", "string", 0, 1, 32767, 32767, -1, "", ()),
                    ("SubscribedTopicNames", "[]string", 0, 1, 32767, 32767, -1, "topicName", ()),
                    ("SubscribedTopicRegex", "string", 0, 1, 0, 32767, -1, "", ()),
                    ("Assignment", "{}", 0, 1, 32767, 32767, -1, "", (
                        ("TopicPartitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                            ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                            ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                            ("Partitions", "[]int32", 0, 1, 32767, 32767, -1, "", ()),
                        )),
                    )),
                    ("TargetAssignment", "{}", 0, 1, 32767, 32767, -1, "", (
                        ("TopicPartitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                            ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                            ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                            ("Partitions", "[]int32", 0, 1, 32767, 32767, -1, "", ()),
                        )),
                    )),
                    ("MemberType", "int8", 1, 1, 32767, 32767, -1, "", ()),
                )),
                ("AuthorizedOperations", "int32", 0, 1, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    70: ("ControllerRegistration", ("controller",),
        (0, 0, 0, (
            ("ControllerId", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("IncarnationId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
            ("ZkMigrationReady", "bool", 0, 0, 32767, 32767, -1, "", ()),
            ("Listeners", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Host", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 0, 0, 32767, 32767, -1, "", ()),
                ("SecurityProtocol", "int16", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("Features", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("MinSupportedVersion", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("MaxSupportedVersion", "int16", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
        )),
    ),
    71: ("GetTelemetrySubscriptions", ("broker",),
        (0, 0, 0, (
            ("ClientInstanceId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ClientInstanceId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
            ("SubscriptionId", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("AcceptedCompressionTypes", "[]int8", 0, 0, 32767, 32767, -1, "", ()),
            ("PushIntervalMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("TelemetryMaxBytes", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("DeltaTemporality", "bool", 0, 0, 32767, 32767, -1, "", ()),
            ("RequestedMetrics", "[]string", 0, 0, 32767, 32767, -1, "", ()),
        )),
    ),
    72: ("PushTelemetry", ("broker",),
        (0, 0, 0, (
            ("ClientInstanceId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
            ("SubscriptionId", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Terminating", "bool", 0, 0, 32767, 32767, -1, "", ()),
            ("CompressionType", "int8", 0, 0, 32767, 32767, -1, "", ()),
            ("Metrics", "bytes", 0, 0, 32767, 32767, -1, "", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
        )),
    ),
    73: ("AssignReplicasToDirs", ("controller",),
        (0, 0, 0, (
            ("BrokerId", "int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
            ("BrokerEpoch", "int64", 0, 0, 32767, 32767, -1, "", ()),
            ("Directories", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Id", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                    ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("Directories", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Id", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                    ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
        )),
    ),
    74: ("ListConfigResources", ("broker",),
        (0, 1, 0, (
            ("ResourceTypes", "[]int8", 1, 1, 32767, 32767, -1, "", ()),
        )),
        (0, 1, 0, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("ConfigResources", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("ResourceName", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("ResourceType", "int8", 1, 1, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    75: ("DescribeTopicPartitions", ("broker",),
        (0, 0, 0, (
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
            )),
            ("ResponsePartitionLimit", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Cursor", "{}", 0, 0, 0, 32767, -1, "", (
                ("TopicName", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("Name", "string", 0, 0, 0, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("IsInternal", "bool", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("LeaderId", "int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                    ("LeaderEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ReplicaNodes", "[]int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                    ("IsrNodes", "[]int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                    ("EligibleLeaderReplicas", "[]int32", 0, 0, 0, 32767, -1, "brokerId", ()),
                    ("LastKnownElr", "[]int32", 0, 0, 0, 32767, -1, "brokerId", ()),
                    ("OfflineReplicas", "[]int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                )),
                ("TopicAuthorizedOperations", "int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("NextCursor", "{}", 0, 0, 0, 32767, -1, "", (
                ("TopicName", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    76: ("ShareGroupHeartbeat", ("broker",),
        (1, 1, 0, (
            ("GroupId", "string", 1, 1, 32767, 32767, -1, "groupId", ()),
            ("MemberId", "string", 1, 1, 32767, 32767, -1, "", ()),
            ("MemberEpoch", "int32", 1, 1, 32767, 32767, -1, "", ()),
            ("RackId", "string", 1, 1, 0, 32767, -1, "", ()),
            ("SubscribedTopicNames", "[]string", 1, 1, 0, 32767, -1, "topicName", ()),
        )),
        (1, 1, 0, (
            ("ThrottleTimeMs", "int32", 1, 1, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 1, 1, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 1, 1, 0, 32767, -1, "", ()),
            ("MemberId", "string", 1, 1, 0, 32767, -1, "", ()),
            ("MemberEpoch", "int32", 1, 1, 32767, 32767, -1, "", ()),
            ("HeartbeatIntervalMs", "int32", 1, 1, 32767, 32767, -1, "", ()),
            ("Assignment", "{}", 1, 1, 0, 32767, -1, "", (
                ("TopicPartitions", "[]{}", 1, 1, 32767, 32767, -1, "", (
                    ("TopicId", "uuid", 1, 1, 32767, 32767, -1, "", ()),
                    ("Partitions", "[]int32", 1, 1, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    77: ("ShareGroupDescribe", ("broker",),
        (1, 1, 0, (
            ("GroupIds", "[]string", 1, 1, 32767, 32767, -1, "groupId", ()),
            ("IncludeAuthorizedOperations", "bool", 1, 1, 32767, 32767, -1, "", ()),
        )),
        (1, 1, 0, (
            ("ThrottleTimeMs", "int32", 1, 1, 32767, 32767, -1, "", ()),
            ("Groups", "[]{}", 1, 1, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 1, 1, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 1, 1, 0, 32767, -1, "", ()),
                ("GroupId", "string", 1, 1, 32767, 32767, -1, "groupId", ()),
                ("GroupState", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("GroupEpoch", "int32", 1, 1, 32767, 32767, -1, "", ()),
                ("AssignmentEpoch", "int32", 1, 1, 32767, 32767, -1, "", ()),
                ("AssignorName", "string", 1, 1, 32767, 32767, -1, "", ()),
                ("Members", "[]{}", 1, 1, 32767, 32767, -1, "", (
                    ("MemberId", "string", 1, 1, 32767, 32767, -1, "", ()),
                    ("RackId", "string", 1, 1, 0, 32767, -1, "", ()),
                    ("MemberEpoch", "int32", 1, 1, 32767, 32767, -1, "", ()),
                    ("ClientId", "string", 1, 1, 32767, 32767, -1, "", ()),
                    ("ClientHost", "string", 1, 1, 32767, 32767, -1, "", ()),
                    ("SubscribedTopicNames", "[]string", 1, 1, 32767, 32767, -1, "topicName", ()),
                    ("Assignment", "{}", 1, 1, 32767, 32767, -1, "", (
                        ("TopicPartitions", "[]{}", 1, 1, 32767, 32767, -1, "", (
                            ("TopicId", "uuid", 1, 1, 32767, 32767, -1, "", ()),
                            ("TopicName", "string", 1, 1, 32767, 32767, -1, "topicName", ()),
                            ("Partitions", "[]int32", 1, 1, 32767, 32767, -1, "", ()),
                        )),
                    )),
                )),
                ("AuthorizedOperations", "int32", 1, 1, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    78: ("ShareFetch", ("broker",),
        (1, 2, 0, (
            ("GroupId", "string", 1, 2, 0, 32767, -1, "groupId", ()),
            ("MemberId", "string", 1, 2, 0, 32767, -1, "", ()),
            ("ShareSessionEpoch", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("MaxWaitMs", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("MinBytes", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("MaxBytes", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("MaxRecords", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("BatchSize", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("ShareAcquireMode", "int8", 2, 2, 32767, 32767, -1, "", ()),
            ("IsRenewAck", "bool", 2, 2, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 1, 2, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 1, 2, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 1, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 1, 2, 32767, 32767, -1, "", ()),
                    ("AcknowledgementBatches", "[]{}", 1, 2, 32767, 32767, -1, "", (
                        ("FirstOffset", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("LastOffset", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("AcknowledgeTypes", "[]int8", 1, 2, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("ForgottenTopicsData", "[]{}", 1, 2, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 1, 2, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 1, 2, 32767, 32767, -1, "", ()),
            )),
        )),
        (1, 2, 0, (
            ("ThrottleTimeMs", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 1, 2, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 1, 2, 0, 32767, -1, "", ()),
            ("AcquisitionLockTimeoutMs", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("Responses", "[]{}", 1, 2, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 1, 2, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 1, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 1, 2, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 1, 2, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 1, 2, 0, 32767, -1, "", ()),
                    ("AcknowledgeErrorCode", "int16", 1, 2, 32767, 32767, -1, "", ()),
                    ("AcknowledgeErrorMessage", "string", 1, 2, 0, 32767, -1, "", ()),
                    ("CurrentLeader", "{}", 1, 2, 32767, 32767, -1, "", (
                        ("LeaderId", "int32", 1, 2, 32767, 32767, -1, "", ()),
                        ("LeaderEpoch", "int32", 1, 2, 32767, 32767, -1, "", ()),
                    )),
                    ("Records", "records", 1, 2, 32767, 32767, -1, "", ()),
                    ("AcquiredRecords", "[]{}", 1, 2, 32767, 32767, -1, "", (
                        ("FirstOffset", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("LastOffset", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("DeliveryCount", "int16", 1, 2, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("NodeEndpoints", "[]{}", 1, 2, 32767, 32767, -1, "", (
                ("NodeId", "int32", 1, 2, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 1, 2, 32767, 32767, -1, "", ()),
                ("Port", "int32", 1, 2, 32767, 32767, -1, "", ()),
                ("Rack", "string", 1, 2, 0, 32767, -1, "", ()),
            )),
        )),
    ),
    79: ("ShareAcknowledge", ("broker",),
        (1, 2, 0, (
            ("GroupId", "string", 1, 2, 0, 32767, -1, "groupId", ()),
            ("MemberId", "string", 1, 2, 0, 32767, -1, "", ()),
            ("ShareSessionEpoch", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("IsRenewAck", "bool", 2, 2, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 1, 2, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 1, 2, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 1, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 1, 2, 32767, 32767, -1, "", ()),
                    ("AcknowledgementBatches", "[]{}", 1, 2, 32767, 32767, -1, "", (
                        ("FirstOffset", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("LastOffset", "int64", 1, 2, 32767, 32767, -1, "", ()),
                        ("AcknowledgeTypes", "[]int8", 1, 2, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
        )),
        (1, 2, 0, (
            ("ThrottleTimeMs", "int32", 1, 2, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 1, 2, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 1, 2, 0, 32767, -1, "", ()),
            ("AcquisitionLockTimeoutMs", "int32", 2, 2, 32767, 32767, -1, "", ()),
            ("Responses", "[]{}", 1, 2, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 1, 2, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 1, 2, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 1, 2, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 1, 2, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 1, 2, 0, 32767, -1, "", ()),
                    ("CurrentLeader", "{}", 1, 2, 32767, 32767, -1, "", (
                        ("LeaderId", "int32", 1, 2, 32767, 32767, -1, "", ()),
                        ("LeaderEpoch", "int32", 1, 2, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("NodeEndpoints", "[]{}", 1, 2, 32767, 32767, -1, "", (
                ("NodeId", "int32", 1, 2, 32767, 32767, -1, "brokerId", ()),
                ("Host", "string", 1, 2, 32767, 32767, -1, "", ()),
                ("Port", "int32", 1, 2, 32767, 32767, -1, "", ()),
                ("Rack", "string", 1, 2, 0, 32767, -1, "", ()),
            )),
        )),
    ),
    80: ("AddRaftVoter", ("controller", "broker",),
        (0, 1, 0, (
            ("ClusterId", "string", 0, 1, 0, 32767, -1, "", ()),
            ("TimeoutMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("VoterId", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("VoterDirectoryId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
            ("Listeners", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("Name", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("Host", "string", 0, 1, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 0, 1, 32767, 32767, -1, "", ()),
            )),
            ("AckWhenCommitted", "bool", 1, 1, 32767, 32767, -1, "", ()),
        )),
        (0, 1, 0, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
        )),
    ),
    81: ("RemoveRaftVoter", ("controller", "broker",),
        (0, 0, 0, (
            ("ClusterId", "string", 0, 0, 0, 32767, -1, "", ()),
            ("VoterId", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("VoterDirectoryId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
        )),
    ),
    82: ("UpdateRaftVoter", ("controller",),
        (0, 0, 0, (
            ("ClusterId", "string", 0, 0, 0, 32767, -1, "", ()),
            ("CurrentLeaderEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("VoterId", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("VoterDirectoryId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
            ("Listeners", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("Name", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Host", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("KRaftVersionFeature", "{}", 0, 0, 32767, 32767, -1, "", (
                ("MinSupportedVersion", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("MaxSupportedVersion", "int16", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("CurrentLeader", "{}", 0, 0, 32767, 0, 0, "", (
                ("LeaderId", "int32", 0, 0, 32767, 32767, -1, "brokerId", ()),
                ("LeaderEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("Host", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Port", "int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    83: ("InitializeShareGroupState", ("broker",),
        (0, 0, 0, (
            ("GroupId", "string", 0, 0, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("StateEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("StartOffset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 0, 0, (
            ("Results", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    84: ("ReadShareGroupState", ("broker",),
        (0, 0, 0, (
            ("GroupId", "string", 0, 0, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 0, 0, (
            ("Results", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
                    ("StateEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("StartOffset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                    ("StateBatches", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("FirstOffset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                        ("LastOffset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                        ("DeliveryState", "int8", 0, 0, 32767, 32767, -1, "", ()),
                        ("DeliveryCount", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
        )),
    ),
    85: ("WriteShareGroupState", ("broker",),
        (0, 1, 0, (
            ("GroupId", "string", 0, 1, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("StateEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("StartOffset", "int64", 0, 1, 32767, 32767, -1, "", ()),
                    ("DeliveryCompleteCount", "int32", 1, 1, 32767, 32767, -1, "", ()),
                    ("StateBatches", "[]{}", 0, 1, 32767, 32767, -1, "", (
                        ("FirstOffset", "int64", 0, 1, 32767, 32767, -1, "", ()),
                        ("LastOffset", "int64", 0, 1, 32767, 32767, -1, "", ()),
                        ("DeliveryState", "int8", 0, 1, 32767, 32767, -1, "", ()),
                        ("DeliveryCount", "int16", 0, 1, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
        )),
        (0, 1, 0, (
            ("Results", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    86: ("DeleteShareGroupState", ("broker",),
        (0, 0, 0, (
            ("GroupId", "string", 0, 0, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 0, 0, (
            ("Results", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    87: ("ReadShareGroupStateSummary", ("broker",),
        (0, 1, 0, (
            ("GroupId", "string", 0, 1, 32767, 32767, -1, "", ()),
            ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 1, 0, (
            ("Results", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("Partition", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
                    ("StateEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                    ("StartOffset", "int64", 0, 1, 32767, 32767, -1, "", ()),
                    ("DeliveryCompleteCount", "int32", 1, 1, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    88: ("StreamsGroupHeartbeat", ("broker",),
        (0, 0, 0, (
            ("GroupId", "string", 0, 0, 32767, 32767, -1, "groupId", ()),
            ("MemberId", "string", 0, 0, 32767, 32767, -1, "", ()),
            ("MemberEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("EndpointInformationEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("InstanceId", "string", 0, 0, 0, 32767, -1, "", ()),
            ("RackId", "string", 0, 0, 0, 32767, -1, "", ()),
            ("RebalanceTimeoutMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Topology", "{}", 0, 0, 0, 32767, -1, "", (
                ("Epoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("Subtopologies", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                    ("SourceTopics", "[]string", 0, 0, 32767, 32767, -1, "topicName", ()),
                    ("SourceTopicRegex", "[]string", 0, 0, 32767, 32767, -1, "", ()),
                    ("StateChangelogTopics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                        ("Partitions", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("ReplicationFactor", "int16", 0, 0, 32767, 32767, -1, "", ()),
                        ("TopicConfigs", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("Key", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Value", "string", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                    )),
                    ("RepartitionSinkTopics", "[]string", 0, 0, 32767, 32767, -1, "topicName", ()),
                    ("RepartitionSourceTopics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                        ("Partitions", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("ReplicationFactor", "int16", 0, 0, 32767, 32767, -1, "", ()),
                        ("TopicConfigs", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("Key", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Value", "string", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                    )),
                    ("CopartitionGroups", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("SourceTopics", "[]int16", 0, 0, 32767, 32767, -1, "", ()),
                        ("SourceTopicRegex", "[]int16", 0, 0, 32767, 32767, -1, "", ()),
                        ("RepartitionSourceTopics", "[]int16", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                )),
            )),
            ("ActiveTasks", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("StandbyTasks", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("WarmupTasks", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("ProcessId", "string", 0, 0, 0, 32767, -1, "", ()),
            ("UserEndpoint", "{}", 0, 0, 0, 32767, -1, "", (
                ("Host", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Port", "uint16", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("ClientTags", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("Key", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Value", "string", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("TaskOffsets", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("Offset", "int64", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("TaskEndOffsets", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("Offset", "int64", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("ShutdownApplication", "bool", 0, 0, 32767, 32767, -1, "", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
            ("MemberId", "string", 0, 0, 32767, 32767, -1, "", ()),
            ("MemberEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("HeartbeatIntervalMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("AcceptableRecoveryLag", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("TaskOffsetIntervalMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Status", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("StatusCode", "int8", 0, 0, 32767, 32767, -1, "", ()),
                ("StatusDetail", "string", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("ActiveTasks", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("StandbyTasks", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("WarmupTasks", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
            ("EndpointInformationEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("PartitionsByUserEndpoint", "[]{}", 0, 0, 0, 32767, -1, "", (
                ("UserEndpoint", "{}", 0, 0, 32767, 32767, -1, "", (
                    ("Host", "string", 0, 0, 32767, 32767, -1, "", ()),
                    ("Port", "uint16", 0, 0, 32767, 32767, -1, "", ()),
                )),
                ("ActivePartitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Topic", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
                ("StandbyPartitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("Topic", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    89: ("StreamsGroupDescribe", ("broker",),
        (0, 0, 0, (
            ("GroupIds", "[]string", 0, 0, 32767, 32767, -1, "groupId", ()),
            ("IncludeAuthorizedOperations", "bool", 0, 0, 32767, 32767, -1, "", ()),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("Groups", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
                ("GroupId", "string", 0, 0, 32767, 32767, -1, "groupId", ()),
                ("GroupState", "string", 0, 0, 32767, 32767, -1, "", ()),
                ("GroupEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("AssignmentEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                ("Topology", "{}", 0, 0, 0, 32767, -1, "", (
                    ("Epoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("Subtopologies", "[]{}", 0, 0, 0, 32767, -1, "", (
                        ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                        ("SourceTopics", "[]string", 0, 0, 32767, 32767, -1, "topicName", ()),
                        ("RepartitionSinkTopics", "[]string", 0, 0, 32767, 32767, -1, "topicName", ()),
                        ("StateChangelogTopics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                            ("Partitions", "int32", 0, 0, 32767, 32767, -1, "", ()),
                            ("ReplicationFactor", "int16", 0, 0, 32767, 32767, -1, "", ()),
                            ("TopicConfigs", "[]{}", 0, 0, 32767, 32767, -1, "", (
                                ("Key", "string", 0, 0, 32767, 32767, -1, "", ()),
                                ("Value", "string", 0, 0, 32767, 32767, -1, "", ()),
                            )),
                        )),
                        ("RepartitionSourceTopics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("Name", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                            ("Partitions", "int32", 0, 0, 32767, 32767, -1, "", ()),
                            ("ReplicationFactor", "int16", 0, 0, 32767, 32767, -1, "", ()),
                            ("TopicConfigs", "[]{}", 0, 0, 32767, 32767, -1, "", (
                                ("Key", "string", 0, 0, 32767, 32767, -1, "", ()),
                                ("Value", "string", 0, 0, 32767, 32767, -1, "", ()),
                            )),
                        )),
                    )),
                )),
                ("Members", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("MemberId", "string", 0, 0, 32767, 32767, -1, "", ()),
                    ("MemberEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("InstanceId", "string", 0, 0, 0, 32767, -1, "", ()),
                    ("RackId", "string", 0, 0, 0, 32767, -1, "", ()),
                    ("ClientId", "string", 0, 0, 32767, 32767, -1, "", ()),
                    ("ClientHost", "string", 0, 0, 32767, 32767, -1, "", ()),
                    ("TopologyEpoch", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ProcessId", "string", 0, 0, 32767, 32767, -1, "", ()),
                    ("UserEndpoint", "{}", 0, 0, 0, 32767, -1, "", (
                        ("Host", "string", 0, 0, 32767, 32767, -1, "", ()),
                        ("Port", "uint16", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                    ("ClientTags", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("Key", "string", 0, 0, 32767, 32767, -1, "", ()),
                        ("Value", "string", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                    ("TaskOffsets", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                        ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("Offset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                    ("TaskEndOffsets", "[]{}", 0, 0, 32767, 32767, -1, "", (
                        ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                        ("Partition", "int32", 0, 0, 32767, 32767, -1, "", ()),
                        ("Offset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                    )),
                    ("Assignment", "{}", 0, 0, 32767, 32767, -1, "", (
                        ("ActiveTasks", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                        ("StandbyTasks", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                        ("WarmupTasks", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                    )),
                    ("TargetAssignment", "{}", 0, 0, 32767, 32767, -1, "", (
                        ("ActiveTasks", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                        ("StandbyTasks", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                        ("WarmupTasks", "[]{}", 0, 0, 32767, 32767, -1, "", (
                            ("SubtopologyId", "string", 0, 0, 32767, 32767, -1, "", ()),
                            ("Partitions", "[]int32", 0, 0, 32767, 32767, -1, "", ()),
                        )),
                    )),
                    ("IsClassic", "bool", 0, 0, 32767, 32767, -1, "", ()),
                )),
                ("AuthorizedOperations", "int32", 0, 0, 32767, 32767, -1, "", ()),
            )),
        )),
    ),
    90: ("DescribeShareGroupOffsets", ("broker",),
        (0, 1, 0, (
            ("Groups", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("GroupId", "string", 0, 1, 32767, 32767, -1, "groupId", ()),
                ("Topics", "[]{}", 0, 1, 0, 32767, -1, "", (
                    ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                    ("Partitions", "[]int32", 0, 1, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 1, 0, (
            ("ThrottleTimeMs", "int32", 0, 1, 32767, 32767, -1, "", ()),
            ("Groups", "[]{}", 0, 1, 32767, 32767, -1, "", (
                ("GroupId", "string", 0, 1, 32767, 32767, -1, "groupId", ()),
                ("Topics", "[]{}", 0, 1, 32767, 32767, -1, "", (
                    ("TopicName", "string", 0, 1, 32767, 32767, -1, "topicName", ()),
                    ("TopicId", "uuid", 0, 1, 32767, 32767, -1, "", ()),
                    ("Partitions", "[]{}", 0, 1, 32767, 32767, -1, "", (
                        ("PartitionIndex", "int32", 0, 1, 32767, 32767, -1, "", ()),
                        ("StartOffset", "int64", 0, 1, 32767, 32767, -1, "", ()),
                        ("LeaderEpoch", "int32", 0, 1, 32767, 32767, -1, "", ()),
                        ("Lag", "int64", 1, 1, 32767, 32767, -1, "", ()),
                        ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                        ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
                    )),
                )),
                ("ErrorCode", "int16", 0, 1, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 1, 0, 32767, -1, "", ()),
            )),
        )),
    ),
    91: ("AlterShareGroupOffsets", ("broker",),
        (0, 0, 0, (
            ("GroupId", "string", 0, 0, 32767, 32767, -1, "groupId", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("StartOffset", "int64", 0, 0, 32767, 32767, -1, "", ()),
                )),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
            ("Responses", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("Partitions", "[]{}", 0, 0, 32767, 32767, -1, "", (
                    ("PartitionIndex", "int32", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                    ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
                )),
            )),
        )),
    ),
    92: ("DeleteShareGroupOffsets", ("broker",),
        (0, 0, 0, (
            ("GroupId", "string", 0, 0, 32767, 32767, -1, "groupId", ()),
            ("Topics", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
            )),
        )),
        (0, 0, 0, (
            ("ThrottleTimeMs", "int32", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
            ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
            ("Responses", "[]{}", 0, 0, 32767, 32767, -1, "", (
                ("TopicName", "string", 0, 0, 32767, 32767, -1, "topicName", ()),
                ("TopicId", "uuid", 0, 0, 32767, 32767, -1, "", ()),
                ("ErrorCode", "int16", 0, 0, 32767, 32767, -1, "", ()),
                ("ErrorMessage", "string", 0, 0, 0, 32767, -1, "", ()),
            )),
        )),
    ),
}
