import static org.apache.kafka.streams.CloseOptions.GroupMembershipOperation.LEAVE_GROUP;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers;

/** Counts numbers by their remainder, with Kafka Streams and exactly once: each number that comes
 * makes one "REMAINDER COUNT". Counts are in a store with a changelog, behind a topic in which
 * numbers are sorted by remainder.
 *
 * Arguments: BOOTSTRAP APPLICATION PROTOCOL FROM INTO REMAINDERS FOLDER. Says "running" when it is,
 * and for each line that it reads ends the application and starts another, which says so too. */
public class Counting {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String line;
        do {
            KafkaStreams streams = started(arguments);
            System.out.println("running");
            line = lines.readLine();
            streams.close(CloseOptions.groupMembershipOperation(LEAVE_GROUP));
        } while (line != null);
    }

    private static KafkaStreams started(String[] arguments) throws Exception {
        KafkaStreams streams = new KafkaStreams(topology(arguments), settings(arguments));
        CountDownLatch running = new CountDownLatch(1);
        streams.setStateListener((state, before) -> {
            if (state == KafkaStreams.State.RUNNING) {
                running.countDown();
            } else if (state == KafkaStreams.State.ERROR) {
                Runtime.getRuntime().halt(1);
            }
        });
        streams.start();
        running.await();
        return streams;
    }

    private static Topology topology(String[] arguments) {
        long remainders = Long.parseLong(arguments[5]);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[3])
            .groupBy((key, number) -> String.valueOf(Long.parseLong(number) % remainders))
            .count()
            .toStream()
            .mapValues((remainder, count) -> remainder + " " + count)
            .to(arguments[4]);
        return builder.build();
    }

    private static Properties settings(String[] arguments) {
        Properties found = new Properties();
        found.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        found.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        found.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, arguments[2]);
        found.put(StreamsConfig.STATE_DIR_CONFIG, arguments[6]);
        found.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        found.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        found.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        found.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        found.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        found.put(
            StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, InMemoryDslStoreSuppliers.class);
        found.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        return found;
    }
}
