import dev.langchain4j.service.*;

class Shop {
    interface Assistant {
        @SystemMessage("You help the customers of a bicycle shop.")
        String chat(@MemoryId String customer, @UserMessage String message);
    }

    ChatModel model = OpenAiChatModel.builder().modelName("gpt-4o-mini").temperature(0.2).build();
    ChatMemoryProvider memories = id -> MessageWindowChatMemory.withMaxMessages(20);
    Assistant assistant = AiServices.builder(Assistant.class).chatModel(model).chatMemoryProvider(memories).build();
}
