// Constants, retries, structured answers, and what has no counterpart.
package desk;

import dev.langchain4j.memory.chat.*;
import dev.langchain4j.model.openai.*;
import dev.langchain4j.service.*;
import java.time.Duration;
import java.util.List;

public class Settings {
    private static final String NAME = "gpt-4.1-mini";
    static final int WINDOW = 30;
    enum Kind { QUESTION, COMPLAINT }
    record Ticket(@Description("in one line") String title, int urgency, List<Kind> kinds) {}

    interface Desk {
        @SystemMessage("You sort letters about {{area}}.")
        String answer(@MemoryId String id, @UserMessage String text, @V("area") String area);
        @UserMessage("Sort: {{it}}")
        Kind sort(String text);
        @UserMessage("File: {{it}}")
        Ticket file(String text);
        @UserMessage("Count the questions in: {{it}}")
        int count(String text);
        @UserMessage("List the names in: {{it}}")
        List<String> names(String text);
        @UserMessage("Map: {{it}}")
        Map<String, String> map(String text);
    }

    static class Tools {
        @Tool(name = "find", value = {"Finds", "a letter"}, returnBehavior = ReturnBehavior.IMMEDIATE)
        String find(@P(value = "the year", required = false) int year, @P("who wrote") @Fuzzy String writer) { return ""; }
    }

    void run() {
        var model = OpenAiChatModel.builder().apiKey("demo").modelName(NAME).maxRetries(5).timeout(Duration.ofSeconds(20))
            .stop(List.of("END", "STOP")).responseFormat("json_object").customHeaders(Map.of("x", "y")).strictTools(true).build();
        Desk d = AiServices.builder(Desk.class).chatModel(model).tools(new Tools()).contentRetriever(retriever)
            .chatMemoryProvider(id -> TokenWindowChatMemory.builder().id(id).maxTokens(900, counter, "more").alwaysKeepSystemMessageFirst(true).build())
            .build();
        ChatMemory other = MessageWindowChatMemory.builder().dynamicMaxMessages(id -> WINDOW).build();
        var last = OpenAiStreamingChatModel.builder().modelName(OpenAiChatModelName.GPT_4_1_NANO).maxRetries(0).build();
    }
}
