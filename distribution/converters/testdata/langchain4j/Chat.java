import dev.langchain4j.service.*;

class Chat {
    interface Helper {
        @SystemMessage("You repair bicycles.")
        @UserMessage("Answer in {{words}} words: {{question}}")
        String help(@MemoryId String customer, @V("words") int words, @V("question") String question);
    }

    Helper helper() {
        return AiServices.builder(Helper.class)
            .chatModel(OpenAiChatModel.builder().modelName("gpt-4o-mini").build())
            .chatMemory(TokenWindowChatMemory.withMaxTokens(1000, estimator))
            .build();
    }
}
