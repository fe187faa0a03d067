import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;

/** Sends values by a schema that the broker keeps, and reads them back. */
final class Records {
    /** A record with a field of each kind that distinguishes schemas. */
    public static final class Reading {
        public String sensor;
        public int value;
    }

    static void json(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        exchange(client, asked, got, Schema.JSON(Reading.class));
    }

    static void avro(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        exchange(client, asked, got, Schema.AVRO(Reading.class));
    }

    private static void exchange(
            PulsarClient client, Client.Options asked, Trying.Seen got, Schema<Reading> schema) throws Exception {
        List<Integer> values = new ArrayList<>();
        try (Consumer<Reading> consumer = Trying.subscribe(client, asked.word(0), schema);
                Producer<Reading> producer =
                        client.newProducer(schema).topic(asked.word(0)).create()) {
            for (int number = 0; number < asked.number(1); number++) {
                Reading reading = new Reading();
                reading.sensor = "sensor-" + number;
                reading.value = number;
                producer.send(reading);
                Message<Reading> message = Trying.receive(consumer);
                Reading found = message.getValue();
                if (!found.sensor.equals("sensor-" + found.value)) {
                    throw new IllegalStateException("unexpected record of " + found.sensor);
                }
                values.add(found.value);
                consumer.acknowledge(message);
            }
        }
        got.put("records", values);
    }

    private Records() {}
}
