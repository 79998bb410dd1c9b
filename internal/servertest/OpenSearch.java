// An OpenSearch in one process, for tests: java -cp "LIB/*" OpenSearch.java FOLDER PORT
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

class OpenSearch {
    static class Server extends Node {
        Server(Environment environment) {
            super(environment, List.of(Netty4Plugin.class, PainlessPlugin.class, KNNPlugin.class), false);
        }
    }

    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        Files.createDirectories(home.resolve("config"));
        Settings settings = Settings.builder()
            .put("path.home", home.toString())
            .put("path.data", home.resolve("data").toString())
            .put("node.name", "test")
            .put("cluster.name", "qtype-test")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("discovery.type", "single-node")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        new Server(new Environment(settings, home.resolve("config"))).start();
        Thread.currentThread().join();
    }
}
