import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** Sends messages in each way that the library can pack them, on a topic for each way. */
final class Packing {
    interface Way {
        ProducerBuilder<byte[]> of(ProducerBuilder<byte[]> producer);
    }

    static void run(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        Keys keys = new Keys();
        int number = 0;
        for (Map.Entry<String, Way> way : ways(keys).entrySet()) {
            String topic = asked.word(0) + "-" + number++;
            try {
                got.put(way.getKey(), exchanged(client, topic, way.getValue(), asked.number(1), keys));
            } catch (Exception error) {
                throw new IllegalStateException(way.getKey(), error);
            }
        }
    }

    private static Map<String, Way> ways(Keys keys) {
        Map<String, Way> ways = new LinkedHashMap<>();
        ways.put("batched", it -> it);
        ways.put("batched by key", it -> it.batcherBuilder(BatcherBuilder.KEY_BASED));
        for (CompressionType type : CompressionType.values()) {
            if (type != CompressionType.NONE) {
                ways.put(type.name(), it -> it.compressionType(type).enableBatching(false));
                ways.put(type.name() + " batched", it -> it.compressionType(type));
            }
        }
        ways.put("sealed", it -> keys.sealing(it).enableBatching(false));
        ways.put("sealed batched", keys::sealing);
        ways.put("sealed LZ4", it -> keys.sealing(it).compressionType(CompressionType.LZ4).enableBatching(false));
        ways.put("sealed LZ4 batched", it -> keys.sealing(it).compressionType(CompressionType.LZ4));
        return ways;
    }

    /** Sends the numbers at once, so that they can be one batch, and receives them. */
    private static List<Integer> exchanged(PulsarClient client, String topic, Way way, int count, Keys keys)
            throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer()
                        .topic(topic)
                        .subscriptionName("s")
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .cryptoKeyReader(keys)
                        .subscribe();
                Producer<byte[]> producer =
                        way.of(client.newProducer().topic(topic)).create()) {
            List<CompletableFuture<?>> sending = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                sending.add(producer.newMessage().key("one").value(Trying.payload(number)).sendAsync());
            }
            producer.flush();
            for (CompletableFuture<?> sent : sending) {
                sent.get();
            }
            return Trying.receiveNumbers(consumer, count);
        }
    }

    /** A key pair that encrypts and decrypts messages. */
    private static final class Keys implements CryptoKeyReader {
        /** Bytes of PKCS #8 before a 2048-bit RSA key in PKCS #1, the form that clients of 2.8 can read, too. */
        private static final int PKCS8_HEADER = 26;

        private final byte[] publicKey;
        private final byte[] privateKey;

        Keys() throws Exception {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
            generator.initialize(2048);
            KeyPair made = generator.generateKeyPair();
            publicKey = pem("PUBLIC KEY", made.getPublic().getEncoded());
            byte[] wrapped = made.getPrivate().getEncoded();
            privateKey = pem("RSA PRIVATE KEY", Arrays.copyOfRange(wrapped, PKCS8_HEADER, wrapped.length));
        }

        private static byte[] pem(String kind, byte[] encoded) {
            String lines = Base64.getMimeEncoder().encodeToString(encoded);
            String framed = "-----BEGIN " + kind + "-----\n" + lines + "\n-----END " + kind + "-----\n";
            return framed.getBytes(StandardCharsets.US_ASCII);
        }

        ProducerBuilder<byte[]> sealing(ProducerBuilder<byte[]> producer) {
            return producer.addEncryptionKey("tests").cryptoKeyReader(this);
        }

        @Override
        public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
            return new EncryptionKeyInfo(publicKey, metadata);
        }

        @Override
        public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
            return new EncryptionKeyInfo(privateKey, metadata);
        }
    }

    private Packing() {}
}
