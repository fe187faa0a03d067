import java.lang.reflect.Field;
import org.apache.inlong.tubemq.server.common.statusdef.StepStatus;
import org.apache.inlong.tubemq.server.tools.MasterStartup;

/** Starts TubeMQ's own master, with its own arguments, but without the seconds (30 and 5, which no
 * setting changes) that it lets pass between the steps in which a broker comes or goes. */
public class QuickMaster {
    private static final String[] WAITS = {"normalDelayDurIdnMs", "shortDelayDurIdnMs"};

    public static void main(String[] arguments) throws Exception {
        for (StepStatus step : StepStatus.values()) {
            for (String wait : WAITS) {
                Field field = StepStatus.class.getDeclaredField(wait);
                field.setAccessible(true);
                field.setLong(step, 0);
            }
        }
        MasterStartup.main(arguments);
    }
}
