import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.config.Configuration;
import io.kroxylicious.proxy.internal.config.Features;
import java.nio.file.Files;
import java.nio.file.Path;

/** Runs Kroxylicious with the YAML file that is its argument: the published jars have no main class. */
final class Kroxylicious {
    public static void main(String[] arguments) throws Exception {
        ConfigParser parser = new ConfigParser();
        Configuration told = parser.parseConfiguration(Files.readString(Path.of(arguments[0])));
        try (KafkaProxy proxy = new KafkaProxy(parser, told, Features.defaultFeatures())) {
            proxy.startup();
            proxy.block();
        }
    }
}
