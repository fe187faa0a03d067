import java.util.Collections;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;

/** Prints the settings of a topic, by the AdminClient of kafka-clients since 0.11.
 *
 * Arguments: BOOTSTRAP TOPIC. */
public class Described {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, arguments[1]);
        TreeMap<String, String> found = new TreeMap<>();
        try (AdminClient admin = AdminClient.create(settings)) {
            for (ConfigEntry it :
                admin.describeConfigs(Collections.singleton(topic)).all().get().get(topic).entries()) {
                found.put(it.name(), it.value());
            }
        }
        System.out.println(found);
    }
}
