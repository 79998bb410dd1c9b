import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.data.message.*;
import dev.langchain4j.memory.ChatMemory;
import dev.langchain4j.memory.chat.MessageWindowChatMemory;
import dev.langchain4j.memory.chat.TokenWindowChatMemory;
import dev.langchain4j.model.TokenCountEstimator;
import dev.langchain4j.model.openai.OpenAiTokenCountEstimator;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

/**
 * Reads transcripts, one a line, and writes for each of their lines the window of LangChain4j's
 * memory, and the tokens that its estimator for OpenAI counts in each message.
 */
public class LangChain4jMemory {
    /** Counts what the transcript states, so that both sides count the same. */
    static class Given implements TokenCountEstimator {
        final Map<ChatMessage, Integer> tokens = new IdentityHashMap<>();

        public int estimateTokenCountInText(String text) {
            throw new UnsupportedOperationException();
        }

        public int estimateTokenCountInMessage(ChatMessage m) {
            return tokens.get(m);
        }

        public int estimateTokenCountInMessages(Iterable<ChatMessage> all) {
            int n = 0;
            for (ChatMessage m : all) n += tokens.get(m);
            return n;
        }
    }

    static ChatMessage message(JsonNode n) {
        String text = n.path("text").asText();
        switch (n.path("role").asText()) {
            case "system":
                return SystemMessage.from(text);
            case "user":
                return n.has("name") ? UserMessage.from(n.get("name").asText(), text) : UserMessage.from(text);
            case "tool":
                return ToolExecutionResultMessage.from(n.get("call").asText(), null, text);
        }
        List<ToolExecutionRequest> calls = new ArrayList<>();
        for (JsonNode c : n.path("calls"))
            calls.add(ToolExecutionRequest.builder().id(c.get("id").asText()).name(c.get("name").asText())
                    .arguments(c.get("arguments").asText()).build());
        if (calls.isEmpty()) return AiMessage.from(text);
        return text.isEmpty() ? AiMessage.from(calls) : AiMessage.from(text, calls);
    }

    static String key(ChatMessage m) {
        if (m instanceof SystemMessage s) return "system " + s.text();
        if (m instanceof UserMessage u) return "user " + u.singleText();
        if (m instanceof ToolExecutionResultMessage t) return "tool " + t.text() + " " + t.id();
        AiMessage a = (AiMessage) m;
        StringBuilder b = new StringBuilder("assistant " + Objects.toString(a.text(), ""));
        for (ToolExecutionRequest c : a.toolExecutionRequests()) b.append(' ').append(c.id());
        return b.toString();
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        OpenAiTokenCountEstimator openAi = new OpenAiTokenCountEstimator("gpt-4o");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode transcript = json.readTree(line);
            Given given = new Given();
            int[] max = {transcript.get("max").asInt()};
            boolean first = transcript.get("first").asBoolean();
            ChatMemory memory = transcript.get("policy").asText().equals("message_window")
                    ? MessageWindowChatMemory.builder().dynamicMaxMessages(id -> max[0]).alwaysKeepSystemMessageFirst(first).build()
                    : TokenWindowChatMemory.builder().dynamicMaxTokens(id -> max[0], given).alwaysKeepSystemMessageFirst(first).build();
            List<List<String>> windows = new ArrayList<>();
            List<List<Integer>> counts = new ArrayList<>();
            for (JsonNode n : transcript.get("lines")) {
                List<ChatMessage> added = new ArrayList<>();
                List<Integer> count = new ArrayList<>();
                for (JsonNode one : n.path("messages")) {
                    ChatMessage m = message(one);
                    given.tokens.put(m, one.get("tokens").asInt());
                    count.add(openAi.estimateTokenCountInMessage(m));
                    added.add(m);
                }
                switch (n.get("op").asText()) {
                    case "add" -> memory.add(added.get(0));
                    case "set" -> memory.set(added);
                    case "clear" -> memory.clear();
                    case "limit" -> max[0] = n.get("max").asInt();
                    default -> throw new IllegalArgumentException(line);
                }
                List<String> window = new ArrayList<>();
                for (ChatMessage m : memory.messages()) window.add(key(m));
                windows.add(window);
                counts.add(count);
            }
            out.println(json.writeValueAsString(Map.of("windows", windows, "tokens", counts)));
        }
        out.flush();
    }
}
