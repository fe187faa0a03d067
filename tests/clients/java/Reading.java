import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;

/** Reads from places in a topic. */
final class Reading {
    /** Reads everything from the oldest message on, and then everything after the first half. */
    static void read(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        int count = asked.number(1);
        List<MessageId> ids = Trying.sendNumbers(client, asked.word(0), 0, count - 1);
        got.put("earliest", readFrom(client, asked.word(0), MessageId.earliest));
        got.put("behind", readFrom(client, asked.word(0), ids.get(count / 2 - 1)));
    }

    private static List<Integer> readFrom(PulsarClient client, String topic, MessageId start) throws Exception {
        List<Integer> numbers = new ArrayList<>();
        try (Reader<byte[]> reader =
                client.newReader().topic(topic).startMessageId(start).create()) {
            while (reader.hasMessageAvailable()) {
                numbers.add(Trying.number(reader.readNext()));
            }
        }
        return numbers;
    }

    /** Receives everything, seeks to a time, and seeks to a message, whose successor is the first to come. */
    static void seek(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        long begun = System.currentTimeMillis() - TimeUnit.MINUTES.toMillis(1);
        int count = asked.number(1);
        List<MessageId> ids = Trying.sendNumbers(client, asked.word(0), 0, count - 1);
        try (Consumer<byte[]> consumer = Trying.subscribe(client, asked.word(0), Schema.BYTES)) {
            got.put("first", Trying.receiveNumbers(consumer, count));
            consumer.seek(begun);
            got.put("by_time", Trying.receiveNumbers(consumer, count));
            consumer.seek(ids.get(count / 2));
            got.put("by_id", Trying.receiveNumbers(consumer, count - count / 2 - 1));
        }
    }

    private Reading() {}
}
