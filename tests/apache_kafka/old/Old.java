import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Sends 20 messages, receives them in a group, and prints how many came, and how many of these
 * differ. Compiled with kafka-clients 0.11, it runs with those since 0.10.
 *
 * Arguments: BOOTSTRAP TOPIC [MECHANISM FOLDER]: bob proves who he is, under TLS. */
public class Old {
    private static final int COUNT = 20;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        send(topic, settings(arguments));
        List<String> heard = receive(topic, settings(arguments));
        System.out.println(heard.size() + " " + new HashSet<>(heard).size());
    }

    private static void send(String topic, Properties settings) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < COUNT; number++) {
                sent.add(producer.send(new ProducerRecord<>(topic, String.valueOf(number))));
            }
            for (Future<RecordMetadata> it : sent) {
                it.get();
            }
        }
    }

    private static List<String> receive(String topic, Properties settings) {
        List<String> heard = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(Collections.singletonList(topic));
            while (heard.size() < COUNT) {
                for (ConsumerRecord<String, String> record : consumer.poll(100)) {
                    heard.add(record.value());
                }
            }
            consumer.commitSync();
        }
        return heard;
    }

    private static Properties settings(String[] arguments) {
        Properties found = new Properties();
        found.put("bootstrap.servers", arguments[0]);
        found.put("group.id", arguments[1]);
        found.put("auto.offset.reset", "earliest");
        for (String end : new String[] {"key", "value"}) {
            String kind = "org.apache.kafka.common.serialization.String";
            found.put(end + ".serializer", kind + "Serializer");
            found.put(end + ".deserializer", kind + "Deserializer");
        }
        if (arguments.length > 2) {
            prove(found, arguments[2], arguments[3]);
        }
        return found;
    }

    private static void prove(Properties settings, String mechanism, String folder) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        settings.put("security.protocol", "SASL_SSL");
        settings.put("ssl.truststore.location", folder + "/authority.p12");
        settings.put("ssl.truststore.type", "PKCS12");
        settings.put("ssl.truststore.password", "needed before 0.11");
        settings.put("sasl.mechanism", mechanism);
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security." + module
            + " required username=\"bob\" password=\"builder\";");
    }
}
