import java.util.Collections;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** Several topics as one: COUNT of them, TOPIC-0 and so on, each with one message that contains its number. */
final class Topics {
    static void listed(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        together(client, asked, got, client.newConsumer().topics(names(asked)));
    }

    static void matching(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        Pattern pattern = Pattern.compile(asked.word(0) + "-[0-9]+");
        together(client, asked, got, client.newConsumer().topicsPattern(pattern));
    }

    private static void together(
            PulsarClient client, Client.Options asked, Trying.Seen got, ConsumerBuilder<byte[]> wanted)
            throws Exception {
        List<String> names = names(asked);
        for (int number = 0; number < names.size(); number++) {
            Trying.sendNumbers(client, names.get(number), number, number);
        }
        try (Consumer<byte[]> consumer = wanted.subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscribe()) {
            List<Integer> numbers = Trying.receiveNumbers(consumer, names.size());
            Collections.sort(numbers);
            got.put("topics", numbers);
        }
    }

    private static List<String> names(Client.Options asked) {
        return IntStream.range(0, asked.number(1))
                .mapToObj(number -> asked.word(0) + "-" + number)
                .toList();
    }

    private Topics() {}
}
