import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;

/** Sends messages that exceed the broker's limit, and checks that each arrives whole. */
final class Chunks {
    static void run(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        List<Integer> whole = new ArrayList<>();
        try (Consumer<byte[]> consumer = Trying.subscribe(client, asked.word(0), Schema.BYTES);
                Producer<byte[]> producer = client.newProducer()
                        .topic(asked.word(0))
                        .enableBatching(false)
                        .enableChunking(true)
                        .create()) {
            for (int number = 0; number < asked.number(1); number++) {
                byte[] sent = content(number, asked.number("size", 0));
                producer.send(sent);
                Message<byte[]> message = Trying.receive(consumer);
                if (!Arrays.equals(message.getValue(), sent)) {
                    throw new IllegalStateException("message " + number + " came otherwise");
                }
                whole.add(number);
                consumer.acknowledge(message);
            }
        }
        got.put("whole", whole);
    }

    /** The content differs at every place where a chunk could end, and between messages. */
    private static byte[] content(int number, int size) {
        byte[] made = new byte[size];
        for (int at = 0; at < size; at++) {
            made[at] = (byte) ((at + number) % 251);
        }
        return made;
    }

    private Chunks() {}
}
