package com.example.shop;

import dev.langchain4j.agent.tool.P;
import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.memory.chat.MessageWindowChatMemory;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.service.*;

/** A shop that answers questions about orders. */
public class Shop {

    interface Assistant {

        @SystemMessage("""
                You help the customers of a bicycle shop.
                  Answer in "one" sentence.
                """)
        String chat(@MemoryId String customer, @UserMessage String message);
    }

    interface Writer {
        @SystemMessage({"You write product texts.", "No prices."})
        @UserMessage("Describe {{product}} in {{words}} words.")
        String describe(@V("product") String product, @V("words") int words);

        @UserMessage("Is this text friendly? {{it}}")
        boolean friendly(String text);

        default String nothing() { return "nothing"; }
    }

    static class Orders {
        @Tool("Finds the state of an order")
        String state(@P("the number") long number) { return "sent"; }

        @Tool(name = "cancel_order", value = {"Cancels an order.", "Ask before."})
        boolean cancel(long number, List<String> reasons, @ToolMemoryId String memory) { return true; }
    }

    public static void main(String[] args) {
        ChatModel model = OpenAiChatModel.builder()
                .apiKey(System.getenv("OPENAI_API_KEY"))
                .modelName(OpenAiChatModelName.GPT_4_O_MINI)
                .temperature(0.3) // nearly the same answer each time
                .maxTokens(500)
                .parallelToolCalls(false)
                .build();
        ChatMemoryProvider memories = memoryId -> {
            return MessageWindowChatMemory.builder().id(memoryId).maxMessages(20).chatMemoryStore(new FileStore()).build();
        };
        Assistant assistant = AiServices.builder(Assistant.class)
                .chatModel(model)
                .chatMemoryProvider(memories)
                .tools(new Orders())
                .build();
        Writer writer = AiServices.create(Writer.class, AnthropicChatModel.builder().modelName("claude-sonnet-4-5").topP(0.9).build());
        System.out.println(assistant.chat("ada", "Where is order 7?"));
    }
}
